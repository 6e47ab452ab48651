package tasks

import (
	"context"
	"errors"
	"testing"
	"time"

	"hob/identity"
	"hob/sweep"
)

// waitFor begins to wait for chat/llm, whose keeper lives, and returns when it does.
func waitFor(t *testing.T) (m *Manager, r *RunDir, d *TaskDir, ended chan Ending, failed chan error) {
	t.Helper()
	r, d = newTask(t)
	m = &Manager{Store: r.store, Host: localHost(t)}
	keeper := another(t, m.Host, "hob", "keeper", d.SpecPath())
	code := 7
	err := errors.Join(r.Write(Run{Name: "chat", ID: "feedface", Tasks: []string{"llm"}}),
		d.WriteTask(Task{Run: "chat", Task: "llm", Nonce: "n", Kind: sweep.Server, State: Up}),
		d.WriteKeeper(Keeper{Nonce: "n", Keeper: keeper, Command: &keeper}), d.WriteExit(Exit{Nonce: "n", Code: &code}))
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWatcher()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	ended, failed = make(chan Ending, 1), make(chan error, 1)
	go func() {
		e, err := m.untilEnd(ctx, w, Name{"chat", "llm"})
		ended <- e
		failed <- err
	}()
	deadline := time.Now().Add(30 * time.Second)
	for watching := false; !watching; time.Sleep(2 * time.Millisecond) {
		w.mu.Lock()
		watching = len(w.subs[r.store.runs()]) > 0
		w.mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatal("it does not wait")
		}
	}
	return m, r, d, ended, failed
}

// A run that is archived while it is waited for ended as its records there say,
// whatever has its name now; of one that is removed nobody knows.
func TestWaitOfWhatMoves(t *testing.T) {
	t.Run("archived", func(t *testing.T) {
		_, r, _, ended, failed := waitFor(t)
		if _, err := r.Archive(); err != nil {
			t.Fatal(err)
		}
		e, err := <-ended, <-failed
		if err != nil || e.Code == nil || *e.Code != 7 {
			t.Errorf("%+v, %v", e, err)
		}
	})
	t.Run("archived, and its name used again", func(t *testing.T) {
		m, r, d, ended, failed := waitFor(t)
		if _, err := r.Archive(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Create(), r.Write(Run{Name: "chat", ID: "another", Tasks: []string{"llm"}})); err != nil {
			t.Fatal(err)
		}
		e, err := <-ended, <-failed
		if err != nil || e.Code == nil || *e.Code != 7 {
			t.Errorf("%+v, %v", e, err)
		}
		if at := m.whereIs(r, "another"); at != r {
			t.Errorf("the new one is at %v", at)
		}
	})
	t.Run("removed", func(t *testing.T) {
		_, r, _, ended, failed := waitFor(t)
		if err := r.Remove(); err != nil {
			t.Fatal(err)
		}
		e, err := <-ended, <-failed
		if !errors.Is(err, ErrUnverified) || e.State != Unverified {
			t.Errorf("%+v, %v", e, err)
		}
	})
}

// A task whose keeper was killed by force is waited for by its command.
func TestEndOfTask(t *testing.T) {
	m := &Manager{Host: localHost(t)}
	command := another(t, m.Host, "sleep")
	owned, gone := identity.Finding{Verdict: identity.Owned}, identity.Finding{Verdict: identity.Gone}
	task := &Task{State: Up}
	for name, c := range map[string]struct {
		seen Seen
		want bool
	}{
		"its keeper lives":          {Seen{Task: task, Keeper: &Keeper{Keeper: command}, KeeperV: owned}, true},
		"its keeper was killed":     {Seen{Task: task, Keeper: &Keeper{Command: &command}, KeeperV: gone, Command: owned}, true},
		"it was adopted":            {Seen{Task: &Task{State: Up, Adopted: &Adoption{Command: command}}, Command: owned}, true},
		"nothing of it lives":       {Seen{Task: task, Keeper: &Keeper{Command: &command}, KeeperV: gone, Command: gone}, false},
		"it was never started":      {Seen{}, false},
		"adopted, and it has ended": {Seen{Task: &Task{State: Up, Adopted: &Adoption{Command: command}}, Command: gone}, false},
	} {
		if got := m.endOfTask(t.Context(), c.seen); (got != nil) != c.want {
			t.Errorf("%s: waited for is %t", name, got != nil)
		}
	}
}

// The keeper of a start that was cut writes its command down while the stop begins:
// the stop knows the command, which gets its own signal.
func TestBeginSeesTheCommand(t *testing.T) {
	r, d := newTask(t)
	m := &Manager{Store: r.store, Host: localHost(t)}
	command := another(t, m.Host, "sleep")
	task := Task{Run: "chat", Task: "llm", Nonce: "n", Kind: sweep.Server, State: Starting}
	run := Run{Name: "chat", ID: "feedface"}
	err := errors.Join(r.Write(run), d.writeStart(Spec{Run: "chat", Task: "llm", Nonce: "n"}, task), d.WriteKeeper(Keeper{Nonce: "n", Keeper: command, Command: &command}))
	if err != nil {
		t.Fatal(err)
	}
	s := stopper{Manager: m, run: r, dir: d, seen: Seen{Task: &task, Keeper: &Keeper{Nonce: "n", Keeper: command}}}
	target, prev, err := s.target(run)
	if err != nil || target.Command != nil {
		t.Fatalf("%+v, %v", target, err)
	}
	if target, _, err = s.begin(run, "down", target, prev); err != nil || target.Command == nil || target.Command.PID != command.PID {
		t.Errorf("%+v, %v", target, err)
	}
}
