package tasks

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/recipes"
	"hob/sweep"
)

// TestCutWithoutARecord: a hob is killed in the middle of a start, or of a stop of
// which nothing lives any more. It lets go of the task's lock, and writes nothing:
// whoever waits for the task is woken all the same. So is one that took another's
// look, which takes the lock for a moment, for somebody at work.
func TestCutWithoutARecord(t *testing.T) {
	for name, wait := range map[string]func(context.Context, *Manager, *watcher, *RunDir, *TaskDir) error{
		"wait": func(ctx context.Context, m *Manager, w *watcher, r *RunDir, d *TaskDir) error {
			_, err := m.untilEnd(ctx, w, Name{r.Name, d.Name})
			return err
		},
		"up": func(ctx context.Context, m *Manager, w *watcher, r *RunDir, d *TaskDir) error {
			u := &upRun{Manager: m, dir: r, watch: w}
			task := &upTask{Task: recipes.Task{Name: d.Name, Kind: string(sweep.Server)}, dir: d, mark: newMilestones()}
			if _, err := u.follow(ctx, task); err == nil || ctx.Err() != nil {
				return errors.Join(errors.New("it came up"), err)
			}
			return nil
		},
		"logs": func(ctx context.Context, m *Manager, w *watcher, _ *RunDir, d *TaskDir) error {
			l := &logReader{m: m, dir: d, watch: w, o: LogOptions{Follow: true, Lines: -1}, out: func([]byte) error { return nil }}
			return l.run(ctx)
		},
	} {
		for _, state := range []State{Starting, Stopping} {
			t.Run(name+", "+string(state), func(t *testing.T) {
				r, d := newTask(t)
				m := &Manager{Store: r.store, Host: localHost(t)}
				err := errors.Join(r.Write(Run{Name: "chat", ID: "feedface", Tasks: []string{"llm"}}),
					d.WriteTask(Task{Run: "chat", Task: "llm", Nonce: "n", Kind: sweep.Server, State: state}))
				if err != nil {
					t.Fatal(err)
				}
				unlock, err := d.Lock(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				w, ctx := patientWatch(t)
				done := make(chan error, 1)
				go func() { done <- wait(ctx, m, w, r, d) }()
				watched(t, w, d.Path)
				unlock()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// patientWatch is a watcher, and how long a test waits for what it watches for.
func patientWatch(t *testing.T) (*watcher, context.Context) {
	t.Helper()
	w, err := newWatcher()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(func() { cancel(); w.close() })
	return w, ctx
}

// watched waits until somebody has read a task's records and watches them.
func watched(t *testing.T, w *watcher, dir string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for there := false; !there; time.Sleep(2 * time.Millisecond) {
		w.mu.Lock()
		there = len(w.subs[dir]) > 0
		w.mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatal("nobody watches")
		}
	}
}

// deaf is a host that cannot wait for anything.
type deaf struct{ identity.Host }

func (deaf) Wait(context.Context, []identity.Handle, time.Time) error { return syscall.ENOMEM }

// TestEndThatCannotBeWaitedFor: where the kernel does not tell of an end, the task is
// looked at again and again; its end is not missed, nor taken for granted.
func TestEndThatCannotBeWaitedFor(t *testing.T) {
	r, d := newTask(t)
	m := &Manager{Store: r.store, Host: deaf{localHost(t)}}
	keeper := another(t, m.Host, "hob", "keeper", d.SpecPath())
	err := errors.Join(r.Write(Run{Name: "chat", ID: "feedface", Tasks: []string{"llm"}}),
		d.WriteTask(Task{Run: "chat", Task: "llm", Nonce: "n", Kind: sweep.Server, State: Up}),
		d.WriteKeeper(Keeper{Nonce: "n", Keeper: keeper, Command: &keeper}))
	if err != nil {
		t.Fatal(err)
	}
	w, ctx := patientWatch(t)
	ended := make(chan error, 1)
	go func() {
		e, err := m.untilEnd(ctx, w, Name{r.Name, d.Name})
		if e.State != Lost {
			err = errors.Join(err, errors.New("it is "+string(e.State)))
		}
		ended <- err
	}()
	watched(t, w, d.Path)
	pin, _ := m.Host.Verify(keeper)
	defer pin.Close()
	select {
	case err := <-ended:
		t.Errorf("it lives, and counts as ended: %v", err)
	default:
	}
	if err := pin.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
