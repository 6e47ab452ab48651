package tasks

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/sweep"
	"hob/tmux/tmuxtest"
)

// leftRig is a task that is over, whose cgroup somebody is still in.
type leftRig struct {
	t     *testing.T
	m     *Manager
	run   *RunDir
	dir   *TaskDir
	ref   identity.CgroupRef
	guest identity.Ref
}

func newLeftRig(t *testing.T) leftRig {
	t.Helper()
	mustCgroup(t)
	r, d := newTask(t)
	h := localHost(t)
	g := leftRig{t: t, m: &Manager{Store: r.store, Host: h}, run: r, dir: d, guest: another(t, h, "guest")}
	id, err := randomHex()
	if err != nil {
		t.Fatal(err)
	}
	at, err := h.Cgroups().Place(cgroupName(Spec{RunID: id, Task: d.Name, Nonce: "n"}))
	if err != nil {
		t.Fatal(err)
	}
	made, err := h.Cgroups().Make(at)
	if err != nil {
		t.Fatal(err)
	}
	g.ref = made.Ref()
	_ = made.Close()
	t.Cleanup(func() { g.leaves(); _ = os.Remove(g.ref.Path) })
	if err := os.WriteFile(g.ref.Path+"/cgroup.procs", []byte(strconv.Itoa(g.guest.PID)), 0); err != nil {
		t.Fatal(err)
	}
	keeper := another(t, h, "hob", "keeper", d.SpecPath())
	g.end(keeper)
	task := testTask()
	task.State, task.Nonce = Stopped, "n"
	err = errors.Join(r.Write(Run{Name: r.Name, ID: id, Tasks: []string{d.Name}, Tmux: TmuxServer{Socket: tmuxtest.Socket(t)}}), d.WriteTask(task),
		d.WriteKeeper(Keeper{Nonce: "n", Keeper: keeper, Left: true, Cgroup: &g.ref}))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (g leftRig) end(ref identity.Ref) {
	g.t.Helper()
	pin, _ := g.m.Host.Verify(ref)
	if pin == nil {
		return
	}
	defer pin.Close()
	if err := errors.Join(pin.Signal(syscall.SIGKILL), g.m.Host.Wait(bg, []identity.Handle{pin}, g.m.Host.Now().Add(patience))); err != nil {
		g.t.Fatal(err)
	}
}

// leaves ends who is in the cgroup.
func (g leftRig) leaves() { g.end(g.guest) }

func (g leftRig) reap() []Outcome {
	g.t.Helper()
	outs, err := g.m.Reap(bg, true, StopOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	return outs
}

// there reports whether the cgroup is there, and how many are written down.
func (g leftRig) there() (cgroup bool, records int) {
	g.t.Helper()
	files, err := filepath.Glob(filepath.Join(g.m.Store.left(), "*.json"))
	_, statErr := os.Stat(g.ref.Path)
	if err != nil || statErr != nil && !errors.Is(statErr, os.ErrNotExist) {
		g.t.Fatal(err, statErr)
	}
	return statErr == nil, len(files)
}

func (g leftRig) expect(when string, cgroup bool, records int) {
	g.t.Helper()
	if c, n := g.there(); c != cgroup || n != records {
		g.t.Errorf("%s the cgroup is there: %t, with %d records", when, c, n)
	}
}

// TestLeftCgroup: what somebody is still in when its task is over stays, and goes once
// that one has ended, whatever has become of the task's records by then.
func TestLeftCgroup(t *testing.T) {
	for name, becomes := range map[string]func(*testing.T, leftRig) error{
		"still there": func(*testing.T, leftRig) error { return nil },
		"started again": func(t *testing.T, g leftRig) error {
			return g.dir.forget("keeper.json", "capture.json")
		},
		"archived": func(t *testing.T, g leftRig) error {
			_, err := g.run.Archive()
			return err
		},
		"removed": func(t *testing.T, g leftRig) error {
			outs, err := g.m.Remove(t.Context(), []string{g.run.Name}, RemoveOptions{})
			return errors.Join(err, firstError(outs))
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newLeftRig(t)
			if out := g.m.stopTask(t.Context(), g.run, g.dir, StopOptions{Reason: "down"}); out.Err != nil {
				t.Fatal(out.Err)
			}
			if err := becomes(t, g); err != nil {
				t.Fatal(err)
			}
			g.reap()
			g.expect("while somebody is in it", true, 1)
			g.leaves()
			g.m.Reap(t.Context(), true, StopOptions{DryRun: true})
			g.expect("after a dry run", true, 1)
			g.reap()
			g.expect("after that", false, 0)
		})
	}
}

// TestLeftCgroupIsKnownByItsInode: one of the same name that somebody else has made
// since is not removed, though it is empty; and what another host has written down is
// that host's to remove.
func TestLeftCgroupIsKnownByItsInode(t *testing.T) {
	g := newLeftRig(t)
	g.m.discardCgroup(g.run, g.dir)
	g.expect("while somebody is in it", true, 1)
	g.leaves()
	if err := errors.Join(os.Remove(g.ref.Path), os.Mkdir(g.ref.Path, 0o755)); err != nil {
		t.Fatal(err)
	}
	g.reap()
	g.expect("made anew by somebody", true, 0)

	by := *mustSelf(t, g.m)
	by.Boot, by.Machine, by.Host = "another", "another", "elsewhere"
	there := g.ref
	there.Boot = by.Boot
	if err := g.m.Store.WriteLeft(LeftCgroup{Run: "chat", Task: "llm", By: by, Cgroup: there}); err != nil {
		t.Fatal(err)
	}
	g.reap()
	g.expect("of another host", true, 1)
}

func mustSelf(t *testing.T, m *Manager) *identity.Ref {
	t.Helper()
	self, err := m.self()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// TestLeftCgroupTorn: a record that is cut is named and kept, and the others are seen to.
func TestLeftCgroupTorn(t *testing.T) {
	g := newLeftRig(t)
	g.m.discardCgroup(g.run, g.dir)
	torn := filepath.Join(g.m.Store.left(), "hob-torn.json")
	if err := os.WriteFile(torn, []byte(`{"schema": 1, "run`), 0o600); err != nil {
		t.Fatal(err)
	}
	g.leaves()
	var rec *RecordError
	outs, err := g.m.Reap(bg, true, StopOptions{})
	if !errors.As(err, &rec) || rec.Kind != Torn || rec.Path != torn {
		t.Errorf("a torn record: %v", err)
	}
	if slices.ContainsFunc(outs, func(o Outcome) bool { return o.Run == "" }) {
		t.Errorf("it is no task's: %+v", outs)
	}
	g.expect("beside a torn record", false, 1)
}

// TestKeeperWritesDownWhatItLeaves: a shell's keeper ends, and what a person left in
// the background goes on.
func TestKeeperWritesDownWhatItLeaves(t *testing.T) {
	mustCgroup(t)
	t.Parallel()
	g := newRig(t, sweep.Shell).sh("setsid sh -c 'echo $$ >left; exec sleep 600' & while [ ! -s left ]; do sleep 0.02; done; exit 0")
	g.spec.Stop.Detached = "report"
	g.start().up()
	guest := g.pidIn("left")
	pin, err := g.h.Open(guest)
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Close()
	g.code()
	k := g.keeper()
	if k.Cgroup == nil {
		t.Fatalf("no cgroup: %s", k.CgroupNote)
	}
	m := &Manager{Store: g.run.store, Host: g.h}
	reap := func() error { _, err := m.Reap(bg, true, StopOptions{}); return err }
	if err := errors.Join(g.run.Remove(), reap()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(k.Cgroup.Path); err != nil {
		t.Errorf("somebody is in it: %v", err)
	}
	if err := errors.Join(pin.Signal(syscall.SIGKILL), g.h.Wait(bg, []identity.Handle{pin}, g.h.Now().Add(patience)), reap()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(k.Cgroup.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}

// TestCgroupOfACutStart: one that a keeper had made when it was killed, elsewhere than
// this hob would, and not yet written down, is found by its name.
func TestCgroupOfACutStart(t *testing.T) {
	for name, records := range map[string]func(leftRig) error{
		"no record of a keeper":        func(g leftRig) error { return g.dir.forget("keeper.json") },
		"the record of an earlier one": func(g leftRig) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			g := newLeftRig(t)
			g.leaves()
			run, err := g.run.Read()
			if err != nil {
				t.Fatal(err)
			}
			spec := Spec{Run: g.run.Name, Task: g.dir.Name, RunID: run.ID, Nonce: "n2"}
			parent := g.ref.Path + "-parent"
			dir := filepath.Join(parent, cgroupName(spec))
			t.Cleanup(func() { _ = os.Remove(dir); _ = os.Remove(parent) })
			if err := errors.Join(os.MkdirAll(dir, 0o755), g.dir.WriteSpec(spec), records(g)); err != nil {
				t.Fatal(err)
			}
			g.m.discardCgroup(g.run, g.dir)
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
}

// bareHost has no cgroups, or none that hob can see.
type bareHost struct{ identity.Host }

type bareCgroups struct{ identity.Cgroups }

func (bareHost) Cgroups() identity.Cgroups { return bareCgroups{} }

func (bareCgroups) Discard(identity.CgroupRef) error { return identity.ErrUnsupported }

// TestLeftCgroupUnseen: where no cgroups are to be seen one is not gone.
func TestLeftCgroupUnseen(t *testing.T) {
	g := newLeftRig(t)
	g.m.discardCgroup(g.run, g.dir)
	g.leaves()
	seeing := g.m.Host
	g.m.Host = bareHost{seeing}
	if err := g.m.reapCgroups(); err != nil {
		t.Fatal(err)
	}
	g.expect("where there are no cgroups", true, 1)
	g.m.Host = seeing
	g.reap()
	g.expect("in the end", false, 0)
}

// freezes leaves the cgroup as a stop does that was cut off in the middle of freezing it.
func (g leftRig) freezes() {
	g.t.Helper()
	at := g.m.now()
	if err := errors.Join(g.write("1"), g.dir.WriteCapture(sweep.Capture{Run: g.run.Name, Task: g.dir.Name, Phase: PhaseStop, Cgroup: &g.ref, FrozenAt: &at}, true)); err != nil {
		g.t.Fatal(err)
	}
}

func (g leftRig) write(freeze string) error {
	return os.WriteFile(g.ref.Path+"/cgroup.freeze", []byte(freeze), 0)
}

func (g leftRig) asks(when string, frozen bool) {
	g.t.Helper()
	text, err := os.ReadFile(g.ref.Path + "/cgroup.freeze")
	if err != nil || (strings.TrimSpace(string(text)) == "1") != frozen {
		g.t.Errorf("%s cgroup.freeze reads %q: %v", when, text, err)
	}
}

// TestDiscardThaws: the cgroup of a task that is over, which a stop has frozen that was
// cut off, is thawed though somebody is left in it; but what nobody of ours has frozen
// stays so.
func TestDiscardThaws(t *testing.T) {
	g := newLeftRig(t)
	g.freezes()
	g.m.discardCgroup(g.run, g.dir)
	g.asks("after a stop that was cut off", false)
	pin, f := g.m.Host.Verify(g.guest)
	if pin == nil {
		t.Fatalf("the guest is %s", f.Verdict)
	}
	defer pin.Close()
	if err := errors.Join(pin.Signal(syscall.SIGTERM), g.m.Host.Wait(bg, []identity.Handle{pin}, g.m.Host.Now().Add(patience))); err != nil || pin.Verify().Verdict != identity.Gone {
		t.Errorf("who is left in it does not go on: %v", err)
	}

	g = newLeftRig(t)
	if err := errors.Join(g.write("1"), g.dir.WriteCapture(sweep.Capture{Run: g.run.Name, Task: g.dir.Name, Phase: PhaseStop, Cgroup: &g.ref}, true)); err != nil {
		t.Fatal(err)
	}
	g.m.discardCgroup(g.run, g.dir)
	g.asks("when somebody else has frozen it", true)
}

// coldHost is one on which nothing can be thawed.
type coldHost struct{ identity.Host }

type coldCgroups struct{ identity.Cgroups }

type coldCgroup struct{ identity.Cgroup }

func (h coldHost) Cgroups() identity.Cgroups { return coldCgroups{h.Host.Cgroups()} }

func (c coldCgroups) Open(ref identity.CgroupRef) (identity.Cgroup, error) {
	g, err := c.Cgroups.Open(ref)
	return coldCgroup{g}, err
}

func (coldCgroup) Thaw() error { return syscall.EIO }

// TestDiscardCannotThaw: what cannot be thawed is written down with that, and the next
// reaper thaws it, once: whoever freezes it after that is somebody else.
func TestDiscardCannotThaw(t *testing.T) {
	g := newLeftRig(t)
	g.freezes()
	seeing := g.m.Host
	g.m.Host = coldHost{seeing}
	g.m.discardCgroup(g.run, g.dir)
	g.expect("while it cannot be thawed", true, 1)
	if err := g.dir.forget("capture.json"); err != nil {
		t.Fatal(err)
	}
	g.reap()
	g.asks("while it cannot be thawed", true)
	g.expect("while it cannot be thawed", true, 1)
	g.m.Host = seeing
	g.reap()
	g.asks("once it can", false)
	g.expect("with somebody in it", true, 1)
	if err := g.write("1"); err != nil {
		t.Fatal(err)
	}
	g.reap()
	g.asks("frozen by somebody else since", true)
	g.leaves()
	g.reap()
	g.expect("in the end", false, 0)
}

// living has a keeper of the task's live.
func (g leftRig) living() {
	g.t.Helper()
	k := Keeper{Nonce: "n", Keeper: another(g.t, g.m.Host, "hob", "keeper", g.dir.SpecPath()), Cgroup: &g.ref}
	if err := g.dir.WriteKeeper(k); err != nil {
		g.t.Fatal(err)
	}
}

// TestDiscardLeavesALivingKeepers: a keeper that lives may be about to start something
// in its cgroup, whoever is in that now.
func TestDiscardLeavesALivingKeepers(t *testing.T) {
	g := newLeftRig(t)
	g.leaves()
	g.living()
	g.m.discardCgroup(g.run, g.dir)
	g.expect("while its keeper lives", true, 0)
}

// TestDiscardOfTwo: of the two cgroups that the records of a task name only the one that
// a stop was freezing is written down as frozen by it.
func TestDiscardOfTwo(t *testing.T) {
	g, other := newLeftRig(t), newLeftRig(t)
	g.freezes()
	k, err := g.dir.ReadKeeper()
	if k.Cgroup = &other.ref; err != nil {
		t.Fatal(err)
	}
	if err := g.dir.WriteKeeper(k); err != nil {
		t.Fatal(err)
	}
	g.m.Host = coldHost{g.m.Host}
	g.m.discardCgroup(g.run, g.dir)
	g.expect("of two", true, 2)
	frozen := map[string]bool{}
	if err := g.m.Store.ReadLeft(func(l LeftCgroup) bool { frozen[l.Cgroup.Path] = l.FrozenAt != nil; return false }); err != nil {
		t.Fatal(err)
	}
	if !frozen[g.ref.Path] || frozen[other.ref.Path] {
		t.Errorf("written down as frozen: %v", frozen)
	}
	if err := g.write("0"); err != nil {
		t.Fatal(err)
	}
}

// TestThawCut: what a stop was freezing whose hob is at work on it is left to that;
// what one has been freezing for longer than any stop does is thawed, though something
// holds the task's lock: it may be that hob, frozen with the others.
func TestThawCut(t *testing.T) {
	for name, c := range map[string]struct {
		held, lives bool
		ago         time.Duration
		thaws       bool
	}{
		"at work":           {true, false, 0, false},
		"nobody is":         {false, false, 0, true},
		"held for too long": {true, false, sweep.StopIsCut + time.Second, true},
		"its keeper lives":  {false, true, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := newLeftRig(t)
			file := filepath.Join(g.ref.Path, "cgroup.freeze")
			at := g.m.now().Add(-c.ago)
			if err := errors.Join(os.WriteFile(file, []byte("1"), 0),
				g.dir.WriteCapture(sweep.Capture{Run: g.run.Name, Task: g.dir.Name, Phase: PhaseStop, Cgroup: &g.ref, FrozenAt: &at}, true)); err != nil {
				t.Fatal(err)
			}
			if c.held {
				unlock, ok, err := g.dir.TryLock()
				if err != nil || !ok {
					t.Fatal(ok, err)
				}
				defer unlock()
			}
			if c.lives {
				g.living()
			}
			seen := g.m.look(g.dir)
			if c.lives {
				seen.Task.State = Up
			}
			g.m.thawCut(g.run, g.dir, seen)
			text, err := os.ReadFile(file)
			after, cerr := g.dir.ReadCapture()
			if errors.Join(err, cerr) != nil || (strings.TrimSpace(string(text)) == "0") != c.thaws {
				t.Errorf("cgroup.freeze reads %s: %v, %v", text, err, cerr)
			}
			if (after.FrozenAt == nil) != (c.thaws && !c.held) {
				t.Errorf("the capture says %v", after.FrozenAt) // who holds the lock writes it
			}
		})
	}
}
