package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"hob/identity"
)

// below reports whether the caller runs below the task's own keeper: then a stop
// of the task would end the caller in the middle.
func (m *Manager) below(t *TaskDir) bool {
	k, err := t.ReadKeeper()
	if err != nil {
		return false
	}
	if m.finding(&k.Keeper).Verdict != identity.Owned {
		return false
	}
	return m.ancestor(os.Getpid(), k.Keeper.PID)
}

// ancestor walks up from pid and reports whether it meets above.
func (m *Manager) ancestor(pid, above int) bool {
	for range 1000 { // a chain cannot be longer, and a lying table must not hold us
		if pid <= 1 {
			return false
		}
		h, err := m.Host.Open(pid)
		if err != nil {
			return false
		}
		p, err := h.Read(0)
		_ = h.Close()
		if err != nil {
			return false
		}
		if p.PPID == above {
			return true
		}
		pid = p.PPID
	}
	return false
}

// stopOwn has the keeper above the caller stop its own task: hob could not
// finish what it is itself ended by.
func (m *Manager) stopOwn(r *RunDir, t *TaskDir, o StopOptions) Outcome {
	out := Outcome{Name: Name{r.Name, t.Name}, Did: "is stopped by its own keeper"}
	k, err := t.ReadKeeper()
	if err != nil {
		out.Err = err
		return out
	}
	h, f := m.Host.Verify(k.Keeper)
	if h == nil {
		out.Err = unverified("", "the keeper of %s: %s", out.Name, f.Reason)
		return out
	}
	defer h.Close()
	if o.DryRun {
		out.Did = "would be stopped by its own keeper"
		return out
	}
	out.State = Stopping
	err = t.WriteStop(StopRequest{Schema: Schema, Nonce: k.Nonce, Reason: o.Reason, At: m.now()})
	if err == nil {
		err = h.Signal(syscall.SIGTERM)
	}
	if err != nil {
		out.Err = fmt.Errorf("ask the keeper of %s to stop it: %w", out.Name, err)
	}
	return out
}

// AfterKeeper closes the pane of a task that its own keeper was asked to stop
// (`hob down` typed below it), and ends the tmux server with its last pane: the
// hob that would do so ended with the task. The keeper calls it as the last
// thing it does.
func AfterKeeper(ctx context.Context, h identity.Host, spec string) error {
	r, t, err := taskOfSpec(spec)
	if err != nil {
		return err
	}
	stop, err := t.ReadStop()
	if errors.Is(err, ErrNoRecord) {
		return nil
	}
	if err != nil {
		return err
	}
	m := &Manager{Store: r.store, Host: h, Verb: "keeper"}
	seen := m.look(t)
	if seen.Task == nil || seen.Task.Nonce != stop.Nonce || !seen.Task.State.Settled() {
		return nil
	}
	run, err := r.Read()
	if err != nil {
		return err
	}
	s := stopper{Manager: m, run: r, dir: t, seen: seen}
	closeErr := s.ClosePane(ctx) // the tmux client is hung up with the pane, perhaps before it can say so
	if _, err := m.endServerOn(ctx, run.Tmux.Socket); err != nil {
		return errors.Join(closeErr, err)
	}
	return nil
}
