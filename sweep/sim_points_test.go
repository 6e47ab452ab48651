//go:build unix

package sweep_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/identity/sim"
	"hob/sweep"
)

// family is a small task in which every kind of kinship is there.
type family struct {
	*scene
	child, leader, below, orphan, closed, late, alone, heir *sim.Process
}

// newFamily starts it: a child of the command, below it a session of its own
// whose leader does not listen, with a child; an orphan that the keeper has
// adopted; and a process whose row cannot be read, with a child that can.
func newFamily(o sim.Options) *family {
	f := &family{scene: sceneOn(sim.Quiet, o)}
	f.child = f.command.Fork(sim.Proc{})
	f.leader = f.child.Fork(sim.Proc{Setsid: true, Do: []sim.Behaviour{sim.Swallow(syscall.SIGTERM, syscall.SIGHUP)}})
	f.below = f.leader.Fork(sim.Proc{})
	between := f.child.Fork(sim.Proc{})
	f.orphan = between.Fork(sim.Proc{Setsid: true})
	between.Exit()
	f.observe()
	return f
}

// missed says so when what a member forked during the stop was not captured, though
// the member lived long enough for a look at its children.
func (f *family) missed() []string {
	if f.late == nil || f.saved[f.late.Serial()] || !f.late.Alive() || f.leader.Died().Sub(f.late.Born()) < time.Second {
		return nil
	}
	return []string{f.late.String() + " was missed"}
}

// stranger is one that looks like the task and has children.
var stranger = sim.Proc{Stranger: true, Setsid: true, Args: simArgs, Env: simEnv, Do: []sim.Behaviour{sim.Fan(2, 0, sim.Proc{})}}

// swap ends a process and gives its number to a stranger, if it is free.
func (f *family) swap(p *sim.Process) {
	p.Exit()
	f.w.NextNumber(p.PID())
	f.w.Spawn(f.w.Init(), stranger)
}

// swapSession empties a session, so that its number can be a stranger's session.
func (f *family) swapSession() {
	f.below.Exit()
	f.swap(f.leader)
}

var machines = map[string]sim.Options{
	"new":          {},
	"slow reaping": {InitReaps: 20 * time.Millisecond},
	"no pidfs":     {NoPidfs: true},
	"no pidfd":     {NoPidfd: true},
	"no children":  {NoChildren: true},
	"no subreaper": {NoSubreaper: true},
	"macOS":        {OS: "darwin"},
	"no cgroups":   {NoCgroups: true},
}

// points chooses the points: all in a soak (HOB_SCHEDULES is set), else every
// third, from a first one that changes from run to run.
func points(t *testing.T) (first, stride int) {
	t.Helper()
	stride = 3
	switch _, soak := os.LookupEnv("HOB_SCHEDULES"); {
	case soak:
		stride = 1
	case testing.Short():
		stride = 13
	}
	return rand.IntN(stride), stride
}

// What can happen is made to happen at every single point of a stop, one point a
// run: between any two system calls.
func TestAtEveryPoint(t *testing.T) {
	first, stride := points(t)
	for _, c := range []struct {
		name   string
		before func(*family) // before the stop
		at     func(*family) // at the point
	}{
		{"nothing", nil, func(*family) {}},
		{"the command's number is reused", nil, func(f *family) { f.swap(f.command) }},
		{"a child's number is reused", nil, func(f *family) { f.swap(f.child) }},
		{"a leader's number is reused", nil, func(f *family) { f.swap(f.leader) }},
		{"an orphan's number is reused", nil, func(f *family) { f.swap(f.orphan) }},
		{"a session's number is reused", nil, (*family).swapSession},
		{"a session's number is reused, without a keeper", func(f *family) { f.force() }, (*family).swapSession},
		{"a child's number is reused, without a keeper", func(f *family) { f.force() }, func(f *family) { f.swap(f.child) }},
		{"the keeper is killed", nil, func(f *family) { f.force() }},
		{"the keeper's number is a member's", nil, func(f *family) {
			f.force()
			f.w.NextNumber(f.keeper.PID())
			f.late = f.leader.Fork(sim.Proc{Args: []string{"x"}, Env: []string{}})
		}},
		{"a member forks", nil, func(f *family) { f.leader.Fork(sim.Proc{}) }},
		{"a member forks a daemon", nil, func(f *family) {
			mid := f.leader.Fork(sim.Proc{})
			if mid != nil {
				mid.Fork(sim.Proc{Setsid: true, Env: []string{}})
				mid.Exit()
			}
		}},
		{"a member becomes a tmux server", nil, func(f *family) {
			if f.leader.Alive() {
				f.leader.Exec("tmux: server", "tmux")
				f.leader.After(2*time.Millisecond, func() { // hob needs a look to see it
					f.leader.Spare()
					f.leader.Fork(sim.Proc{Setsid: true})
				})
			}
		}},
		{"one that is left alone forks, and ends", func(f *family) { f.spare() }, (*family).leaves},
		{"one that is left alone forks a daemon, and ends", func(f *family) { f.spare() }, func(f *family) {
			if mid := f.alone.Fork(sim.Proc{}); mid != nil {
				f.alone.Exit()
				mid.Fork(sim.Proc{Setsid: true, Env: []string{}, Args: []string{"x"}})
				mid.Exit()
			}
		}},
		{"a closed process ends and leaves a child", func(f *family) {
			f.closed = f.keeper.Fork(sim.Proc{Unreadable: true, Args: []string{"x"}})
			f.closed.Fork(sim.Proc{Env: []string{}})
			f.opaque = true
		}, func(f *family) { f.closed.Exit() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for name, o := range machines {
				for k := first; ; k += stride {
					f := newFamily(o)
					if c.before != nil {
						c.before(f)
					}
					reached := false
					f.w.AfterPoints(k, func() { reached = true; c.at(f) })
					f.stop(false)
					wrong := append(f.check(), f.missed()...)
					if len(wrong) == 0 && f.report.Verdict == sweep.Clean && !f.leftSomebody() {
						wrong = f.again()
					}
					if len(wrong) > 0 {
						t.Fatalf("%s, at point %d: %s\n%v", name, k, strings.Join(wrong, "\n"), played{f.scene, nil})
					}
					if !reached {
						break
					}
				}
			}
		})
	}
}

// Hob is cut at every point of a stop, and again at every tenth of the next one.
func TestCutAtEveryPoint(t *testing.T) {
	first, stride := points(t)
	for name, o := range machines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for k := first; ; k += stride {
				f := newFamily(o)
				f.w.CutAfter(k)
				cut := f.stop(false)
				if cut {
					f.w.CutAfter(k % 97 * 10)
					f.stop(false)
					f.w.CutAfter(-1)
					f.stop(false)
				}
				if wrong := f.check(); len(wrong) > 0 {
					t.Fatalf("cut at point %d: %s\n%v", k, strings.Join(wrong, "\n"), played{f.scene, nil})
				}
				if !cut {
					break
				}
			}
		})
	}
}
