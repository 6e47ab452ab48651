package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hob/identity"
)

// frozen reports what is written in the cgroup of a task, and whether all in it is.
func (k *kitchen) frozen(dir string) (asked, still bool) {
	k.t.Helper()
	asks, err := os.ReadFile(filepath.Join(dir, "cgroup.freeze"))
	if os.IsNotExist(err) || errors.Is(err, syscall.ENODEV) {
		return false, false // it was removed
	}
	k.check(err)
	events, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
	if os.IsNotExist(err) || errors.Is(err, syscall.ENODEV) {
		return false, false // meanwhile
	}
	k.check(err)
	return strings.TrimSpace(string(asks)) == "1", strings.Contains(string(events), "frozen 1")
}

// TestCutWhileFrozen: what a hob, or a keeper, has frozen that was killed in the middle
// is thawed by whatever acts next, with a stranger in it whom nobody else would wake.
func TestCutWhileFrozen(t *testing.T) {
	for _, c := range []struct{ name, verb string }{
		{"hob, and the keeper lives", ""}, {"hob, then reap", "reap"}, {"hob, then sweep", "sweep"}, {"hob, then down", "down"},
		{"hob, then rm", "rm"}, {"hob, then up", "up"}, {"keeper, then reap", "reap"}, {"keeper, then down", "down"},
	} {
		for _, point := range []string{"froze cgroup", "frozen cgroup", "signalled KILL", "thaw cgroup"} {
			t.Run(c.name+"/"+point, func(t *testing.T) {
				t.Parallel()
				cutWhileFrozen(t, strings.HasPrefix(c.name, "keeper"), c.verb, point)
			})
		}
	}
}

func cutWhileFrozen(t *testing.T, keeper bool, verb, point string) {
	k := openStew(t)
	if !k.cgroups() {
		t.Skip("left out: no cgroup can be made here")
	}
	k.play(scene{up: true, act: func(*kitchen, []string) {}}, "")
	dir := k.cgroup("m/stew").Path
	rec, err := k.task("m/stew").ReadKeeper()
	k.check(err)
	guest := k.visitor()
	switch {
	case keeper:
		k.check(os.WriteFile(k.path("home.cut"), []byte("cut="+point), 0o600))
		k.tmux("m", "kill-session", "-t", "=m")
		k.keeperEnds()
		k.check(os.Remove(k.path("home.cut")))
	default:
		if verb != "" {
			k.signal(rec.Keeper, syscall.SIGKILL)
		}
		if r := k.hobWith([]string{"HOB_CUT=cut=" + point}, "down", "m"); r.code != 128+int(syscall.SIGKILL) {
			t.Fatalf("the down was not cut: %v", r)
		}
	}
	if asked, _ := k.frozen(dir); !asked && verb != "" {
		t.Error("a cut here does not leave it frozen")
	}
	if verb != "" {
		k.moveTo(guest.Ref().PID, dir)
		k.until("the stranger to be frozen", func() bool { _, still := k.frozen(dir); return still })
	}
	switch verb {
	case "":
	case "up":
		k.hob("up")
	case "rm":
		k.must("rm", "--forget", "m")
		for _, name := range stew { // nobody knows them any more
			if k.alive(name) {
				k.endPins([]string{name})
			}
		}
	case "reap":
		k.hob("reap") // exit 4: what became of a stop that was cut it leaves to a down
	default:
		k.hob(verb, "m")
	}
	k.until("it to be thawed", func() bool { asked, still := k.frozen(dir); return !asked && !still })
	if guest.Verify().Verdict != identity.Owned {
		t.Error("the stranger was ended")
	}
	k.endPins([]string{"guest"})
	delete(k.pins, "guest")
	if verb != "rm" {
		k.finish(false)
		k.must("down", "--all") // removes the cgroup that somebody was in
		k.must("rm", "m")
	} else {
		k.must("reap")
	}
}
