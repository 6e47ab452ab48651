//go:build unix

package sim

import (
	"context"
	"syscall"
	"testing"
	"time"
)

// frozenPair is a process that forks each millisecond, in a cgroup that is frozen.
func frozenPair(t *testing.T) (w *World, g *Cgroup, p *Process, forks *int) {
	t.Helper()
	w, forks = New(Quiet, Options{PIDs: 900}), new(int)
	g = w.RootCgroup().Mkdir("a")
	var again func(p *Process)
	again = func(p *Process) {
		*forks++
		p.Fork(Proc{Do: []Behaviour{ExitAfter(time.Millisecond)}})
		p.After(time.Millisecond, func() { again(p) })
	}
	p = w.Spawn(w.Init(), Proc{Cgroup: g, Do: []Behaviour{{Start: again}}})
	w.Pass(10 * time.Millisecond)
	if *forks < 5 {
		t.Fatalf("%d forks", *forks)
	}
	w.Freeze(g, true)
	w.Pass(10 * time.Millisecond)
	*forks = 0
	w.Pass(50 * time.Millisecond)
	if *forks != 0 || !p.Frozen() || p.Fork(Proc{}) != nil {
		t.Fatalf("frozen %t, and %d forks", p.Frozen(), *forks)
	}
	return w, g, p, forks
}

// TestFreeze: what is frozen does nothing but die by KILL; it goes on when its cgroup
// is thawed, or when it is moved out, and then takes the signals that it was sent.
func TestFreeze(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(*World, *Cgroup, *Process)
		lives bool
		goes  bool
	}{
		"nothing":   {func(*World, *Cgroup, *Process) {}, true, false},
		"KILL":      {func(w *World, _ *Cgroup, p *Process) { w.Kill(p, syscall.SIGKILL) }, false, false},
		"TERM":      {func(w *World, _ *Cgroup, p *Process) { w.Kill(p, syscall.SIGTERM) }, true, false},
		"thaw":      {func(w *World, g *Cgroup, _ *Process) { w.Freeze(g, false) }, true, true},
		"moved out": {func(w *World, _ *Cgroup, p *Process) { w.Move(p, w.RootCgroup()) }, true, true},
		"moved on":  {func(w *World, g *Cgroup, p *Process) { w.Move(p, g.Mkdir("below")) }, true, false},
		"TERM, and thaw": {func(w *World, g *Cgroup, p *Process) {
			w.Kill(p, syscall.SIGTERM)
			w.Freeze(g, false)
		}, false, false},
		"one above is frozen": {func(w *World, g *Cgroup, _ *Process) {
			w.Freeze(w.RootCgroup(), true)
			w.Freeze(g, false)
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, g, p, forks := frozenPair(t)
			c.do(w, g, p)
			w.Pass(50 * time.Millisecond)
			if p.Alive() != c.lives || (*forks > 0) != c.goes {
				t.Errorf("alive %t, %d forks", p.Alive(), *forks)
			}
		})
	}
}

// TestBornFrozen: what is born in a cgroup that is being frozen does nothing at all
// before that is thawed, or it is moved out: it still is what its parent was. A parent
// that has forked it as vfork does waits for that, or for its end.
func TestBornFrozen(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(*World, *Cgroup, *Process)
		lives bool
		title string
		goes  bool
	}{
		"nothing":   {func(*World, *Cgroup, *Process) {}, true, "outside", false},
		"thaw":      {func(w *World, g *Cgroup, _ *Process) { w.Freeze(g, false) }, true, "worker", true},
		"moved out": {func(w *World, _ *Cgroup, p *Process) { w.Move(p, w.RootCgroup()) }, true, "worker", true},
		"KILL":      {func(w *World, _ *Cgroup, p *Process) { w.Kill(p, syscall.SIGKILL) }, false, "outside", true},
		"TERM":      {func(w *World, _ *Cgroup, p *Process) { w.Kill(p, syscall.SIGTERM) }, true, "outside", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, g, _, _ := frozenPair(t)
			outside := w.Spawn(w.Init(), Proc{Args: []string{"outside"}})
			child := outside.Fork(Proc{Cgroup: g, VFork: true, Setsid: true, Args: []string{"worker"}})
			worked := false
			outside.After(time.Millisecond, func() { worked = true })
			w.Pass(10 * time.Millisecond)
			if !child.Frozen() || worked || outside.Fork(Proc{}) != nil {
				t.Fatalf("the child is frozen: %t, its parent has gone on: %t", child.Frozen(), worked)
			}
			c.do(w, g, child)
			w.Pass(10 * time.Millisecond)
			if child.Alive() != c.lives || child.Args()[0] != c.title || worked != c.goes || (child.SID() == child.PID()) != (c.title == "worker") {
				t.Errorf("alive %t, %q, session %d, its parent has gone on: %t", child.Alive(), child.Args(), child.SID(), worked)
			}
		})
	}
}

// TestFreezeTakesTime: who is in a driver is not frozen, and keeps the cgroup from
// being frozen; who comes in is frozen after it.
func TestFreezeTakesTime(t *testing.T) {
	w, g, p, _ := frozenPair(t)
	await := func() bool {
		on, err := groupDir{groupFS{w}, g}.AwaitFrozen(context.Background(), w.Now().Add(20*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		return on
	}
	guest := w.Spawn(w.Init(), Proc{Stuck: true})
	if !await() {
		t.Error("all were frozen")
	}
	w.Move(guest, g)
	if await() || guest.Frozen() {
		t.Error("one that is stuck is said to be frozen")
	}
	guest.Unstick()
	if !await() || !guest.Frozen() || !p.Frozen() {
		t.Error("it has come out of its driver, and is not frozen")
	}
	w.Reboot()
	if on, _ := g.Frozen(); on {
		t.Error("frozen after a reboot")
	}
}
