package tasks

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"hob/identity"
	"hob/sweep"
)

// mustCgroup leaves a test out where no cgroup can be made. Root can make one
// wherever they are mounted.
func mustCgroup(t *testing.T) {
	t.Helper()
	all := localHost(t).Cgroups()
	at, err := all.Place("hob-test-" + strconv.Itoa(os.Getpid()))
	var g identity.Cgroup
	if err == nil {
		g, err = all.Make(at)
	}
	switch {
	case err == nil:
		if err := errors.Join(g.Remove(), g.Close()); err != nil {
			t.Fatal(err)
		}
	case os.Getuid() == 0 && !errors.Is(err, identity.ErrUnsupported):
		t.Fatal(err)
	default:
		t.Skipf("left out: no cgroup can be made here: %v", err)
	}
}

func (g *rig) procs(ref identity.CgroupRef) []int {
	g.t.Helper()
	c, err := g.h.Cgroups().Open(ref)
	if err != nil {
		g.t.Fatal(err)
	}
	defer c.Close()
	in, err := c.Procs()
	if err != nil {
		g.t.Fatal(err)
	}
	return in.PIDs
}

// TestKeeperMakesACgroup: the command and all below it are born in it, the keeper is
// not in it, both records name it before the fork, and it goes with the keeper.
func TestKeeperMakesACgroup(t *testing.T) {
	mustCgroup(t)
	t.Parallel()
	g := newRig(t, sweep.Server).sh("(setsid -f env -i /bin/sleep 600); sleep 601 & wait").start()
	var c sweep.Capture
	g.until("three processes", func() bool {
		k, kerr := g.dir.ReadKeeper()
		var err error
		c, err = g.dir.ReadCapture()
		return errors.Join(kerr, err) == nil && k.Command != nil && c.Cgroup != nil && len(g.procs(*c.Cgroup)) == 3
	})
	k := g.keeper()
	if k.Cgroup == nil || *k.Cgroup != *c.Cgroup || k.CgroupNote != "" {
		t.Errorf("keeper.json says %+v %q, capture.json %+v", k.Cgroup, k.CgroupNote, c.Cgroup)
	}
	in := g.procs(*c.Cgroup)
	if !slices.Contains(in, k.Command.PID) || slices.Contains(in, k.Keeper.PID) {
		t.Errorf("it holds %v; the command is %d, the keeper %d", in, k.Command.PID, k.Keeper.PID)
	}
	if name := "hob-" + g.spec.RunID + "-llm-nonce-1"; !strings.HasSuffix(c.Cgroup.Path, name) {
		t.Errorf("it is called %s, want %s", c.Cgroup.Path, name)
	}
	g.signal(syscall.SIGTERM)
	g.code()
	if _, err := os.Stat(c.Cgroup.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it outlives its keeper: %v", err)
	}
	if k := g.keeper(); k.Cgroup != nil {
		t.Errorf("keeper.json still names it: %+v", k.Cgroup)
	}
}

// TestRestartInTheSameCgroup: a command that is started again is born where the
// one before was.
func TestRestartInTheSameCgroup(t *testing.T) {
	mustCgroup(t)
	t.Parallel()
	g := newRig(t, sweep.Server).sh("[ -e again ] && exec sleep 600; touch again; exit 3")
	g.spec.Restart = Restart{Policy: "on-failure", Max: 2, Backoff: 1}
	g.start()
	g.until("a restart", func() bool { k, err := g.dir.ReadKeeper(); return err == nil && k.Restarts == 1 && k.Command != nil })
	k := g.keeper()
	if k.Cgroup == nil {
		t.Fatalf("no cgroup: %s", k.CgroupNote)
	}
	if in := g.procs(*k.Cgroup); !slices.Equal(in, []int{k.Command.PID}) {
		t.Errorf("it holds %v, and the command is %d", in, k.Command.PID)
	}
}

// TestHookInTheCgroup: what a hook leaves running is in it too.
func TestHookInTheCgroup(t *testing.T) {
	mustCgroup(t)
	t.Parallel()
	g := newRig(t, sweep.Server).sh("exec sleep 600")
	g.spec.Before = &Hook{Args: []string{"/bin/sh", "-c", "setsid -f env -i /bin/sleep 602 >/dev/null 2>&1"}, Timeout: patience}
	g.start()
	g.until("both to be in it", func() bool {
		c, err := g.dir.ReadCapture()
		return err == nil && c.Cgroup != nil && len(g.procs(*c.Cgroup)) == 2
	})
}

// TestCgroupThatCannotBeUsed: a command that cannot be born in the cgroup is started
// all the same, and the records say that it is in none, before.
func TestCgroupThatCannotBeUsed(t *testing.T) {
	mustCgroup(t)
	t.Parallel()
	g := newRig(t, sweep.Server).sh("exec sleep 600")
	g.role = "cgroupless"
	g.start()
	g.until("the command", func() bool { k, err := g.dir.ReadKeeper(); return err == nil && k.Command != nil })
	c, err := g.dir.ReadCapture()
	if k := g.keeper(); err != nil && !errors.Is(err, ErrNoRecord) || c.Cgroup != nil || k.Cgroup != nil || !strings.Contains(k.CgroupNote, "nothing could be started in it") {
		t.Errorf("%v, capture %+v, keeper %+v %q", err, c.Cgroup, k.Cgroup, k.CgroupNote)
	}
}

// closedHost makes cgroups in which nothing can be born.
type closedHost struct{ identity.Host }

type closedCgroups struct{ identity.Cgroups }

type closedCgroup struct{ identity.Cgroup }

func (h closedHost) Cgroups() identity.Cgroups { return closedCgroups{h.Host.Cgroups()} }

func (c closedCgroups) Make(at identity.CgroupRef) (identity.Cgroup, error) {
	g, err := c.Cgroups.Make(at)
	if err != nil {
		return nil, err
	}
	return closedCgroup{g}, nil
}

// FD is no descriptor of a cgroup: clone3 says EBADF.
func (closedCgroup) FD() int { return 1 << 20 }

func init() {
	roles["cgroupless"] = func(args []string) int {
		h, err := identity.Local()
		if err != nil {
			return 98
		}
		return RunKeeper(closedHost{h}, args[0], "test")
	}
}
