//go:build unix

package sweep_test

import (
	"slices"
	"strings"
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
		move := s.intrude
		if s.src.Intn(3) == 2 {
			move = s.emigrate
		}
		s.w.At(time.Duration(s.src.Intn(4000))*time.Millisecond, move)
	}
}

// intrude moves a stranger into the task's cgroup. Where the keeper has stamped its
// tree any; else one that was there before the command. (A younger one that is moved
// in behind the back of all hobs, has no living kin, and cannot be told by a stamp,
// could be told by nobody; the README says so.)
func (s *scene) intrude() {
	if s.group == nil {
		return
	}
	var from []*sim.Process
	for _, p := range s.w.Processes() {
		mine := p.Tree() == simTask || p == s.w.Caller() || p == s.w.Init()
		old := s.command.Born().Sub(p.Born()) >= 10*time.Millisecond
		if p.Alive() && !mine && (old || s.target.Stamp != 0) {
			from = append(from, p)
		}
	}
	if len(from) > 0 {
		s.intruded = true
		s.w.Move(from[s.src.Intn(len(from))], s.group)
	}
}

// emigrate has a process of the task leave the cgroup.
func (s *scene) emigrate() {
	if p := s.anyOfTree(); p != nil {
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
	s.checkGroupKills(bad)
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

// checkGroupKills: whoever a cgroup.kill ended was on disk before, or was forked
// after the list was made that went there.
func (s *scene) checkGroupKills(bad bad) {
	l := s.w.Ledger()
	for _, d := range l.Deliveries {
		if !d.Group || d.Unseen || s.full {
			continue
		}
		held := slices.ContainsFunc(l.Saves, func(sv sim.Save) bool {
			return sv.Step < d.Step && slices.Contains(sv.Serials, d.To.Serial())
		})
		if !held && d.At.Sub(d.To.Born()) > settled {
			bad("ended by cgroup.kill without being in a saved capture: %v", d)
		}
	}
}

// diedAt reports whether one of them ended while a cgroup was killed: who ended by
// itself in the moment between the list and the write cannot be told from it.
func diedAt(all []*sim.Process, at time.Time) bool {
	return slices.ContainsFunc(all, func(p *sim.Process) bool {
		return !p.Alive() && at.Sub(p.Died()).Abs() < 20*time.Millisecond
	})
}

// The faults of cgroups that are planted between hob and the world.

// grouped is a host with other cgroups.
type grouped struct {
	identity.Host
	cgroups func(identity.Cgroups) identity.Cgroups
}

func (h grouped) Cgroups() identity.Cgroups { return h.cgroups(h.Host.Cgroups()) }

// unlooked kills a cgroup without looking who is in it.
type unlooked struct {
	identity.Cgroups
	s *scene
}

type unlookedGroup struct {
	identity.Cgroup
	s *scene
}

func (c unlooked) Open(ref identity.CgroupRef) (identity.Cgroup, error) {
	g, err := c.Cgroups.Open(ref)
	if err != nil {
		return nil, err
	}
	return unlookedGroup{g, c.s}, nil
}

func (g unlookedGroup) Procs() (identity.CgroupProcs, error) {
	p, err := g.Cgroup.Procs()
	p.PIDs = slices.DeleteFunc(p.PIDs, func(pid int) bool {
		q := g.s.w.Find(pid)
		return q == nil || q.Tree() != simTask
	})
	return p, err
}

func (g unlookedGroup) Kill(func(identity.CgroupProcs) error) error {
	return g.Cgroup.Kill(func(identity.CgroupProcs) error { return nil })
}

// byPath takes the cgroup that has the recorded path for the recorded one.
type byPath struct {
	identity.Cgroups
	s *scene
}

func (c byPath) Open(ref identity.CgroupRef) (identity.Cgroup, error) {
	g, err := c.Cgroups.Open(ref)
	for guess := ref.Inode + 1; err != nil && c.s.w.CgroupAt(ref.Path) != nil && guess < ref.Inode+50; guess++ {
		try := ref
		try.Inode = guess
		g, err = c.Cgroups.Open(try)
	}
	return g, err
}

// welcoming takes everybody in the cgroup for one of the task's.
type welcoming struct {
	identity.Host
	s *scene
}

type welcomed struct{ over }

func (h welcoming) Open(pid int) (identity.Handle, error) {
	pin, err := h.Host.Open(pid)
	if err != nil {
		return nil, err
	}
	return welcomed{over{pin, h.s}}, nil
}

func (h welcomed) Read(want identity.Field) (identity.Process, error) {
	row, err := h.Handle.Read(want)
	if p := h.s.w.Find(row.PID); err == nil && want&identity.WantEnviron != 0 && p != nil && p.Cgroup() == h.s.group {
		row.Start, row.Environ, row.Stamp = h.s.command.Ref().Start, nil, h.s.target.Stamp
	}
	return row, err
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
	for _, o := range []sim.Options{{}, {NoCgroupKill: true}, {NoPidfs: true}, {NoChildren: true}} {
		f := newFamily(o)
		mid := f.child.Fork(sim.Proc{Setsid: true})
		unseen := mid.Fork(sim.Proc{Setsid: true, Env: []string{}, Args: []string{"x"}, Do: []sim.Behaviour{sim.Swallow(15)}})
		mid.Exit()
		f.force()
		f.stop(false)
		if wrong := f.check(); len(wrong) > 0 || unseen.Alive() || f.report.Verdict != sweep.Clean {
			t.Errorf("%+v: alive %t: %s\n%v", o, unseen.Alive(), strings.Join(wrong, "\n"), played{f.scene, nil})
		}
		if byOne := len(f.w.Ledger().GroupKills) > 0; byOne == o.NoCgroupKill {
			t.Errorf("%+v: ended by one write: %t", o, byOne)
		}
		if !strings.Contains(strings.Join(f.report.Host.Notes, " "), "nobody else bears its stamp") {
			t.Errorf("%q", f.report.Host.Notes)
		}
	}
}

// TestCgroupLastInstant: who is moved in after the last look at who is there ends with
// the cgroup, and no test takes that for a stranger that was signalled; who was there
// at that look is none of these.
func TestCgroupLastInstant(t *testing.T) {
	for _, c := range []struct {
		name   string
		before bool
	}{{"before the last look", true}, {"after it", false}} {
		t.Run(c.name, func(t *testing.T) {
			f := newFamily(sim.Options{})
			guest := f.w.Spawn(f.w.Init(), sim.Proc{Stranger: true, Setsid: true, Args: []string{"/usr/bin/guest"}})
			f.host = grouped{f.host, func(all identity.Cgroups) identity.Cgroups {
				return hurried{all, func() { f.w.Move(guest, f.group) }, c.before}
			}}
			f.force()
			f.stop(false)
			if wrong := f.check(); len(wrong) > 0 || guest.Alive() != c.before {
				t.Errorf("the guest lives: %t; %s\n%v", guest.Alive(), strings.Join(wrong, "\n"), played{f.scene, nil})
			}
		})
	}
}

// hurried moves somebody in just before, or just after, the look of a kill.
type hurried struct {
	identity.Cgroups
	move   func()
	before bool
}

type hurriedGroup struct {
	identity.Cgroup
	hurried
}

func (c hurried) Open(ref identity.CgroupRef) (identity.Cgroup, error) {
	g, err := c.Cgroups.Open(ref)
	if err != nil {
		return nil, err
	}
	return hurriedGroup{g, c}, nil
}

func (g hurriedGroup) Kill(allow func(identity.CgroupProcs) error) error {
	if g.before {
		g.move()
		return g.Cgroup.Kill(allow)
	}
	return g.Cgroup.Kill(func(p identity.CgroupProcs) error {
		err := allow(p)
		if err == nil {
			g.move()
		}
		return err
	})
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
	if wrong := f.check(); len(wrong) > 0 || f.report.Verdict != sweep.Unverified || !alien.Alive() {
		t.Errorf("%s, %s\n%v", f.report.Verdict, strings.Join(wrong, "\n"), played{f.scene, nil})
	}
}
