package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"hob/identity"
)

// RemoveOptions of Remove.
type RemoveOptions struct {
	Forget bool // also what cannot be verified or read
	DryRun bool
}

// Ended are the words that Remove takes: runs, and folders of the archive.
func (m *Manager) Ended() ([]string, error) {
	runs, err := m.Store.Runs()
	archived, err2 := m.Store.Archived()
	for _, r := range archived {
		runs = append(runs, filepath.Base(r.Path))
	}
	return runs, errors.Join(err, err2)
}

// Remove deletes the records of ended runs: a run with its archived ones, or one
// folder of the archive. What lives, and what could still be ended, stays.
func (m *Manager) Remove(ctx context.Context, names []string, o RemoveOptions) ([]Outcome, error) {
	have, err := m.Ended()
	if err != nil {
		return nil, err
	}
	archived, err := m.Store.Archived()
	if err != nil {
		return nil, err
	}
	var outs []Outcome
	for _, name := range names {
		list := removable(m.Store, name, archived)
		if len(list) == 0 || !slices.Contains(have, name) && !slices.ContainsFunc(list, func(r *RunDir) bool { return r.Name == name }) {
			return outs, Names{}.unknown("run", name, have)
		}
		for _, r := range list {
			outs = append(outs, m.removeRun(ctx, r, o))
		}
	}
	if !o.DryRun {
		_, _ = m.endServer(ctx) // it may have lost its last pane; if not now, the next down ends it
	}
	return outs, nil
}

// removable are the folders that a word names.
func removable(s *Store, name string, archived []*RunDir) []*RunDir {
	var list []*RunDir
	runs, _ := s.Runs()
	if slices.Contains(runs, name) {
		list = append(list, s.Run(name))
	}
	for _, r := range archived {
		if r.Name == name || filepath.Base(r.Path) == name {
			list = append(list, r)
		}
	}
	return list
}

// ArchivedBefore are the names of the folders in the archive that were archived
// before a time, the oldest first; for the zero time all, also those of a clock that
// was set back since.
func (m *Manager) ArchivedBefore(t time.Time) ([]string, error) {
	archived, err := m.Store.Archived()
	var names []string
	for _, r := range archived {
		if at, ok := archivedAt(r); t.IsZero() || ok && at.Before(t) {
			names = append(names, filepath.Base(r.Path))
		}
	}
	return names, err
}

// ArchivedRun is the name of the run that a folder of the archive is of, "" when
// it is none.
func ArchivedRun(folder string) string {
	run, _, _ := splitArchived(folder)
	return run
}

func (m *Manager) removeRun(ctx context.Context, r *RunDir, o RemoveOptions) Outcome {
	out := Outcome{Name: Name{Run: filepath.Base(r.Path)}, Did: "removed"}
	unlock, err := m.lockRun(ctx, r, !o.DryRun)
	if err != nil {
		out.Did, out.Err = "kept", err
		return out
	}
	defer unlock()
	// An up writes itself down under this lock before it makes any task: either it
	// is seen below, or it finds the run gone and starts nothing.
	unlockRun, err := r.Lock(ctx)
	if err != nil {
		out.Did, out.Err = "kept", err
		return out
	}
	defer unlockRun()
	if out.Err = m.mayRemove(r, o.Forget); out.Err != nil {
		out.Did = "kept"
		return out
	}
	if o.DryRun {
		out.Did = "would be removed"
		return out
	}
	if err := m.closePanes(ctx, r); err != nil && !o.Forget {
		out.Did = "kept"
		tip := "hob rm --forget " + out.Run + " gives the record up, and leaves the pane"
		if first := advice(err, ""); first != "" {
			tip = first + "; or " + tip
		}
		out.Err = &Problem{Err: err, Tip: tip}
		return out
	} else if err != nil {
		out.Did = "removed; a pane of it may be left: " + err.Error()
	}
	out.Err = r.Remove()
	return out
}

// closePanes closes the dead panes of a run that is about to lose its records:
// without them nobody could tell any more that they are hob's. What cannot be
// proven ours is left alone.
func (m *Manager) closePanes(ctx context.Context, r *RunDir) error {
	run, err := r.Read()
	if errors.Is(err, ErrNoRecord) || err == nil && run.Tmux.Socket == "" {
		return nil // it never had one
	}
	tasks, err := m.taskNames(r)
	errs := []error{err}
	for _, name := range tasks {
		t := r.Task(name)
		seen := m.lookHeld(t)
		if k, err := t.ReadKeeper(); err == nil && seen.Task == nil {
			seen.Keeper = &k // it names its pane, whatever has become of task.json
		}
		s := stopper{Manager: m, run: r, dir: t, seen: seen}
		errs = append(errs, s.ClosePane(ctx))
		m.discardCgroup(r, t)
	}
	return errors.Join(errs...)
}

// lockRun takes the locks of all tasks of a run, so that nobody starts or stops
// one meanwhile. act: a stopped keeper that holds one is resumed.
func (m *Manager) lockRun(ctx context.Context, r *RunDir, act bool) (Unlock, error) {
	var locks []Unlock
	release := func() {
		for _, u := range locks {
			u()
		}
	}
	tasks, err := r.Tasks()
	if err != nil {
		return nil, err
	}
	for _, name := range tasks {
		u, err := m.lockTask(ctx, r.Task(name), act)
		if err != nil {
			release()
			return nil, err
		}
		locks = append(locks, u)
	}
	return release, nil
}

// mayRemove decides by each task's state whether the records of a run may go. All
// its locks are held.
func (m *Manager) mayRemove(r *RunDir, forget bool) error {
	tasks, err := m.taskNames(r)
	if err != nil && !forget {
		return &Problem{Kind: ErrUnverified, Err: err, Tip: "hob rm --forget " + filepath.Base(r.Path) + " removes it all the same"}
	}
	run, noRun := r.recorded()
	if err := ofANewerHob(Name{Run: r.Name}, Seen{Trouble: noRun}); err != nil {
		return err
	}
	if noRun == nil && m.startedBy(run) {
		return &Problem{Msg: fmt.Sprintf("hob with pid %d is bringing it up", run.Starter.PID), Tip: "hob down " + r.Name}
	}
	for _, name := range tasks {
		n, t := Name{r.Name, name}, r.Task(name)
		if err := unreadable(t); err != nil && !forget {
			return &Problem{Kind: ErrUnverified, Err: err, Tip: "hob rm --forget " + filepath.Base(r.Path) + " gives the record up"}
		}
		seen := m.lookHeld(t)
		d := Derive(seen)
		if trouble(noRun) != nil && (d.Tended || d.State.Lives()) {
			return m.untrusted(r.Name, t, noRun) // no verb could stop it by that record
		}
		if err := cmp.Or(ofANewerHob(n, seen), mayForget(n, d, forget, isAdopted(t))); err != nil {
			return err
		}
		if !forget {
			continue
		}
		if err := m.noKeeper(n, t); err != nil {
			return err
		}
	}
	return nil
}

// unreadable are the records of a task that cannot be trusted, of those that a look
// at the task does not need.
func unreadable(t *TaskDir) error {
	_, spec := t.ReadSpec()
	_, capture := t.ReadCapture()
	_, stop := t.ReadStop()
	_, report := t.ReadReport()
	return errors.Join(trouble(spec), trouble(capture), trouble(stop), trouble(report))
}

// ofANewerHob refuses records that only another hob can read: what they name may
// live, and nobody would know of it any more.
func ofANewerHob(n Name, s Seen) error {
	var rec *RecordError
	if errors.As(s.Trouble, &rec) && rec.Kind == Newer {
		return &Problem{Kind: ErrUnverified, Err: fmt.Errorf("%s: %w", n, rec), Tip: "the hob that wrote it can stop and remove it"}
	}
	return nil
}

// noKeeper refuses a task whose keeper lives, whatever task.json says or does not.
func (m *Manager) noKeeper(n Name, t *TaskDir) error {
	pid, err := m.livingKeeper(t)
	if err != nil {
		return &Problem{Kind: ErrUnverified, Err: fmt.Errorf("%s: look for its keeper: %w", n, err), Tip: "hob doctor"}
	}
	if pid == 0 {
		return nil
	}
	return &Problem{Msg: fmt.Sprintf("%s: its keeper, pid %d, lives", n, pid), Tip: "TERM to the keeper stops the task"}
}

// livingKeeper is the pid of the task's keeper, 0 when none lives. Where keeper.json
// cannot be read, is not there, or names none that lives, which somebody may have
// written, the keeper is looked for by what it was told.
func (m *Manager) livingKeeper(t *TaskDir) (int, error) {
	if k, err := t.ReadKeeper(); err == nil && m.finding(&k.Keeper).Verdict == identity.Owned {
		return k.Keeper.PID, nil
	}
	return m.keeperByArgs(t)
}

func (m *Manager) keeperByArgs(t *TaskDir) (int, error) {
	table, err := m.Host.Snapshot(bg, identity.WantArgs)
	if err != nil {
		return 0, err
	}
	if i := slices.IndexFunc(table.Procs, func(p identity.Process) bool { return keeps(p.Args, t) }); i >= 0 {
		return table.Procs[i].PID, nil
	}
	return 0, nil
}

// Keepers are the pids of all keepers that live.
func (m *Manager) Keepers() []int {
	all, _ := m.All() // of what cannot be read none is known
	var pids []int
	for _, s := range all {
		for _, task := range s.Tasks {
			if k, err := s.Run.Task(task).ReadKeeper(); err == nil && m.finding(&k.Keeper).Verdict == identity.Owned {
				pids = append(pids, k.Keeper.PID)
			}
		}
	}
	return pids
}

// mayForget is pure. What was adopted can be given back while it lives: hob has
// started nothing of it.
func mayForget(n Name, d Derived, forget, adopted bool) error {
	switch {
	case d.Over(), adopted && forget && d.State == Up:
		return nil
	case adopted && d.State == Up:
		return &Problem{Msg: n.String() + " is up", Tip: "hob down " + n.Run + " stops it; hob rm --forget " + n.Run + " lets it run on without hob"}
	case d.Tended, d.State.Lives():
		return &Problem{Msg: n.String() + " is " + string(d.State), Tip: "hob down " + n.Run}
	case d.State == Survivors:
		return &Problem{Kind: ErrSurvivors, Msg: n.String() + ": " + d.Note, Tip: "hob sweep " + n.String()}
	case forget:
		return nil
	}
	return &Problem{Kind: ErrUnverified, Msg: n.String() + " is " + string(d.State) + ": " + d.Note,
		Tip: "hob sweep " + n.String() + " looks once more; hob rm --forget " + n.Run + " gives the record up"}
}
