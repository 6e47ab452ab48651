package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"hob/identity"
)

// position is where the caller stands to a task's keeper.
type position int

const (
	elsewhere position = iota // not below it
	below                     // below it: a stop of the task would end the caller in the middle
	unplaced                  // could not be told: then the keeper is asked, as if it were below
)

// position is where this hob stands to the task's keeper.
func (m *Manager) position(t *TaskDir) position {
	k, err := t.ReadKeeper()
	switch {
	case errors.Is(err, ErrNoRecord):
		return elsewhere
	case err != nil:
		return unplaced
	}
	v := m.finding(&k.Keeper).Verdict
	if v == identity.Gone || v == identity.Foreign {
		return elsewhere
	}
	return placed(v, m.beneath(os.Getpid(), k.Keeper.PID))
}

// placed decides by what the keeper turned out to be and by where its number
// stands in the caller's ancestry. A keeper that cannot be verified is nobody's
// ancestor for certain, but who does not have its number above is not below it.
func placed(keeper identity.Verdict, number position) position {
	if number == below && keeper != identity.Owned {
		return unplaced
	}
	return number
}

// beneath looks for a process of this number above pid. Where an ancestor hides
// its row (hidepid, and another user's shell or sudo between), it is looked for
// from above: the keeper's tree is ours to read.
func (m *Manager) beneath(pid, above int) position {
	at := pid
	for range deepest {
		if at <= 1 {
			return elsewhere
		}
		h, err := m.Host.Open(at)
		if err != nil {
			return m.inTree(above, pid)
		}
		p, err := h.Read(0)
		_ = h.Close()
		if err != nil {
			return m.inTree(above, pid)
		}
		if p.PPID == above {
			return below
		}
		at = p.PPID
	}
	return unplaced
}

// deepest is how long a chain of parents may be: a table that lies must not hold us.
const deepest = 1000

// inTree looks for pid in the tree below root. A part that cannot be read may be
// the one that it is in.
func (m *Manager) inTree(root, pid int) position {
	found := elsewhere
	todo, seen := []int{root}, map[int]bool{root: true}
	for len(todo) > 0 {
		kids, err := m.Host.Children(todo[0])
		todo = todo[1:]
		if err != nil && !errors.Is(err, identity.ErrGone) {
			found = unplaced
		}
		for _, kid := range kids {
			if kid == pid {
				return below
			}
			if !seen[kid] {
				seen[kid] = true
				todo = append(todo, kid)
			}
		}
	}
	return found
}

// stopOwn has the keeper above the caller stop its own task: hob could not
// finish what it is itself ended by.
func (m *Manager) stopOwn(r *RunDir, t *TaskDir, o StopOptions) Outcome {
	out := Outcome{Name: Name{r.Name, t.Name}, Did: "left as it is"}
	k, err := t.ReadKeeper()
	if err != nil {
		out.Err = m.untrusted(r.Name, t, err)
		return out
	}
	h, f := m.Host.Verify(k.Keeper)
	if h == nil {
		out.Err = unverified("", "the keeper of %s: %s", out.Name, f.Reason)
		if f.Verdict == identity.Unverifiable {
			out.Err = noneToTell(out.Name, f)
		}
		return out
	}
	defer h.Close()
	if out.Err = newerKeeper(t, k, f); out.Err != nil {
		return out
	}
	if o.DryRun {
		out.Did = "would be stopped by its own keeper"
		return out
	}
	err = t.WriteStop(StopRequest{Schema: Schema, Nonce: k.Nonce, Reason: o.Reason, At: m.now()})
	if err == nil {
		err = h.Signal(syscall.SIGTERM)
	}
	if err != nil {
		out.Err = fmt.Errorf("ask the keeper of %s to stop it: %w", out.Name, err)
		return out
	}
	out.State, out.Did = Stopping, "is stopped by its own keeper"
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
