//go:build unix

package sweep_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/identity/sim"
	"hob/sweep"
)

// spare starts one that the recipe says to leave alone.
func (f *family) spare() {
	f.target.Stop.Spare = []string{"python3"}
	f.alone = f.child.Fork(sim.Proc{Args: []string{"/usr/bin/python3", "worker.py"}, Ignore: []syscall.Signal{syscall.SIGHUP}})
	f.observe()
}

// leaves has it start what nobody says to leave alone, and end.
func (f *family) leaves() {
	f.heir = f.alone.Fork(sim.Proc{Args: []string{"/usr/bin/other"}})
	f.alone.Exit()
}

// TestLastInstantOfOneLeftAlone: what one that is left alone has forked after the last
// look below it, and then ended, is ended too. Nobody but the keeper has it, and no
// report may be clean with it alive. When the sweep has had its time it is a survivor
// that the capture on disk has: its keeper may be gone when the next hob looks.
func TestLastInstantOfOneLeftAlone(t *testing.T) {
	for _, late := range []bool{false, true} {
		survived := 0
		for nth := 1; ; nth++ {
			f := newFamily(sim.Options{NoCgroups: true})
			f.spare()
			closed := &closing{Host: f.host, f: f, left: nth, late: late}
			f.host = closed
			f.run("down", sweep.Options{Reason: "down"}, false)
			if closed.left > 0 {
				if nth <= 3 || late != (survived > 0) {
					t.Errorf("late %t: %d looks, survived %d", late, nth-1, survived)
				}
				break
			}
			if wrong := f.check(); len(wrong) > 0 || (f.report.Verdict == sweep.Survivors) != f.heir.Alive() || !f.saved[f.heir.Serial()] {
				t.Errorf("late %t, at look %d: alive %t, %s\n%v", late, nth, f.heir.Alive(), strings.Join(wrong, "\n"), played{f.scene, nil})
			}
			if f.heir.Alive() {
				survived++
			}
		}
	}
}

// closing has it leave right after the n-th look below it since the pane was closed;
// late: and has all the time of a sweep pass.
type closing struct {
	identity.Host
	f    *family
	left int
	late bool
}

func (h *closing) Children(pid int) ([]int, error) {
	kids, err := h.Host.Children(pid)
	if pid == h.f.alone.PID() && h.f.panes > 0 && h.left > 0 {
		if h.left--; h.left == 0 {
			if h.late {
				h.f.w.Pass(10 * time.Second)
			}
			h.f.leaves()
		}
	}
	return kids, err
}
