package tasks

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"

	"hob/identity"
)

// Reap looks at every record: contained tasks whose owner is gone are stopped,
// of detached ones only the record is corrected, and what cannot be told is
// left as it is. Without wait it gives way to a reaper that is at work already.
func (m *Manager) Reap(ctx context.Context, wait bool, o StopOptions) ([]Outcome, error) {
	unlock, ok, err := m.reapLock(ctx, wait)
	if err != nil || !ok {
		return nil, err
	}
	defer unlock()
	all, err := m.All()
	if err != nil {
		return nil, err
	}
	var outs []Outcome
	for _, s := range all {
		outs = append(outs, m.reapRun(ctx, s, o)...)
	}
	if o.DryRun {
		return outs, nil
	}
	return outs, m.reapCgroups()
}

func (m *Manager) reapLock(ctx context.Context, wait bool) (Unlock, bool, error) {
	path := filepath.Join(m.Store.Home, "reap.lock")
	if !wait {
		return tryLock(path)
	}
	unlock, err := lock(ctx, path)
	return unlock, err == nil, err
}

func (m *Manager) reapRun(ctx context.Context, s Selection, o StopOptions) []Outcome {
	run, err := s.Run.Read()
	if errors.Is(err, ErrNoRecord) {
		return nil
	}
	if err != nil {
		return []Outcome{{Name: Name{Run: s.Run.Name}, State: Unverified, Did: "left as it is", Err: err}}
	}
	owner := identity.Finding{}
	if run.Lifetime == Contained {
		owner = m.finding(run.Owner)
	}
	var outs []Outcome
	seen := m.looks(s.Run, s.Tasks)
	for i, name := range s.Tasks {
		out := m.reapTask(ctx, s.Run, s.Run.Task(name), seen[i], owner, o)
		if out.Did != "" {
			outs = append(outs, out)
		}
	}
	return outs
}

// reaping is what becomes of one record.
type reaping int

const (
	reapNothing reaping = iota
	reapCorrect         // write what the evidence shows
	reapStop            // its owner is gone
	reapLeave           // cannot be told
)

// decideReap is the reaper's rule. A task is never stopped for being old.
func decideReap(l Lifetime, owner identity.Verdict, claim State, d Derived) reaping {
	over := d.Over()
	switch {
	case d.State == Unverified && claim != Unverified:
		return reapLeave
	case l == Contained && !over && (owner == identity.Gone || owner == identity.Foreign):
		return reapStop
	case l == Contained && !over && owner == identity.Unverifiable:
		return reapLeave
	case over && claim != d.State:
		return reapCorrect
	}
	return reapNothing
}

func (m *Manager) reapTask(ctx context.Context, r *RunDir, t *TaskDir, seen Seen, owner identity.Finding, o StopOptions) Outcome {
	out := Outcome{Name: Name{r.Name, t.Name}}
	if seen.Task == nil {
		out.Err = seen.Trouble
		if out.Err != nil {
			out.State, out.Did = Unverified, "left as it is"
		}
		return out
	}
	if !o.DryRun {
		m.thawCut(r, t, seen)
	}
	d := Derive(seen)
	out.State = d.State
	if seen.adopted() != nil && d.State == Up && !o.DryRun {
		m.captureAgain(ctx, r, t)
	}
	life := Detached
	if owner.Verdict != "" {
		life = Contained
	}
	switch decideReap(life, owner.Verdict, seen.Task.State, d) {
	case reapLeave:
		why := cmp.Or(d.Note, owner.Reason)
		out.Did, out.Err = "left as it is: "+why, seen.Trouble
		if out.Err == nil {
			out.Err = unverified("hob ps -v says what was seen of it", "it cannot be told: %s", why)
		}
	case reapStop:
		return m.stopTask(ctx, r, t, StopOptions{Reason: "owner", DryRun: o.DryRun})
	case reapCorrect:
		out.Did = "corrected: it is " + string(d.State)
		if !o.DryRun {
			out.Did, out.Err = m.correct(r, t, out.Did)
		}
	}
	return out
}

// correct brings the record of a task that ended while nobody looked up to what
// is seen, unless somebody is at work on it.
func (m *Manager) correct(r *RunDir, t *TaskDir, did string) (string, error) {
	unlock, ok, err := t.TryLock()
	if err != nil || !ok {
		return "", err
	}
	defer unlock()
	seen := m.lookHeld(t)
	d := Derive(seen)
	if seen.Trouble != nil || seen.Task == nil || !d.Over() || seen.KeeperV.Verdict == identity.Owned {
		return "", seen.Trouble
	}
	task := *seen.Task
	task.State, task.UpdatedAt, task.EndedAt = d.State, m.now(), endedAt(seen, m.now())
	m.event(r, t.Name, did)
	return did, t.WriteTask(task)
}
