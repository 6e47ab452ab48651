//go:build unix

package sweep_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/identity/sim"
	"hob/sweep"
)

// makeCgroup makes the task's cgroup, as its keeper does before the command is
// started, and what hob has on disk names it. It is nil where none can be made.
func (s *scene) makeCgroup() *sim.Cgroup {
	was := s.w.Caller()
	s.w.CallFrom(s.keeper)
	defer s.w.CallFrom(was)
	all := s.w.Host().Cgroups()
	at, err := all.Place("hob-" + simMarker + "-" + simTask)
	if err != nil {
		return nil
	}
	g, err := all.Make(at)
	if err != nil {
		return nil
	}
	defer g.Close()
	s.disk.Cgroup = new(g.Ref())
	s.group = s.w.CgroupAt(g.Ref().Path)
	return s.group
}

// migrations are moves in and out of the task's cgroup, at any moment.
func (s *scene) migrations() {
	if s.group == nil || s.src.Intn(3) < 2 {
		return
	}
	for range 1 + s.src.Intn(3) {
		intrude := func() { s.intrude() }
		move := sim.Pick(s.src, intrude, intrude, s.emigrate, s.freezes)
		s.w.At(time.Duration(s.src.Intn(4000))*time.Millisecond, move)
	}
}

// intrude moves a stranger into the task's cgroup. Where the keeper has stamped its
// tree any; else one that was there before the command. (A younger one that is moved
// in behind the back of all hobs, has no living kin, and cannot be told by a stamp,
// could be told by nobody; the README says so.)
func (s *scene) intrude() *sim.Process {
	if s.group == nil {
		return nil
	}
	var from []*sim.Process
	for _, p := range s.w.Processes() {
		mine := p.Tree() == simTask || p == s.w.Caller() || p == s.w.Init()
		old := s.command.Born().Sub(p.Born()) >= 10*time.Millisecond
		if p.Alive() && !mine && (old || s.target.Stamp != 0) {
			from = append(from, p)
		}
	}
	if len(from) == 0 {
		return nil
	}
	p := from[s.src.Intn(len(from))]
	s.intruded = true
	s.w.Move(p, s.group)
	return p
}

// freezes has a person freeze the task's cgroup, or what the caller has frozen, and
// perhaps thaw it.
func (s *scene) freezes() {
	if s.group == nil {
		return
	}
	s.w.Freeze(s.group, true)
	if s.src.Intn(2) == 1 {
		s.w.At(time.Duration(s.src.Intn(1000))*time.Millisecond, func() {
			if s.group != nil {
				s.w.Freeze(s.group, false)
			}
		})
	}
}

// icyScene is one in which the stop comes to force, in a cgroup that can be frozen.
func icyScene(src sim.Source) *scene {
	o := machine(src)
	o.OS, o.NoCgroups, o.CgroupDenied, o.NoFreezer, o.UID = "", false, false, false, 0
	s := sceneOn(src, o)
	s.icy = true
	s.target.Stop.Grace, s.target.Stop.TermGrace = sim.Pick(src, 0, 300*time.Millisecond), sim.Pick(src, 0, 100*time.Millisecond)
	for range 1 + src.Intn(3) {
		if p := s.anyOfTree(); p != nil {
			p.Fork(sim.Proc{Setsid: src.Intn(2) == 1, Do: []sim.Behaviour{sim.Swallow(syscall.SIGTERM, syscall.SIGHUP),
				sim.Fan(src.Intn(4), time.Duration(1+src.Intn(300))*time.Millisecond, s.shape())}})
		}
	}
	return s
}

// freezing is what happens while hob has the task's cgroup frozen: people
// move strangers in, perhaps only for a moment, and members out; the keeper starts
// something in it, as it does for a probe, and waits until that has begun; so does one
// of the tree that is not in it; somebody else thaws it.
func (s *scene) freezing(g *sim.Cgroup) {
	if g != s.group || !s.icy && s.src.Intn(2) == 0 {
		return
	}
	for range 1 + s.src.Intn(4) {
		do := sim.Pick(s.src, func() { s.intrude() }, s.visit, s.emigrate, func() { s.bornIn(s.keeper) }, func() { s.bornIn(s.anyOfTree()) }, s.newcomer, s.meddle)
		s.w.At(time.Duration(s.src.Intn(30))*100*time.Microsecond, func() {
			if s.group == nil {
				return
			}
			if on, _ := s.group.Frozen(); on {
				do()
			}
		})
	}
}

// visit moves a stranger in and, a moment later, out.
func (s *scene) visit() {
	if p := s.intrude(); p != nil {
		s.w.At(time.Duration(s.src.Intn(20))*100*time.Microsecond, func() { s.w.Move(p, s.w.RootCgroup()) })
	}
}

// bornIn has somebody of the task fork a child into its cgroup.
func (s *scene) bornIn(p *sim.Process) {
	if p == nil || !p.Alive() || p.Spared() {
		return
	}
	d := s.shape()
	d.Cgroup, d.VFork = s.group, s.src.Intn(2) == 1
	if d.Args == nil {
		d.Args = []string{"/usr/bin/probe"}
	}
	if p == s.keeper {
		d.Env = simEnv // it has another in between, as its keeper's
	}
	p.Fork(d)
}

// newcomer has a stranger fork a child into the task's cgroup.
func (s *scene) newcomer() {
	if p := s.stranger(); p != nil && s.target.Stamp != 0 {
		s.intruded = true
		p.Fork(sim.Proc{Cgroup: s.group, VFork: s.src.Intn(2) == 1, Args: []string{"/usr/bin/newcomer"}})
	}
}

// meddle thaws what is frozen, whoever has done that.
func (s *scene) meddle() { s.w.Freeze(s.group, false) }

// emigrate has a process of the task leave the cgroup.
func (s *scene) emigrate() {
	if p := s.anyOfTree(); p != nil && s.group != nil {
		s.emigrated = true
		s.w.Move(p, s.w.RootCgroup())
	}
}

// remake puts another cgroup of the same name in the place of the task's, once
// nobody is in that, and strangers into it.
func (s *scene) remake() {
	if s.group == nil || s.group.Rmdir() != nil {
		return
	}
	fresh := s.w.CgroupAt(s.group.Dir()[:strings.LastIndex(s.group.Dir(), "/")]).Mkdir("hob-" + simMarker + "-" + simTask)
	s.group = nil
	d := s.outsider(s.w, s.src) // younger than the command, and an orphan as any daemon of the task's
	d.Stranger = true
	if p := s.w.Spawn(s.w.Init(), d); p != nil {
		s.w.Move(p, fresh)
	}
}

// checkCgroup: who is in the task's cgroup is named, whatever has become of the
// keeper; where the cgroup never held anybody else's, it is ended.
func (s *scene) checkCgroup(bad bad) {
	s.checkFreezes(bad)
	if s.group == nil || !s.clear() || s.err != nil {
		return
	}
	pure := !s.intruded && !s.emigrated && s.target.Kind != sweep.Shell && len(s.target.Stop.Spare) == 0 && !s.passed() &&
		!slices.ContainsFunc(s.w.Ever(), (*sim.Process).Spared)
	for _, p := range s.group.Procs() {
		age := s.ended.Sub(p.Born())
		if p.Tree() == simTask && !s.named(p) && !s.excusedOwn(p) && age > settled {
			bad("%v is in the task's cgroup and is not named", p)
		}
		if p.Tree() == simTask && pure && p.Killable(s.o.UID) && age > time.Second {
			bad("%v is in the task's cgroup, which holds nothing else, and was not ended", p)
		}
	}
}

// passed reports whether the last invocation was not a whole stop.
func (s *scene) passed() bool {
	last := s.turns[len(s.turns)-1]
	return last.cut || strings.HasPrefix(last.what, "dry") || strings.HasPrefix(last.what, "sweep of")
}

func (s *scene) excusedOwn(p *sim.Process) bool {
	return slices.ContainsFunc(s.target.Spared, func(r identity.Ref) bool { return s.w.Truth(r) == p })
}

// checkFreezes: hob waits until the cgroup is frozen, thaws it whatever comes between,
// in the next invocation if need be, and not what somebody else has frozen.
func (s *scene) checkFreezes(bad bad) {
	for _, d := range s.w.Ledger().Deliveries {
		if d.Early > 0 && d.Early < 400*time.Millisecond && d.Sig == syscall.SIGKILL && !s.wasCut() {
			bad("killed %v after its cgroup was to be frozen, while others in it ran: %v", d.Early, d)
		}
	}
	all := s.w.Ledger().Freezes
	for i, f := range all {
		if f.On && !s.wasCut() && (i+1 == len(all) || all[i+1].On || all[i+1].At.Sub(f.At) > time.Second) {
			bad("frozen at %v, and not thawed within a second", f.At)
		}
		if f.Theirs && !s.wasCut() {
			bad("took over what somebody else has frozen, at %v", f.At)
		}
	}
	if s.group == nil || !s.clear() || s.turns[len(s.turns)-1].cut {
		return
	}
	if on, byHob := s.group.Frozen(); on && byHob {
		bad("the cgroup is left frozen by hob")
	}
}

// TestCgroupOutsider: one that was seen in the cgroup, and is none of the task's,
// takes away what the cgroup proves, also for the hobs that come after, and when
// it has left the cgroup.
func TestCgroupOutsider(t *testing.T) {
	f := newFamily(sim.Options{})
	guest := f.w.Spawn(f.w.Init(), sim.Proc{Stranger: true, Setsid: true, Args: []string{"/usr/bin/guest"}})
	f.w.Move(guest, f.group)
	f.observe()
	if len(f.disk.Guests) != 1 || f.disk.Guests[0].PID != guest.PID() {
		t.Fatalf("the keeper has not written the guest down: %+v", f.disk.Guests)
	}
	heir := guest.Fork(sim.Proc{Args: []string{"/usr/bin/heir"}})
	guest.Exit() // its child is an orphan in the cgroup, as any daemon of the task's would be
	f.force()
	f.stop(false)
	if wrong := f.check(); len(wrong) > 0 || !heir.Alive() {
		t.Errorf("heir alive %t: %s\n%v", heir.Alive(), strings.Join(wrong, "\n"), played{f.scene, nil})
	}
	if !f.named(heir) {
		t.Errorf("who is left in the cgroup is not named\n%v", played{f.scene, nil})
	}
}

// TestCgroupFindsWhatGrewUnseen: what has forked and left everything behind since
// the last rolling capture of a keeper that was killed is ended.
func TestCgroupFindsWhatGrewUnseen(t *testing.T) {
	for _, o := range []sim.Options{{}, {NoFreezer: true}, {NoPidfs: true}, {NoChildren: true}} {
		f := newFamily(o)
		mid := f.child.Fork(sim.Proc{Setsid: true})
		unseen := mid.Fork(sim.Proc{Setsid: true, Env: []string{}, Args: []string{"x"}, Do: []sim.Behaviour{sim.Swallow(15)}})
		mid.Exit()
		f.force()
		f.stop(false)
		if wrong := f.check(); len(wrong) > 0 || unseen.Alive() || f.report.Verdict != sweep.Clean {
			t.Errorf("%+v: alive %t: %s\n%v", o, unseen.Alive(), strings.Join(wrong, "\n"), played{f.scene, nil})
		}
		if frozen := len(f.w.Ledger().Freezes) > 0; frozen == o.NoFreezer {
			t.Errorf("%+v: frozen: %t", o, frozen)
		}
		if !strings.Contains(strings.Join(f.report.Host.Notes, " "), "nobody else bears its stamp") {
			t.Errorf("%q", f.report.Host.Notes)
		}
	}
}

// TestCgroupLastInstant: who is moved in after the last look at who is there is frozen
// with the others, goes on when they have ended, and nothing else happens to it.
func TestCgroupLastInstant(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after bool
	}{{"before the freeze", true, false}, {"while it is frozen", false, true}} {
		t.Run(c.name, func(t *testing.T) {
			f := newFamily(sim.Options{})
			guest := f.w.Spawn(f.w.Init(), sim.Proc{Stranger: true, Setsid: true, Args: []string{"/usr/bin/guest"}})
			move, worked := func() { f.w.Move(guest, f.group) }, 0
			f.faulty(func(g identity.Cgroup) identity.Cgroup { return visited{g, c.before, c.after, move} })
			f.force()
			f.stop(false)
			guest.After(0, func() { worked++ })
			f.w.Pass(time.Second)
			if wrong := f.check(); len(wrong) > 0 || !guest.Alive() || guest.Frozen() || worked != 1 {
				t.Errorf("the guest lives: %t, is frozen: %t; %s\n%v", guest.Alive(), guest.Frozen(), strings.Join(wrong, "\n"), played{f.scene, nil})
			}
			if len(f.w.Ledger().Freezes) == 0 {
				t.Error("nothing was frozen")
			}
		})
	}
}

// visited has somebody come in just before it is frozen, or after.
type visited struct {
	identity.Cgroup
	before, after bool
	move          func()
}

func (g visited) Freeze() error {
	if g.before {
		g.move()
	}
	return g.Cgroup.Freeze()
}

func (g visited) AwaitFrozen(ctx context.Context, until time.Time) (bool, error) {
	on, err := g.Cgroup.AwaitFrozen(ctx, until)
	if g.after {
		g.move()
	}
	return on, err
}

// TestCgroupKnownGuest: with somebody in it who is known not to be the task's nothing
// is frozen at all.
func TestCgroupKnownGuest(t *testing.T) {
	f := newFamily(sim.Options{})
	guest := f.w.Spawn(f.w.Init(), sim.Proc{Stranger: true, Setsid: true, Args: []string{"/usr/bin/guest"}})
	f.w.Move(guest, f.group)
	f.stop(false)
	if wrong := f.check(); len(wrong) > 0 || len(f.w.Ledger().Freezes) != 0 || !guest.Alive() {
		t.Errorf("%v: %s\n%v", f.w.Ledger().Freezes, strings.Join(wrong, "\n"), played{f.scene, nil})
	}
}

// TestCgroupThatDoesNotFreeze: with one that is stuck in a driver the others are ended
// all the same, the report says who did not freeze, and the cgroup is thawed.
func TestCgroupThatDoesNotFreeze(t *testing.T) {
	f := newFamily(sim.Options{})
	stuck := f.leader.Fork(sim.Proc{Stuck: true})
	f.stop(false)
	if wrong := f.check(); len(wrong) > 0 || f.below.Alive() || !stuck.Alive() || f.report.Verdict != sweep.Survivors || f.freezes() != 1 {
		t.Errorf("%d freezes, %s: %s\n%v", f.freezes(), f.report.Verdict, strings.Join(wrong, "\n"), played{f.scene, nil})
	}
	want := fmt.Sprintf("did not freeze within 500ms: process %d is held up in state D, in gpu_wait", stuck.PID())
	if !strings.Contains(strings.Join(f.report.Host.Notes, " "), want) {
		t.Errorf("%q", f.report.Host.Notes)
	}
}

// TestCgroupFrozenByOthers: what a person has frozen is ended, and stays frozen.
func TestCgroupFrozenByOthers(t *testing.T) {
	f := newFamily(sim.Options{})
	f.w.Freeze(f.group, true)
	f.w.Pass(time.Second)
	f.stop(false)
	if wrong := f.check(); len(wrong) > 0 || f.report.Verdict != sweep.Clean {
		t.Errorf("%s: %s\n%v", f.report.Verdict, strings.Join(wrong, "\n"), played{f.scene, nil})
	}
	if on, byHob := f.group.Frozen(); !on || byHob {
		t.Errorf("frozen %t, by hob %t", on, byHob)
	}
	if !strings.Contains(strings.Join(f.report.Host.Notes, " "), "frozen by somebody else") {
		t.Errorf("%q", f.report.Host.Notes)
	}
}

// TestCutStopIsThawedFirst: what a hob that was cut off has left frozen goes on as soon
// as the next one begins, not when that one comes to force: who was ending by itself
// has the grace to do so, and a stranger in there does not stand still for as long.
func TestCutStopIsThawedFirst(t *testing.T) {
	for _, verb := range []string{"down", "sweep"} {
		t.Run(verb, func(t *testing.T) {
			f := newFamily(sim.Options{})
			slow := f.child.Fork(sim.Proc{Do: []sim.Behaviour{sim.ExitOn(syscall.SIGTERM, 500*time.Millisecond)}})
			guest := f.w.Spawn(f.w.Init(), sim.Proc{Stranger: true, Setsid: true, Args: []string{"/usr/bin/guest"}})
			host, policy, wentOn := f.host, f.target.Stop, time.Time{}
			f.faulty(func(g identity.Cgroup) identity.Cgroup {
				return visited{g, false, true, func() { f.w.Move(guest, f.group); f.w.CutAfter(0) }}
			})
			f.target.Stop.Grace, f.target.Stop.TermGrace = 0, 0
			cut := f.run("down", sweep.Options{Reason: "down"}, false)
			f.host, f.target.Stop = host, policy
			f.w.Pass(time.Second)
			if on, byHob := f.group.Frozen(); !cut || !on || !byHob || !slow.Frozen() || !guest.Frozen() {
				t.Fatalf("cut %t, frozen %t by hob %t\n%v", cut, on, byHob, played{f.scene, nil})
			}
			guest.After(0, func() { wentOn = f.w.Now() })
			began := f.w.Now()
			f.run(verb, sweep.Options{Reason: verb}, false)
			if wrong := f.check(); len(wrong) > 0 || f.report.Verdict != sweep.Clean || !guest.Alive() {
				t.Errorf("%s: %s\n%v", f.report.Verdict, strings.Join(wrong, "\n"), played{f.scene, nil})
			}
			if wentOn.IsZero() || wentOn.Sub(began) > 100*time.Millisecond {
				t.Errorf("a stranger in the cgroup went on %v after the next hob had begun", wentOn.Sub(began))
			}
			if slices.ContainsFunc(f.w.Ledger().Deliveries, func(d sim.Delivery) bool { return d.To == slow && d.Sig == syscall.SIGKILL }) {
				t.Errorf("one that was ending by itself was killed\n%v", played{f.scene, nil})
			}
		})
	}
}

// TestCgroupAlien: one of another pid namespace has no number here, so nobody could
// look at all that is in the cgroup.
func TestCgroupAlien(t *testing.T) {
	f := newFamily(sim.Options{})
	alien := f.w.Spawn(f.w.Init(), sim.Proc{Stranger: true, Setsid: true})
	alien.Alien()
	f.w.Move(alien, f.group)
	f.force()
	f.stop(false)
	f.opaque = true
	if wrong := f.check(); len(wrong) > 0 || f.report.Verdict != sweep.Unverified || !alien.Alive() || f.freezes() != 0 {
		t.Errorf("%s, %s\n%v", f.report.Verdict, strings.Join(wrong, "\n"), played{f.scene, nil})
	}
}
