package tasks

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/recipes"
	"hob/tmux/tmuxtest"
)

// What an ended run left may take minutes to end: other ups, which need the
// server's lock, do not wait for that. A start takes that lock under its task's,
// so taking them the other way round could also have both wait for ever.
func TestSettleWithoutTheServersLock(t *testing.T) {
	r, d := newTask(t)
	m := &Manager{Store: r.store, Host: localHost(t)}
	ended := testTask()
	ended.State = Exited
	if err := errors.Join(r.Write(Run{Name: r.Name, ID: "feedface", Tasks: []string{d.Name}}), d.WriteTask(ended)); err != nil {
		t.Fatal(err)
	}
	unlock, err := d.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waits := lockWaits(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := m.prepareUp(ctx, &recipes.Recipe{Name: r.Name, Tasks: []recipes.Task{{Name: d.Name, Kind: "server"}}}, UpOptions{})
		done <- err
	}()
	if name := <-waits; name != "op.lock" {
		t.Errorf("it waits for %s", name)
	}
	free, ok, err := tryLock(filepath.Join(r.store.Home, "server.lock"))
	if !ok {
		t.Errorf("the server's lock is held while the task's is waited for: %v", err)
	} else {
		free()
	}
	cancel()
	unlock()
	if err := <-done; err == nil {
		t.Error("it was given up, and went on")
	}
}

// Two ups settle the same ended run. The one that comes second finds the run that
// the first has made, and neither stops its tasks nor archives it.
func TestSettleLeavesTheNextRun(t *testing.T) {
	r, d := newTask(t)
	m := &Manager{Store: r.store, Host: localHost(t)}
	before, now := time.Now().Add(-time.Minute), time.Now()
	task := testTask()
	task.State, task.StartedAt = Exited, &now
	if err := errors.Join(r.Write(Run{Name: r.Name, ID: "second", Tasks: []string{d.Name}}), d.WriteTask(task)); err != nil {
		t.Fatal(err)
	}
	u := &upRun{Manager: m, dir: r}
	seen := map[string]time.Time{d.Name: before}
	if out := m.stopTask(t.Context(), r, d, StopOptions{Reason: "up", began: seen}); !errors.Is(out.Err, errMeanwhile) {
		t.Errorf("a task that was started since is stopped: %+v", out)
	}
	for name, c := range map[string]struct {
		id    string
		began map[string]time.Time
	}{
		"another run":         {"first", map[string]time.Time{d.Name: now}},
		"a task was started":  {"second", seen},
		"a task came up anew": {"second", nil},
	} {
		if err := u.archive(t.Context(), settled{c.id, c.began}); !errors.Is(err, errMeanwhile) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.Read(); err != nil {
			t.Fatalf("%s: archived: %v", name, err)
		}
	}
	u.run = Run{Name: r.Name, ID: "first"}
	if err := u.record(t.Context(), true); !errors.Is(err, errMeanwhile) {
		t.Errorf("an up goes on with a run that is another now: %v", err)
	}
	right := settled{"second", map[string]time.Time{d.Name: *mustTask(t, d).StartedAt}}
	unlock, err := d.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := u.archive(t.Context(), right); !errors.Is(err, errMeanwhile) {
		t.Errorf("somebody is at work on a task, and the server's lock is held: %v", err)
	}
	unlock()
	if err := u.archive(t.Context(), right); err != nil {
		t.Error(err)
	}
	if _, err := r.Read(); !errors.Is(err, ErrNoRecord) {
		t.Errorf("what was settled is still there: %v", err)
	}
	if err := u.archive(t.Context(), right); !errors.Is(err, errMeanwhile) {
		t.Errorf("another has archived it: %v", err)
	}
}

func mustTask(t *testing.T, d *TaskDir) Task {
	t.Helper()
	task, err := d.ReadTask()
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// waiter is a host on which something happens as soon as an end is waited for, which
// may take long here.
type waiter struct {
	identity.Host
	meanwhile func()
}

func (w waiter) Wait(ctx context.Context, hs []identity.Handle, deadline time.Time) error {
	w.meanwhile()
	return w.Host.Wait(ctx, hs, deadline.Add(patience))
}

// A command whose keeper has just been killed is about to end: an up waits for
// that, and does not take the task for one that is up.
func TestUpAwaitsOrphans(t *testing.T) {
	r, d := newTask(t)
	h := localHost(t)
	command, keeper := another(t, h, "orphan"), another(t, h, "hob", "keeper", d.SpecPath())
	kill := func(ref identity.Ref) identity.Handle {
		pin, _ := h.Verify(ref)
		if err := pin.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return pin
	}
	dead := kill(keeper)
	defer dead.Close()
	if err := h.Wait(t.Context(), []identity.Handle{dead}, h.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	pin, _ := h.Verify(command)
	defer pin.Close()
	w := waiter{h, func() { kill(command).Close() }}
	task := testTask()
	task.State, task.Nonce = Up, "n"
	if err := errors.Join(d.WriteTask(task), d.WriteKeeper(Keeper{Nonce: "n", Keeper: keeper, Command: &command})); err != nil {
		t.Fatal(err)
	}
	u := &upRun{Manager: &Manager{Store: r.store, Host: w}, dir: r}
	if _, _, all := u.lookAll(); !u.awaitOrphans(t.Context(), all) {
		t.Error("nobody was waited for")
	}
	if v := pin.Verify().Verdict; v != identity.Gone {
		t.Errorf("the orphan is %s", v)
	}
}

// TestAtRest: only a task that the whole protocol has stopped, and that has left
// nothing to tidy away, is not stopped once more before its run is archived.
func TestAtRest(t *testing.T) {
	r, d := newTask(t)
	m := &Manager{Store: r.store, Host: localHost(t)}
	self, err := m.self()
	if err != nil {
		t.Fatal(err)
	}
	gone, code := *self, 0
	gone.Boot = "5ca1ab1e-0000-4000-8000-000000000001"
	for name, c := range map[string]struct {
		is     bool
		change func(*Task, *Keeper, *Spec)
	}{
		"stopped":                 {true, func(*Task, *Keeper, *Spec) {}},
		"up":                      {false, func(x *Task, _ *Keeper, _ *Spec) { x.State = Up }},
		"ended by itself":         {false, func(x *Task, _ *Keeper, _ *Spec) { x.State = Exited }},
		"survivors":               {false, func(x *Task, _ *Keeper, _ *Spec) { x.State = Survivors }},
		"no keeper":               {false, func(_ *Task, k *Keeper, _ *Spec) { k.Nonce = "another" }},
		"its keeper lives":        {false, func(_ *Task, k *Keeper, _ *Spec) { k.Keeper = *self }},
		"its keeper did not see":  {false, func(_ *Task, k *Keeper, _ *Spec) { k.Empty = false }},
		"a cgroup":                {false, func(_ *Task, k *Keeper, _ *Spec) { k.Cgroup = &identity.CgroupRef{Path: "/x"} }},
		"a hook was under way":    {false, func(_ *Task, k *Keeper, _ *Spec) { k.Hook = HookAfterStop }},
		"a hook may be to be run": {false, func(_ *Task, _ *Keeper, s *Spec) { s.AfterStop = &Hook{Args: []string{"x"}} }},
		"adopted":                 {false, func(x *Task, _ *Keeper, _ *Spec) { x.Adopted = &Adoption{Command: gone} }},
		"a pane elsewhere":        {false, func(x *Task, _ *Keeper, _ *Spec) { x.Pane = &Pane{Pane: "%1", Server: self} }},
	} {
		task := Task{Run: "chat", Task: "llm", Nonce: "n", State: Stopped}
		keeper := Keeper{Nonce: "n", Keeper: gone, Command: &gone, Empty: true}
		spec := Spec{Run: "chat", Task: "llm", Nonce: "n"}
		c.change(&task, &keeper, &spec)
		if err := errors.Join(d.writeStart(spec, task), d.WriteKeeper(keeper), d.WriteExit(Exit{Nonce: "n", Code: &code})); err != nil {
			t.Fatal(err)
		}
		server := gone
		server.Start = "linux:1"
		u := &upRun{Manager: m, dir: r, run: Run{Tmux: TmuxServer{Server: &server}}}
		if got := u.atRest(d, m.look(d)); got != c.is {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Whoever holds a task's lock is not the "somebody" that is at work on it: a start
// that was cut is that also under the lock, so it can be started over.
func TestACutStartIsStartedOver(t *testing.T) {
	r, d := newTask(t)
	m := &Manager{Store: r.store, Host: localHost(t)}
	began := time.Now().UTC()
	task := testTask()
	task.State, task.StartedAt = Starting, &began
	if err := errors.Join(r.Write(Run{Name: r.Name, ID: "feedface", Tasks: []string{d.Name}, Tmux: TmuxServer{Socket: tmuxtest.Socket(t)}}), d.WriteTask(task)); err != nil {
		t.Fatal(err)
	}
	if got := Derive(m.look(d)); got.State != Lost {
		t.Fatalf("a cut start is %+v", got)
	}
	unlock, err := d.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if got := Derive(m.lookHeld(d)); got.State != Lost {
		t.Errorf("under its lock a cut start is %+v", got)
	}
	u := &upRun{Manager: m, dir: r}
	if clear, err := u.clear(t.Context(), &upTask{Task: recipes.Task{Name: d.Name}, dir: d, began: began}); !clear || err != nil {
		t.Errorf("it is not started over: %v", err)
	}
}

// An up that is killed between the end of the old records and the new ones leaves how
// the task ended.
func TestACutStartLeavesHowItEnded(t *testing.T) {
	r, d := newTask(t)
	m := &Manager{Store: r.store, Host: localHost(t)}
	began, code := time.Now().UTC(), 7
	keeper := another(t, m.Host, "hob", "keeper", d.SpecPath())
	pin, _ := m.Host.Verify(keeper)
	defer pin.Close()
	if err := errors.Join(pin.Signal(syscall.SIGKILL), m.Host.Wait(t.Context(), []identity.Handle{pin}, m.Host.Now().Add(patience))); err != nil {
		t.Fatal(err)
	}
	task := testTask()
	task.State, task.StartedAt, task.Nonce, task.Error = Failed, &began, "n", ""
	err := errors.Join(r.Write(Run{Name: r.Name, ID: "feedface", Tasks: []string{d.Name}, Tmux: TmuxServer{Socket: tmuxtest.Socket(t)}}),
		d.WriteTask(task), d.WriteExit(Exit{Nonce: "n", Code: &code, At: began}), d.WriteKeeper(Keeper{Nonce: "n", Keeper: keeper, Empty: true}))
	if err != nil {
		t.Fatal(err)
	}
	u := &upRun{Manager: m, dir: r}
	if clear, err := u.clear(t.Context(), &upTask{Task: recipes.Task{Name: d.Name}, dir: d, began: began}); !clear || err != nil {
		t.Fatalf("it is not cleared: %v", err)
	}
	if got := Derive(m.look(d)); got.State != Failed || got.Note != "exit code 7" {
		t.Errorf("it is %+v", got)
	}
}
