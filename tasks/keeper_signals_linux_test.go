package tasks

import (
	"slices"
	"syscall"
	"testing"

	"hob/identity"
	"hob/sweep"
)

// TestKeeperOutlivesOtherSignals: what the keeper does not ask for does not end
// it or stop it either.
func TestKeeperOutlivesOtherSignals(t *testing.T) {
	t.Parallel()
	g := newRig(t, sweep.Server).sh(`trap 'echo bye; exit 0' TERM; while :; do sleep 0.1; done`).start().up()
	// What ends a Go program whatever it asks for is a fault of its own, or KILL.
	spared := []string{"KILL", "STOP", "ILL", "TRAP", "BUS", "FPE", "SEGV", "STKFLT", "SYS"}
	for n := syscall.Signal(1); n < 65; n++ {
		name := identity.SignalName(n)
		if slices.Contains(endSignals, name) || slices.Contains(spared, name) || n > 31 && n < 35 { // the C library's own
			continue
		}
		g.signal(n)
		h, err := g.h.Open(g.cmd.Process.Pid)
		if err != nil {
			t.Fatalf("after %s: %v", name, err)
		}
		row, err := h.Read(0)
		_ = h.Close()
		if err != nil || row.State == 'T' {
			t.Fatalf("after %s: state %c, %v", name, row.State, err)
		}
	}
	g.signal(syscall.SIGTERM)
	if code := g.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
