package tasks

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"hob/identity"
	"hob/recipes"
	"hob/sweep"
	"hob/tmux"
	"hob/tmux/tmuxtest"
)

// another is a living process that is neither the test nor of any task, and its Ref.
func another(t *testing.T, h identity.Host, args ...string) identity.Ref {
	t.Helper()
	cmd := &exec.Cmd{Path: os.Args[0], Args: args, Env: []string{roleEnv + "=hold-stdin"}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	pin, err := h.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Close()
	return pin.Ref()
}

// A start that was cut before its keeper wrote anything leaves a pane that only
// its window's name and what runs in it tell. The name alone is anybody's.
func TestPaneOfACutStart(t *testing.T) {
	_, d := newTask(t)
	h := localHost(t)
	s := stopper{Manager: &Manager{Host: h}, dir: d}
	keeper := another(t, h, "hob", "keeper", d.SpecPath()).PID
	stranger := another(t, h, "hob", "keeper", strings.Replace(d.SpecPath(), "llm", "other", 1)).PID
	for name, c := range map[string]struct {
		pane tmux.Pane
		ours bool
	}{
		"the keeper, not written down": {tmux.Pane{WindowName: "llm", PID: keeper}, true},
		"it has ended":                 {tmux.Pane{WindowName: "llm", PID: keeper, Dead: true}, true},
		"another task's keeper":        {tmux.Pane{WindowName: "llm", PID: stranger}, false},
		"a person's program":           {tmux.Pane{WindowName: "llm", PID: os.Getpid()}, false},
		"another window":               {tmux.Pane{WindowName: "llm2", PID: keeper}, false},
	} {
		if s.madeBy(c.pane) != c.ours {
			t.Errorf("%s: ours is %t", name, !c.ours)
		}
	}
}

// A task that has ended since it was seen living is not swept: whoever sees to
// its end holds its lock, and a sweep of a living task does not.
func TestSweepAsSeen(t *testing.T) {
	r, d := newTask(t)
	h := localHost(t)
	m := &Manager{Store: r.store, Host: h}
	self, err := m.self()
	if err != nil {
		t.Fatal(err)
	}
	task := testTask()
	task.State = Failed
	if err := errors.Join(r.Write(Run{Name: "chat", ID: "feedface"}), d.WriteTask(task)); err != nil {
		t.Fatal(err)
	}
	owned := identity.Finding{Verdict: identity.Owned}
	up := task
	up.State = Up
	seen := Seen{Task: &up, Keeper: &Keeper{Nonce: "n", Keeper: *self}, KeeperV: owned, Command: owned}
	var out Outcome
	m.sweepOne(t.Context(), Run{Name: "chat", ID: "feedface"}, r, d, seen, StopOptions{Reason: "sweep"}, &out)
	if out.Did != "looked at" || out.Err != nil {
		t.Errorf("%+v", out)
	}
	if _, err := d.ReadReport(); !errors.Is(err, ErrNoRecord) {
		t.Errorf("a report was written without the lock: %v", err)
	}
}

// A run is archived, and one of its name is being made anew, while a sweep of a task
// waits for the task's lock: there is nothing to sweep.
func TestSweepOfARecordThatWent(t *testing.T) {
	r, d := newTask(t)
	m := &Manager{Store: r.store, Host: localHost(t)}
	task := testTask()
	task.State = Failed
	if err := errors.Join(r.Write(Run{Name: "chat", ID: "feedface"}), d.WriteTask(task)); err != nil {
		t.Fatal(err)
	}
	unlock, err := d.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan Outcome)
	go func() {
		done <- m.sweepTask(t.Context(), Run{Name: "chat", ID: "feedface"}, r, d, StopOptions{Reason: "sweep"})
	}()
	waitForWaiter(t)
	if err := d.forget("task.json"); err != nil {
		t.Error(err)
	}
	unlock()
	if out := <-done; out.Did != "has no record any more" || out.Err != nil || out.Report != nil {
		t.Errorf("%+v", out)
	}
}

// An adopted task is stopped, and its command ends, after its record was read and
// before the command was looked at: it is not lost.
func TestLookAsAnAdoptedTaskIsStopped(t *testing.T) {
	r, d := newTask(t)
	h := localHost(t)
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pin, err := h.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Close()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	task := testTask()
	task.State, task.Adopted = Up, &Adoption{Command: pin.Ref()}
	if err := d.WriteTask(task); err != nil {
		t.Fatal(err)
	}
	m := &Manager{Store: r.store, Host: meanwhileHost{h, func() {
		task.State = Stopped
		if err := d.WriteTask(task); err != nil {
			t.Error(err)
		}
	}}}
	if got := Derive(m.look(d)); got.State != Stopped {
		t.Errorf("%+v", got)
	}
}

// A stop comes to its end, and lets the lock go, after the last reading of the record
// and before the lock was asked for: it was not cut.
func TestLookAsAStopEnds(t *testing.T) {
	for name, c := range map[string]struct {
		looks   int // at processes, up to the last before the lock is asked for
		records func(*TaskDir, *Task, identity.Ref) error
	}{
		"adopted": {2, func(_ *TaskDir, task *Task, ref identity.Ref) error {
			task.Adopted = &Adoption{Command: ref}
			return nil
		}},
		"kept": {4, func(d *TaskDir, task *Task, ref identity.Ref) error {
			return d.WriteKeeper(Keeper{Nonce: task.Nonce, Keeper: ref, Command: &ref, Empty: true})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r, d := newTask(t)
			h := localHost(t)
			gone := *mustSelf(t, &Manager{Host: h})
			gone.Boot = "5ca1ab1e-0000-4000-8000-000000000001"
			task := testTask()
			task.State = Stopping
			unlock, err := d.Lock(t.Context())
			if err := errors.Join(err, c.records(d, &task, gone), d.WriteTask(task)); err != nil {
				t.Fatal(err)
			}
			m := &Manager{Store: r.store, Host: meanwhileHost{h, func() {
				if c.looks--; c.looks == 0 {
					task.State = Stopped
					if err := d.WriteTask(task); err != nil {
						t.Error(err)
					}
					unlock()
				}
			}}}
			if got := Derive(m.look(d)); got.State != Stopped || c.looks > 0 {
				t.Errorf("%+v, %d looks to go", got, c.looks)
			}
		})
	}
}

// meanwhileHost does something before each look at a process.
type meanwhileHost struct {
	identity.Host
	do func()
}

func (h meanwhileHost) Verify(r identity.Ref) (identity.Handle, identity.Finding) {
	h.do()
	return h.Host.Verify(r)
}

// waitForWaiter waits until this process waits in flock(2), by the kernel's word.
func waitForWaiter(t *testing.T) {
	t.Helper()
	waits := regexp.MustCompile(fmt.Sprintf(`-> FLOCK .* %d `, os.Getpid()))
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if locks, err := os.ReadFile("/proc/locks"); err != nil || time.Now().After(end) {
			t.Fatalf("nobody waits: %v\n%s", err, locks)
		} else if waits.Match(locks) {
			return
		}
	}
}

// A run that another hob is bringing up has perhaps no task yet: it is kept.
func TestRemoveWhileBroughtUp(t *testing.T) {
	r, _ := newTask(t)
	h := localHost(t)
	m := &Manager{Store: r.store, Host: h}
	starter := another(t, h, "hob", "up")
	if err := r.Write(Run{Name: "chat", ID: "feedface", Tasks: []string{"llm"}, Starter: &starter}); err != nil {
		t.Fatal(err)
	}
	if out := m.removeRun(t.Context(), r, RemoveOptions{Forget: true}); out.Err == nil || out.Did != "kept" {
		t.Errorf("%+v", out)
	}
	if err := r.Write(Run{Name: "chat", ID: "feedface", Tasks: []string{"llm"}}); err != nil {
		t.Fatal(err)
	}
	if out := m.removeRun(t.Context(), r, RemoveOptions{}); out.Err != nil {
		t.Errorf("nobody brings it up: %+v", out)
	}
}

// An up waits for run.lock, and takes over where the panes are as another up of
// the run has just written.
func TestUpRecordsUnderTheLock(t *testing.T) {
	r, _ := newTask(t)
	if err := r.Write(Run{Name: "chat", ID: "feedface"}); err != nil {
		t.Fatal(err)
	}
	unlock, err := r.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u := &upRun{Manager: &Manager{Store: r.store}, dir: r, run: Run{Name: "chat", ID: "feedface", Ports: map[string]int{"llm": 8000}}}
	done := make(chan error)
	go func() { done <- u.record(t.Context(), true) }()
	server := testRef(7)
	if err := r.Write(Run{Name: "chat", ID: "feedface", Tmux: TmuxServer{Session: "$3", Server: &server}}); err != nil {
		t.Fatal(err)
	}
	unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	run, err := r.Read()
	if err != nil || run.Tmux.Session != "$3" || run.Ports["llm"] != 8000 {
		t.Errorf("%+v, %v", run, err)
	}
}

// A start that is given up while its keeper has come up, and has not said how it
// ended: what it left is not known, so the task is not called failed.
func TestFailedStartWithAKeeper(t *testing.T) {
	r, d := newTask(t)
	m := &Manager{Store: r.store, Host: localHost(t)}
	self, err := m.self()
	if err != nil {
		t.Fatal(err)
	}
	u := &upRun{Manager: m, dir: r}
	task := Task{Run: "chat", Task: "llm", Nonce: "n", Kind: sweep.Server, State: Starting}
	for _, c := range []struct {
		keeper *Keeper
		want   State
	}{{nil, Failed}, {&Keeper{Nonce: "n", Keeper: *self}, Unverified}} {
		if err := d.WriteTask(task); err != nil {
			t.Fatal(err)
		}
		if c.keeper != nil {
			if err := d.WriteKeeper(*c.keeper); err != nil {
				t.Fatal(err)
			}
		}
		if err := u.failed(&upTask{dir: d}, task, errors.New("cut")); err != nil {
			t.Fatal(err)
		}
		if got, err := d.ReadTask(); err != nil || got.State != c.want || got.Error != "cut" {
			t.Errorf("%+v, %v, want %s", got, err, c.want)
		}
	}
}

// down without a name found nothing up. What has come up since is not its business.
func TestDownOfNothingLeavesWhatLives(t *testing.T) {
	r, d := newTask(t)
	m := &Manager{Store: r.store, Host: localHost(t)}
	self, err := m.self()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	task := Task{Run: "chat", Task: "llm", Nonce: "n", Kind: sweep.Server, State: Up, StartedAt: &now}
	err = errors.Join(r.Write(Run{Name: "chat", ID: "feedface"}), d.WriteTask(task),
		d.WriteKeeper(Keeper{Nonce: "n", Keeper: *self, Command: self}))
	if err != nil {
		t.Fatal(err)
	}
	out := m.stopLocked(t.Context(), r, d, StopOptions{Reason: "down", onlyEnded: true})
	if got, err := d.ReadTask(); err != nil || got.State != Up || out.Report != nil {
		t.Errorf("%+v, %+v, %v", out, got, err)
	}
}

// The first keeper of a run comes up before the run's record names the server.
func TestPaneServer(t *testing.T) {
	h, parent := localHost(t), os.Getppid()
	tmuxEnv := func(pid int) string { return "/tmp/a,b.sock," + strconv.Itoa(pid) + ",0" }
	if ref := paneServer(h, tmuxEnv(parent), parent); ref == nil || ref.PID != parent {
		t.Errorf("our parent, which TMUX names: %v", ref)
	}
	for name, env := range map[string]string{"another pid": tmuxEnv(parent + 1), "no TMUX": "", "torn": strconv.Itoa(parent)} {
		if ref := paneServer(h, env, parent); ref != nil {
			t.Errorf("%s: %v", name, ref)
		}
	}
}

// A run that is up belongs to nobody or to another hob: a contained one would end it.
func TestRunOfARunThatIsUp(t *testing.T) {
	r, _ := newTask(t)
	m := &Manager{Store: r.store, Host: localHost(t)}
	recipe := &recipes.Recipe{Name: "chat", Tasks: []recipes.Task{{Name: "llm", Kind: "server"}}}
	starter := another(t, m.Host, "hob", "up")
	if err := r.Write(Run{Name: "chat", ID: "feedface", Digest: digest(recipe), Starter: &starter}); err != nil {
		t.Fatal(err)
	}
	for lifetime, refused := range map[Lifetime]bool{Contained: true, Detached: false} {
		u := &upRun{Manager: m, dir: r, recipe: recipe, o: UpOptions{Lifetime: lifetime}}
		if err := u.plan(); errors.Is(err, ErrUsage) != refused {
			t.Errorf("%s: %v", lifetime, err)
		}
	}
}

// A record that cannot be read hides no keeper that lives: it is not forgotten.
func TestForgetSparesALivingKeeper(t *testing.T) {
	r, d := newTask(t)
	m := &Manager{Store: r.store, Host: localHost(t)}
	keeper := another(t, m.Host, "hob", "keeper", d.SpecPath())
	err := errors.Join(r.Write(Run{Name: "chat", ID: "feedface", Tasks: []string{"llm"}}),
		d.WriteKeeper(Keeper{Nonce: "n", Keeper: keeper}), os.WriteFile(d.file("task.json"), []byte("{"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if out := m.removeRun(t.Context(), r, RemoveOptions{Forget: true}); out.Err == nil || out.Did != "kept" {
		t.Errorf("the keeper lives: %+v", out)
	}
	// What cannot be read is looked for: by what the keeper was told.
	whole, err := os.ReadFile(d.file("keeper.json"))
	if err != nil {
		t.Fatal(err)
	}
	for kind, text := range map[string]string{"kept": "{", "newer": `{"schema": 99}`} {
		if err := os.WriteFile(d.file("keeper.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := m.removeRun(t.Context(), r, RemoveOptions{Forget: true}); out.Err == nil || out.Did != "kept" {
			t.Errorf("%s: %+v", kind, out)
		}
	}
	if err := os.WriteFile(d.file("keeper.json"), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	gone := keeper
	gone.Boot = "another"
	if err := d.WriteKeeper(Keeper{Nonce: "n", Keeper: gone}); err != nil {
		t.Fatal(err)
	}
	if out := m.removeRun(t.Context(), r, RemoveOptions{Forget: true}); out.Err == nil || out.Did != "kept" {
		t.Errorf("the record says that its boot is over, and it lives: %+v", out)
	}
}

// A lock that cannot be asked for does not say that nobody is at work.
func TestLookWithoutLocks(t *testing.T) {
	r, d := newTask(t)
	m := &Manager{Store: r.store, Host: localHost(t)}
	err := errors.Join(d.WriteTask(Task{Run: "chat", Task: "llm", Nonce: "n", State: Starting}), os.Remove(d.file("op.lock")), os.Mkdir(d.file("op.lock"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	if got := Derive(m.look(d)); got.State != Unverified {
		t.Errorf("%+v", got)
	}
}

// Two ups of one run that both saw no session yet make one: the second finds the
// first one's when it has the lock.
func TestSessionMadeMeanwhile(t *testing.T) {
	r, _ := newTask(t)
	m := &Manager{Store: r.store, Host: localHost(t)}
	if err := r.Write(Run{Name: "chat", ID: "feedface", Tasks: []string{"a", "b"}}); err != nil {
		t.Fatal(err)
	}
	recipe := &recipes.Recipe{Name: "chat", Tasks: []recipes.Task{{Name: "a"}, {Name: "b"}}}
	srv := tmuxtest.New(t)
	one, two := m.newPaneMaker(srv, r, recipe), m.newPaneMaker(srv, r, recipe)
	argv := []string{"sleep", "600"}
	if s, err := two.ready(t.Context()); s != "" || err != nil {
		t.Fatalf("session %q: %v", s, err)
	}
	first, err := one.spawn(t.Context(), "a", argv)
	if err != nil {
		t.Fatal(err)
	}
	second, err := two.first(t.Context(), "", "b", argv)
	if err != nil || second.Session != first.Session || second.ID == first.ID {
		t.Errorf("panes %+v and %+v: %v", first, second, err)
	}
}
