package tasks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"hob/sweep"
)

func TestKeeperRunsACommandToItsEnd(t *testing.T) {
	g := newRig(t, sweep.Job).sh(`echo first; sleep 0.3; echo last; exit 7`).start()
	g.up()
	if code := g.code(); code != 7 {
		t.Errorf("exit code %d", code)
	}
	if got, want := g.log(), "first\r\nlast\r\n"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
	if e := g.exit(); e.Code == nil || *e.Code != 7 || e.Nonce != "nonce-1" {
		t.Errorf("exit.json %+v", e)
	}
	if k := g.keeper(); !k.Empty || k.LastLine != "last" || k.Pane != "%7" || k.Command == nil {
		t.Errorf("keeper.json %+v", k)
	}
	if s := g.state(); s != Failed {
		t.Errorf("state %s", s)
	}
	if r := g.report(); r.Verdict != sweep.Clean || r.Reason != "exited" {
		t.Errorf("report %+v", r)
	}
}

func TestKeeperRecordsASignal(t *testing.T) {
	g := newRig(t, sweep.Server).sh(`kill -SEGV $$`).start()
	if code := g.code(); code != 128+int(syscall.SIGSEGV) {
		t.Errorf("exit code %d", code)
	}
	if e := g.exit(); e.Code != nil || e.Signal != "SEGV" {
		t.Errorf("exit.json %+v", e)
	}
}

// TestInstantExits: a command that has ended before anybody can look loses
// neither its status nor its output nor its place in the records.
func TestInstantExits(t *testing.T) {
	t.Parallel()
	times := 200
	if testing.Short() {
		times = 20
	}
	for i := range times {
		want := i % 5
		text := fmt.Sprintf("only line %d", i)
		g := newRig(t, sweep.Job, "/bin/sh", "-c", fmt.Sprintf("printf '%s'; exit %d", text, want)).start()
		if code := g.code(); code != want {
			t.Fatalf("round %d: exit code %d", i, code)
		}
		k := g.keeper()
		if e := g.exit(); e.Code == nil || *e.Code != want || g.log() != text || !k.Empty || k.Command == nil || k.Command.Start == "" {
			t.Fatalf("round %d: %+v, log %q, keeper %+v", i, e, g.log(), k)
		}
		g.until("the pane shows it", func() bool { return strings.Contains(g.screen.String(), text) })
	}
}

// TestLogIsCompleteThroughRotation: the files together hold every line, once and in order.
func TestLogIsCompleteThroughRotation(t *testing.T) {
	g := newRig(t, sweep.Job).sh(`i=0; while [ $i -lt 20000 ]; do echo "line $i of the output"; i=$((i+1)); done; printf end`)
	g.spec.Log = LogPolicy{MaxBytes: 64 << 10, Keep: 20}
	g.start().code()
	var all strings.Builder
	for n := 20; n >= 0; n-- {
		data, err := os.ReadFile((&taskLog{path: g.dir.LogPath()}).numbered(n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		all.Write(data)
	}
	var want strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&want, "line %d of the output\r\n", i)
	}
	want.WriteString("end")
	if all.String() != want.String() {
		t.Errorf("%d bytes of %d are there", all.Len(), want.Len())
	}
	if _, err := os.Stat(g.dir.LogPath() + ".2"); err != nil {
		t.Errorf("it was not rotated: %v", err)
	}
}

// TestStoppedTerminalDoesNotFreezeTheCommand: nobody reads the pane, and 60 MB
// get into the log all the same.
func TestStoppedTerminalDoesNotFreezeTheCommand(t *testing.T) {
	t.Parallel()
	const size = 60_000_000
	g := newRig(t, sweep.Job).sh(fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x; echo; echo done`, size))
	g.spec.Log = LogPolicy{MaxBytes: 2 * size, Keep: 1}
	g.hold = make(chan struct{})
	g.start()
	if code := g.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	fi, err := os.Stat(g.dir.LogPath())
	if err != nil || fi.Size() != size+int64(len("\r\ndone\r\n")) {
		t.Errorf("the log has %d bytes, %v", fi.Size(), err)
	}
}

func TestCtrlCPassesThrough(t *testing.T) {
	g := newRig(t, sweep.Server).sh(`trap 'echo interrupted; exit 3' INT; echo armed; while :; do sleep 0.1; done`).start()
	g.untilLog("armed")
	if _, err := g.pty.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	if code := g.code(); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(g.log(), "interrupted") {
		t.Errorf("log %q", g.log())
	}
}

func TestWindowSize(t *testing.T) {
	g := newRig(t, sweep.Server).sh(`trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done`).start()
	g.untilLog("33 101")
	g.resize(44, 55)
	g.untilLog("44 55")
}

// TestOutputAfterAllWasClosed: a command that closes its terminal and opens it
// again later loses nothing in between.
func TestOutputAfterAllWasClosed(t *testing.T) {
	g := newRig(t, sweep.Job).sh(`echo before; tty >name; exec <&- >&- 2>&-; sleep 0.5; echo after >$(cat name)`)
	g.start().code()
	if got, want := g.log(), "before\r\nafter\r\n"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
}

// TestMemoryOfTheTree is measured, and null once there is nothing to measure.
func TestMemoryOfTheTree(t *testing.T) {
	g := newRig(t, sweep.Server).sh(`while :; do sleep 0.1; done`).start().up()
	g.until("memory is measured", func() bool { k := g.keeper(); return k.MemoryBytes != nil && *k.MemoryBytes > 100<<10 })
	g.signal(syscall.SIGTERM)
	g.code()
	data, err := os.ReadFile(g.dir.file("keeper.json"))
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]any
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	if v, ok := raw["gpu_bytes"]; !ok || v != nil {
		t.Errorf("gpu_bytes is %v", v)
	}
}

// TestQuietJobCompletes: exit 0 without a word of output is completed.
func TestQuietJobCompletes(t *testing.T) {
	g := newRig(t, sweep.Job, "true").start()
	g.until("the command is recorded", func() bool { return g.keeper().Command != nil })
	g.code()
	if s := g.state(); s != Completed || g.log() != "" {
		t.Errorf("state %s, log %q", s, g.log())
	}
}
