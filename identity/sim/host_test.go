//go:build unix

package sim

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hob/identity"
)

var ctx = context.Background()

// Each row of the verdict table on a world that is in that state.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		prep func(w *World, p *Process, r *identity.Ref)
		want identity.Verdict
		row  string
	}{
		{"no pid", Options{}, func(_ *World, _ *Process, r *identity.Ref) { r.PID = 0 }, identity.Unverifiable, "1"},
		{"no token", Options{}, func(_ *World, _ *Process, r *identity.Ref) { r.PIDFS, r.Start = nil, "" }, identity.Unverifiable, "1"},
		{"another system's token", Options{}, func(_ *World, _ *Process, r *identity.Ref) { r.Start = "darwin:1" }, identity.Unverifiable, "1"},
		{"boot id unreadable", Options{}, func(w *World, _ *Process, _ *identity.Ref) { w.Dark(true) }, identity.Unverifiable, "2"},
		{"after a reboot", Options{}, func(w *World, _ *Process, _ *identity.Ref) { w.Reboot() }, identity.Gone, "3"},
		{"another boot, another host", Options{}, func(_ *World, _ *Process, r *identity.Ref) { r.Boot, r.Host = bootID(9), "y" }, identity.Unverifiable, "3"},
		{"another boot, no machine id", Options{}, func(_ *World, _ *Process, r *identity.Ref) { r.Boot, r.Machine = bootID(9), "" }, identity.Unverifiable, "3"},
		{"another namespace", Options{}, func(w *World, _ *Process, _ *identity.Ref) { w.Enter("77", "") }, identity.Unverifiable, "4"},
		{"gone", Options{}, func(_ *World, p *Process, _ *identity.Ref) { p.Exit() }, identity.Gone, "5"},
		{"a thread has the number", Options{}, func(w *World, p *Process, _ *identity.Ref) { p.Exit(); threadOn(w, p.PID()) }, identity.Gone, "6"},
		{"no pin left", Options{MaxPins: 1}, func(w *World, _ *Process, _ *identity.Ref) { _, _ = w.Host().Open(1) }, identity.Unverifiable, "7"},
		{"reused, pidfs", Options{}, func(w *World, p *Process, _ *identity.Ref) { p.Exit(); processOn(w, p.PID()) }, identity.Foreign, "9"},
		{"reused, ticks", Options{NoPidfs: true}, func(w *World, p *Process, _ *identity.Ref) { p.Exit(); processOn(w, p.PID()) }, identity.Foreign, "10"},
		{"hidden, no pidfs", Options{NoPidfs: true, HidePID: true, UID: 7}, nil, identity.Unverifiable, "10a"},
		{"hidden, pidfs", Options{HidePID: true, UID: 7}, nil, identity.Owned, "11"},
		{"no procfs, pidfs", Options{NoProcfs: true}, nil, identity.Owned, "11"},
		{"other time namespace, ticks", Options{NoPidfs: true}, func(w *World, _ *Process, _ *identity.Ref) { w.Enter("", "8") }, identity.Unverifiable, "10a"},
		{"alive", Options{}, nil, identity.Owned, "11"},
		{"leader ended, a thread lives", Options{}, func(_ *World, p *Process, _ *identity.Ref) { p.StartThread(); p.EndLeader() }, identity.Owned, "11"},
		{"unpinned", Options{NoPidfd: true}, nil, identity.Owned, "8"},
		{"unpinned, reused", Options{NoPidfd: true}, func(w *World, p *Process, _ *identity.Ref) { p.Exit(); processOn(w, p.PID()) }, identity.Foreign, "8"},
		{"unpinned, hidden", Options{NoPidfd: true, HidePID: true, UID: 7}, nil, identity.Unverifiable, "8"},
		{"macOS", Options{OS: "darwin"}, nil, identity.Owned, "8"},
		{"dead, and its session lives", Options{}, func(_ *World, p *Process, _ *identity.Ref) { p.Setsid(); p.Fork(Proc{}); p.parent.reaps = 0; p.Exit() }, identity.Gone, "6"},
		{"zombie", Options{}, func(_ *World, p *Process, _ *identity.Ref) { p.parent.never = true; p.Exit() }, identity.Gone, "12"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := quietWorld(c.o)
			p := w.Spawn(w.Init(), Proc{NeverReap: true})
			ref := p.Ref()
			if c.prep != nil {
				c.prep(w, p, &ref)
			}
			h, f := w.Host().Verify(ref)
			if f.Verdict != c.want || f.Row != c.row {
				t.Errorf("%s by row %s (%s), want %s by row %s", f.Verdict, f.Row, f.Reason, c.want, c.row)
			}
			if (h != nil) != (c.want == identity.Owned) {
				t.Errorf("handle %v", h)
			}
		})
	}
}

// processOn takes the number with a stranger, in a later tick.
func processOn(w *World, pid int) *Process {
	w.Pass(time.Second)
	w.next = pid
	return w.Spawn(w.Init(), Proc{Comm: "stranger"})
}

func threadOn(w *World, pid int) {
	w.next = pid
	w.Init().StartThread()
}

// The pin stays with its process: a reused number is neither read nor signalled.
func TestPinSurvivesReuse(t *testing.T) {
	for _, noPin := range []bool{false, true} {
		w := quietWorld(Options{NoPidfd: noPin})
		p := w.Spawn(w.Init(), Proc{Tree: "t"})
		h, err := w.Host().Open(p.PID())
		if err != nil {
			t.Fatal(err)
		}
		p.Exit()
		q := processOn(w, p.PID())
		if q.PID() != p.PID() {
			t.Fatal("not reused")
		}
		want := identity.ErrGone
		if noPin {
			want = identity.ErrReused
		}
		if err := h.Signal(syscall.SIGKILL); !errors.Is(err, want) {
			t.Errorf("no pin %v: signal: %v", noPin, err)
		}
		if _, err := h.Read(0); err == nil {
			t.Errorf("no pin %v: read another process's row", noPin)
		}
		if !q.Alive() || len(w.Ledger().Deliveries) != 0 {
			t.Errorf("no pin %v: the stranger was signalled", noPin)
		}
	}
}

func TestKillByNumberHitsTheStranger(t *testing.T) {
	w := quietWorld(Options{})
	p := w.Spawn(w.Init(), Proc{Tree: "t"})
	p.Exit()
	q := processOn(w, p.PID())
	if err := w.KillNumber(p.PID(), syscall.SIGKILL); err != nil || q.Alive() {
		t.Fatal(err, q.Alive())
	}
	strays := w.Ledger().Strays("t")
	if len(strays) != 1 || strays[0].To != q {
		t.Fatalf("ledger: %v", strays)
	}
}

func TestPermissions(t *testing.T) {
	w := quietWorld(Options{UID: 7})
	p := w.Spawn(w.Init(), Proc{User: 8, Env: []string{"A=1"}})
	h, err := w.Host().Open(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	row, err := h.Read(identity.WantEnviron | identity.WantArgs | identity.WantUser)
	if err != nil || row.Missing != identity.WantEnviron || row.UID != 8 {
		t.Errorf("read: %+v, %v", row, err)
	}
	if err := h.Signal(syscall.SIGTERM); !errors.Is(err, identity.ErrNotPermitted) || !p.Alive() {
		t.Errorf("signal: %v", err)
	}
	if d := w.Ledger().Deliveries; len(d) != 1 || !d[0].Denied {
		t.Errorf("ledger: %v", d)
	}
}

func TestSnapshot(t *testing.T) {
	w := quietWorld(Options{HidePID: true, UID: 7})
	mine := w.Spawn(w.Init(), Proc{User: 7})
	w.Spawn(w.Init(), Proc{User: 8})
	odd := w.Spawn(w.Init(), Proc{User: 7, Unreadable: true})
	table, err := w.Host().Snapshot(ctx, identity.WantUser)
	if err != nil || !table.SawSelf || !table.Hidden {
		t.Fatalf("%+v, %v", table, err)
	}
	var pids []int
	for _, p := range table.Procs {
		pids = append(pids, p.PID)
	}
	if want := []int{w.Caller().PID(), mine.PID()}; !slices.Equal(pids, want) {
		t.Errorf("rows %v, want %v", pids, want)
	}
	if len(table.Unreadable) != 1 || table.Unreadable[0].PID != odd.PID() {
		t.Errorf("unreadable: %v", table.Unreadable)
	}
	w.Blind(true)
	if _, err := w.Host().Snapshot(ctx, 0); err == nil {
		t.Error("a blind snapshot is not an error")
	}
}

func TestChildren(t *testing.T) {
	w := quietWorld(Options{})
	p := w.Spawn(w.Init(), Proc{NeverReap: true})
	a, b := p.Fork(Proc{}), p.Fork(Proc{})
	a.Exit()
	if got, err := w.Host().Children(p.PID()); err != nil || !slices.Equal(got, []int{a.PID(), b.PID()}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := w.Host().Children(60); !errors.Is(err, identity.ErrGone) {
		t.Error(err)
	}
	w = quietWorld(Options{NoChildren: true})
	if _, err := w.Host().Children(1); !errors.Is(err, identity.ErrUnsupported) {
		t.Error(err)
	}
}

func TestWait(t *testing.T) {
	w := quietWorld(Options{})
	p := w.Spawn(w.Init(), Proc{Do: []Behaviour{ExitAfter(time.Second)}})
	h, err := w.Host().Open(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	start := w.Now()
	if err := w.Host().Wait(ctx, []identity.Handle{h}, start.Add(100*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if got := w.Now().Sub(start); got < 100*time.Millisecond || got > 110*time.Millisecond || !p.Alive() {
		t.Errorf("waited %v, alive %v", got, p.Alive())
	}
	if err := w.Host().Wait(ctx, []identity.Handle{h}, time.Time{}); err != nil || p.Alive() {
		t.Error("not woken by the exit", err)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if err := w.Host().Wait(done, nil, w.Now().Add(time.Hour)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestSocketsAndHolders(t *testing.T) {
	w := quietWorld(Options{UID: 7})
	p := w.Spawn(w.Init(), Proc{User: 7, Listen: []int{80}})
	child := p.Fork(Proc{})
	other := w.Spawn(w.Init(), Proc{User: 8, Listen: []int{81}})
	socks, err := w.Host().Sockets(ctx, 0)
	if err != nil || len(socks) != 2 || socks[0].Local.Port() != 80 {
		t.Fatal(socks, err)
	}
	held, err := w.Host().Holders(ctx, []uint64{socks[0].Inode, socks[1].Inode}, nil)
	if err != nil || !slices.Equal(held.ByInode[socks[0].Inode], []int{p.PID(), child.PID()}) {
		t.Error(held, err)
	}
	if !slices.Contains(held.Unreadable, other.PID()) || held.ByInode[socks[1].Inode] != nil {
		t.Error(held)
	}
}

func TestCutAndGoOn(t *testing.T) {
	w := quietWorld(Options{})
	p := w.Spawn(w.Init(), Proc{Tree: "t"})
	before := w.Caller()
	reached := 0
	down := func() {
		h, err := w.Host().Open(p.PID())
		if err != nil {
			t.Fatal(err)
		}
		reached = 1
		_ = h.Signal(syscall.SIGTERM)
		reached = 2
	}
	w.CutAfter(5)
	if !w.Run(down) || reached != 1 || !p.Alive() {
		t.Fatal("not cut before the signal", reached)
	}
	if before.Alive() || w.Caller() == before || w.OpenPins() != 0 {
		t.Fatal("the cut caller lives on")
	}
	if w.Run(down) || reached != 2 || p.Alive() {
		t.Fatal("the next invocation did not finish", reached)
	}
	if d := w.Ledger().Deliveries; len(d) != 1 || d[0].Turn != 2 {
		t.Fatalf("ledger: %v", d)
	}
}

// busyWorld is a world in which much happens.
func busyWorld(src Source) *World {
	w := New(src, Options{PIDs: 24, InitReaps: time.Millisecond, Chaos: Chaos{
		Density: 30, Budget: 200, Forks: 60, Reuse: 50,
		Fork: 4, Exit: 3, Exec: 1, Setsid: 1, Thread: 1, HeadOff: 1, Stop: 1, Stick: 1, Stranger: 3, StrangerEnds: 3,
	}})
	keeper := w.Keeper(w.Tmux(w.Init(), Proc{}), 1, Proc{Tree: "t", Reap: time.Millisecond})
	keeper.Fork(Proc{Args: []string{"/bin/srv"}, Do: []Behaviour{Fan(3, 0, Proc{})}})
	for range 60 {
		table, err := w.Host().Snapshot(ctx, 0)
		if err != nil {
			panic(err)
		}
		for _, p := range table.Procs {
			if h, err := w.Host().Open(p.PID); err == nil {
				h.Verify()
				h.Close()
			}
		}
	}
	return w
}

func TestSameSeedReplaysExactly(t *testing.T) {
	a, b, c := busyWorld(Seed(7)).Trace(), busyWorld(Seed(7)).Trace(), busyWorld(Seed(8)).Trace()
	if !slices.Equal(a, b) {
		t.Error("the same seed gave two schedules")
	}
	if slices.Equal(a, c) || len(a) < 100 {
		t.Error("little happens:", len(a))
	}
}

// Whatever happens, the table stays one that a kernel could have.
func TestInvariantsOfTheTable(t *testing.T) {
	for seed := range uint64(200) {
		checkTable(t, busyWorld(Seed(seed)))
	}
	rapid.Check(t, func(t *rapid.T) { checkTable(t, busyWorld(Drawn(t))) })
}

func checkTable(t interface{ Fatalf(string, ...any) }, w *World) {
	held := make([]int, len(w.held))
	for _, p := range w.all {
		held[p.pid]++
		held[p.pgid]++
		held[p.sid]++
		for _, tid := range p.tids {
			held[tid]++
		}
		if w.byPID[p.pid] != p {
			t.Fatalf("%v does not have its number", p)
		}
		if p != w.init && (p.parent == nil || !p.parent.Alive() || !slices.Contains(p.parent.kids, p)) {
			t.Fatalf("%v has no living parent", p)
		}
		if p.Zombie() && len(p.kids)+len(p.tids) > 0 {
			t.Fatalf("zombie %v has children or threads", p)
		}
	}
	if !slices.Equal(held, w.held) {
		t.Fatalf("numbers held: %v, counted %v", w.held, held)
	}
}
