//go:build unix

package sweep_test

import (
	"context"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/identity/sim"
	"hob/sweep"
)

// brittle is a cgroup whose freezer answers as a test wants.
type brittle struct {
	identity.Cgroup
	freeze, thaw error
	frozen       func() // once it is
	tried        *int   // how often it was to be frozen
}

func (g brittle) Freeze() error {
	if g.tried != nil {
		*g.tried++
	}
	if g.freeze != nil {
		return g.freeze
	}
	return g.Cgroup.Freeze()
}

func (g brittle) Thaw() error {
	if g.thaw != nil {
		return g.thaw
	}
	return g.Cgroup.Thaw()
}

func (g brittle) AwaitFrozen(ctx context.Context, until time.Time) (bool, error) {
	on, err := g.Cgroup.AwaitFrozen(ctx, until)
	if g.frozen != nil {
		g.frozen()
	}
	return on, err
}

func (f *family) brittle(b brittle) {
	f.faulty(func(g identity.Cgroup) identity.Cgroup { b.Cgroup = g; return b })
}

// freezes is how often hob has frozen the cgroup.
func (f *family) freezes() (n int) {
	for _, w := range f.w.Ledger().Freezes {
		if w.On {
			n++
		}
	}
	return n
}

func (f *family) notes() string { return strings.Join(f.report.Host.Notes, "\n") }

// TestFrozenStopCannotFreeze: where it cannot be frozen all are ended one by one, and
// no record says that it is frozen. That is said where it is news.
func TestFrozenStopCannotFreeze(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		said bool
	}{
		"refused": {fs.ErrPermission, true}, "no freezer": {identity.ErrUnsupported, false}, "removed": {identity.ErrGone, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFamily(sim.Options{})
			tried := 0
			f.brittle(brittle{freeze: c.err, tried: &tried})
			f.stop(false)
			said := strings.Contains(strings.Join(f.w.Trace(), "\n"), "the cgroup cannot be frozen")
			if wrong := f.check(); len(wrong) > 0 || f.report.Verdict != sweep.Clean || f.disk.FrozenAt != nil || said != c.said || tried != 1 {
				t.Errorf("%s, said %t, tried %d times, frozen at %v: %s", f.report.Verdict, said, tried, f.disk.FrozenAt, strings.Join(wrong, "\n"))
			}
		})
	}
}

// TestFrozenStopTriesOnce: what could not be frozen is not tried again by the same hob,
// who would lose its time with that while the keeper's tree goes on forking.
func TestFrozenStopTriesOnce(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		stuck bool
	}{"refused": {fs.ErrPermission, false}, "one is held up": {nil, true}} {
		t.Run(name, func(t *testing.T) {
			f, tried := newFamily(sim.Options{PIDs: 300}), 0
			f.leader.Fork(sim.Proc{Stuck: c.stuck})
			for i := range 4000 {
				f.w.At(time.Duration(i)*time.Millisecond, func() { f.keeper.Fork(sim.Proc{Cgroup: f.group, Args: []string{"/usr/bin/again"}, Env: simEnv}) })
			}
			f.brittle(brittle{freeze: c.err, tried: &tried})
			f.stop(false)
			if f.checkSignals(func(format string, args ...any) { t.Errorf(format, args...) }); tried != 1 {
				t.Errorf("tried %d times", tried)
			}
		})
	}
}

// TestFrozenStopCannotThaw: what cannot be thawed is said, and stays on record until a
// hob can; what has been removed meanwhile needs none.
func TestFrozenStopCannotThaw(t *testing.T) {
	f := newFamily(sim.Options{})
	host := f.host
	f.brittle(brittle{thaw: syscall.EIO})
	f.run("down", sweep.Options{Reason: "down"}, false)
	for _, want := range []string{"the task's cgroup stays frozen, until the next look at it", "it could not be thawed yet"} {
		if !strings.Contains(f.notes(), want) {
			t.Errorf("not said: %s: %q", want, f.notes())
		}
	}
	if f.disk.FrozenAt == nil {
		t.Error("no record says that it is frozen")
	}
	f.host = host
	f.run("down", sweep.Options{Reason: "down"}, false)
	if on, _ := f.group.Frozen(); on || f.disk.FrozenAt != nil {
		t.Errorf("after the next stop it is frozen: %t, since %v", on, f.disk.FrozenAt)
	}

	f = newFamily(sim.Options{})
	f.brittle(brittle{thaw: identity.ErrGone})
	f.run("down", sweep.Options{Reason: "down"}, false)
	if strings.Contains(f.notes(), "frozen") || f.disk.FrozenAt != nil {
		t.Errorf("since %v: %q", f.disk.FrozenAt, f.notes())
	}
}

// TestFrozenStopThawsLate: what a hob that was cut off has frozen is ours to thaw also
// for a hob that could not do so when it began: it is nobody else's freeze.
func TestFrozenStopThawsLate(t *testing.T) {
	f := newFamily(sim.Options{})
	host := f.host
	f.brittle(brittle{frozen: func() { f.w.CutAfter(0) }})
	if !f.run("down", sweep.Options{Reason: "down"}, false) {
		t.Fatal("it was not cut")
	}
	f.host = host
	left := 1
	f.faulty(func(g identity.Cgroup) identity.Cgroup { return late{g, &left} })
	f.run("down", sweep.Options{Reason: "down"}, false)
	if on, _ := f.group.Frozen(); on || left != 0 || f.disk.FrozenAt != nil || strings.Contains(f.notes(), "somebody else") || f.report.Verdict != sweep.Clean {
		t.Errorf("%s, frozen %t since %v: %q", f.report.Verdict, on, f.disk.FrozenAt, f.notes())
	}
}

// late is one that cannot be thawed so often.
type late struct {
	identity.Cgroup
	left *int
}

func (g late) Thaw() error {
	if *g.left > 0 {
		*g.left--
		return syscall.EIO
	}
	return g.Cgroup.Thaw()
}

// TestFrozenStopIsInterrupted: a hob that is interrupted while it waits for the freeze
// kills nobody in it, and thaws it. (The round that is under way is gone on with.)
func TestFrozenStopIsInterrupted(t *testing.T) {
	f := newFamily(sim.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	f.brittle(brittle{frozen: cancel})
	_, err := sweep.Stop(ctx, f.host, f.target, f.disk, f, sweep.Options{Reason: "down"})
	on, _ := f.group.Frozen()
	all := f.w.Ledger().Freezes
	if err == nil || on || f.disk.FrozenAt != nil || len(all) != 2 {
		t.Fatalf("%v: frozen %t since %v, %v", err, on, f.disk.FrozenAt, all)
	}
	for _, d := range f.w.Ledger().Deliveries {
		if d.Sig == syscall.SIGKILL && d.At.Before(all[1].At) {
			t.Errorf("killed while it was frozen: %v", d)
		}
	}
}

// TestFrozenStopWhoEndsBefore: one that was to be killed, and has ended before it was,
// is not said to have been killed.
func TestFrozenStopWhoEndsBefore(t *testing.T) {
	f := newFamily(sim.Options{})
	f.brittle(brittle{frozen: func() { f.leader.Exit() }})
	f.stop(false)
	i := slices.IndexFunc(f.report.Members, func(m sweep.ReportMember) bool { return m.PID == f.leader.PID() })
	if wrong := f.check(); len(wrong) > 0 || i < 0 || f.report.Members[i].Fate != sweep.Terminated || slices.Contains(f.report.Members[i].Signals, "KILL") {
		t.Errorf("%+v: %s", f.report.Members, strings.Join(wrong, "\n"))
	}
}

// TestFrozenStopFindsTheLast: who was forked after the last look before the freeze is
// ended while nobody in there can fork any more.
func TestFrozenStopFindsTheLast(t *testing.T) {
	f := newFamily(sim.Options{})
	var last *sim.Process
	f.faulty(func(g identity.Cgroup) identity.Cgroup {
		return visited{g, true, false, func() { last = f.leader.Fork(sim.Proc{}) }}
	})
	f.stop(false)
	all := f.w.Ledger().Freezes
	i := slices.IndexFunc(f.w.Ledger().Deliveries, func(d sim.Delivery) bool { return d.To == last && d.Sig == syscall.SIGKILL })
	if wrong := f.check(); len(wrong) > 0 || len(all) != 2 || i < 0 || !f.w.Ledger().Deliveries[i].At.Before(all[1].At) {
		t.Errorf("%v, delivery %d: %s\n%v", all, i, strings.Join(wrong, "\n"), played{f.scene, nil})
	}
}

// TestFrozenStopIsRefused: one that may not be signalled is asked once in the frozen
// cgroup, and the others are ended.
func TestFrozenStopIsRefused(t *testing.T) {
	f := newFamily(sim.Options{UID: 1000})
	other := f.leader.Fork(sim.Proc{User: 1234, Ignore: []syscall.Signal{syscall.SIGHUP}})
	f.stop(false)
	kills := 0
	for _, d := range f.w.Ledger().Deliveries {
		if d.To == other && d.Sig == syscall.SIGKILL {
			kills++
		}
	}
	if !other.Alive() || f.leader.Alive() || kills != 1 || f.freezes() != 1 || f.report.Verdict != sweep.Survivors {
		t.Errorf("%s: %d kills of one that may not be signalled, %d freezes\n%v", f.report.Verdict, kills, f.freezes(), played{f.scene, nil})
	}
}

// TestFrozenStopLeavesItToTheStop: who only looks, and a sweep of a task that lives,
// thaws nothing: a stop may just be at work on it.
func TestFrozenStopLeavesItToTheStop(t *testing.T) {
	for name, living := range map[string]bool{"living": true, "dry run": false} {
		f := newFamily(sim.Options{})
		f.w.Freeze(f.group, true)
		f.disk.FrozenAt = new(f.w.Now())
		f.run("sweep", sweep.Options{Reason: "sweep", DryRun: !living}, living)
		if on, _ := f.group.Frozen(); !on || len(f.w.Ledger().Freezes) != 0 {
			t.Errorf("%s: frozen %t, %v", name, on, f.w.Ledger().Freezes)
		}
	}
}

// TestThawOfNothing: what nobody has frozen, and what has been removed since, needs no thaw.
func TestThawOfNothing(t *testing.T) {
	f := newFamily(sim.Options{})
	gone := *f.disk.Cgroup
	gone.Inode += 40
	for _, c := range []sweep.Capture{{}, {FrozenAt: new(f.w.Now())}, {Cgroup: f.disk.Cgroup}, {Cgroup: &gone, FrozenAt: new(f.w.Now())}} {
		f.w.Freeze(f.group, true)
		if err := sweep.Thaw(f.host, c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if on, _ := f.group.Frozen(); !on {
			t.Errorf("%+v: it is thawed", c)
		}
	}
}

// shut cannot pin one process.
type shut struct {
	identity.Host
	pid int
}

func (h shut) Open(pid int) (identity.Handle, error) {
	if pid == h.pid {
		return nil, identity.ErrUnverifiable
	}
	return h.Host.Open(pid)
}

// besides shows somebody in it besides.
type besides struct {
	identity.Cgroup
	pid int
}

func (g besides) Procs() (identity.CgroupProcs, error) {
	in, err := g.Cgroup.Procs()
	in.PIDs = append(slices.Clone(in.PIDs), g.pid)
	return in, err
}

// TestFrozenStopWhoIsListed: one in the cgroup of whom nothing can be told is no dead one,
// and nothing is frozen with it; one that has ended since it was listed is no hindrance.
func TestFrozenStopWhoIsListed(t *testing.T) {
	f := newFamily(sim.Options{})
	guest := f.w.Spawn(f.w.Init(), sim.Proc{Stranger: true, Setsid: true, Args: []string{"/usr/bin/guest"}})
	f.w.Move(guest, f.group)
	f.host = shut{f.host, guest.PID()}
	f.run("down", sweep.Options{Reason: "down"}, false)
	if f.freezes() != 0 || !guest.Alive() || f.leader.Alive() {
		t.Errorf("%d freezes, the guest lives: %t", f.freezes(), guest.Alive())
	}
	for name, parent := range map[string]sim.Proc{"reaped": {}, "a zombie": {NeverReap: true}} {
		f = newFamily(sim.Options{})
		p := f.w.Spawn(f.w.Init(), parent).Fork(sim.Proc{})
		p.Exit()
		f.faulty(func(g identity.Cgroup) identity.Cgroup { return besides{g, p.PID()} })
		f.run("down", sweep.Options{Reason: "down"}, false)
		if f.freezes() != 1 || f.leader.Alive() {
			t.Errorf("%s: %d freezes", name, f.freezes())
		}
	}
}

// TestFrozenStopSaysAll: each KILL is told once, in the freeze or after it.
func TestFrozenStopSaysAll(t *testing.T) {
	f := newFamily(sim.Options{PIDs: 300})
	for i := range 500 {
		f.w.At(time.Duration(i)*9*time.Millisecond, func() { f.keeper.Fork(sim.Proc{Cgroup: f.group, Args: []string{"/usr/bin/again"}, Env: simEnv}) })
	}
	f.stop(false)
	told, sent := 0, 0
	for _, l := range f.w.Trace() {
		_, what, _ := strings.Cut(l, "hob: KILL to ")
		switch n, rest, _ := strings.Cut(what, " "); {
		case rest == "" && what != "":
			told++
		case n == "one":
			told++
		case what != "":
			n, err := strconv.Atoi(n)
			if told += n; err != nil {
				t.Error(l)
			}
		}
	}
	for _, d := range f.w.Ledger().Deliveries {
		if d.Sig == syscall.SIGKILL && d.To != f.keeper {
			sent++
		}
	}
	if f.freezes() == 0 || told != sent {
		t.Errorf("%d freezes, %d were killed, and %d are told", f.freezes(), sent, told)
	}
}

// TestFrozenStopSaysNothing: nobody who watches is told anything while it is frozen,
// since whoever that is may wait for a process in it, and all of it afterwards, once.
func TestFrozenStopSaysNothing(t *testing.T) {
	f := newFamily(sim.Options{})
	f.stop(false)
	trace := f.w.Trace()
	at := func(text string) (all []int) {
		for i, l := range trace {
			if strings.Contains(l, text) {
				all = append(all, i)
			}
		}
		return all
	}
	from, to, said := at("hob: freeze true"), at("hob: freeze false"), at("of the frozen cgroup")
	if len(from) != 1 || len(to) != 1 || len(said) != 1 || said[0] < to[0] {
		t.Fatalf("frozen at %v, thawed at %v, said at %v", from, to, said)
	}
	if after := at("hob: "); after[len(after)-1] < said[0] {
		t.Error("nothing is said after it")
	}
}
