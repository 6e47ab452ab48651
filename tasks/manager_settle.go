package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hob/identity"
)

// settled is an ended run of the name, of which nothing is left but its records.
// These stay where they are until nothing keeps the next run from starting.
type settled struct {
	id    string
	began map[string]time.Time
}

// settle ends what an ended run of the same name has left. A stop takes as long as
// it is given, so no lock is held that other runs wait for; whether there is room
// is decided again under the server's.
func (u *upRun) settle(ctx context.Context) error {
	u.before = nil
	if u.o.DryRun {
		return nil
	}
	d, have, began, all, err := u.find()
	if u.awaitOrphans(ctx, all) {
		d, have, began, all, err = u.find()
	}
	if err != nil || d != runEnded {
		return err
	}
	if err := u.settleRun(ctx, have, began, all); err != nil {
		return err
	}
	u.before = &settled{u.run.ID, began}
	return nil
}

// settleRun ends what an earlier run of the name left. Records that cannot be trusted, and survivors, stay where they are, and nothing is
// started over them.
func (u *upRun) settleRun(ctx context.Context, have map[string]Derived, began map[string]time.Time, all map[string]Seen) error {
	if err := torn(u.dir.Name, have); err != nil {
		return err
	}
	names, _ := u.taskNames(u.dir)
	if isGone(u.finding(u.run.Tmux.Server)) {
		names = slices.DeleteFunc(names, func(name string) bool { return u.atRest(u.dir.Task(name), all[name]) })
	}
	outs := u.stopTasks(ctx, Selection{Run: u.dir, Tasks: names, Whole: true}, StopOptions{Reason: "up", began: began})
	for _, o := range outs {
		if errors.Is(o.Err, errMeanwhile) {
			return nil // it lives: what is to be done is planned under the server's lock
		}
		if err := o.unsettled(); err != nil {
			return &Problem{Err: fmt.Errorf("run %q ended and is not settled: %s: %w", u.dir.Name, o.Task, err),
				Tip: advice(err, "hob sweep "+u.dir.Name) + ", or another name with --name"}
		}
	}
	return nil
}

// atRest reports whether a task was stopped by the whole protocol, and has left
// nothing that a stop would tidy away: no pane, for the server is gone that it was in
// (the run's, as the caller has seen), no cgroup and no hook.
func (u *upRun) atRest(t *TaskDir, s Seen) bool {
	if s.Trouble != nil || s.Cut != nil || s.Task == nil || s.Keeper == nil || s.adopted() != nil {
		return false
	}
	if s.Task.State != Stopped || !Derive(s).Over() || !isGone(s.KeeperV) || !s.Keeper.Empty || s.Keeper.Cgroup != nil || s.Keeper.Hook != "" {
		return false
	}
	if p := s.Task.Pane; p != nil && p.Server != nil && p.Server.Start != u.run.Tmux.Server.Start && !isGone(u.finding(p.Server)) {
		return false
	}
	spec, err := t.ReadSpec()
	return err == nil && spec.AfterStop == nil
}

func isGone(f identity.Finding) bool {
	return f.Verdict == identity.Gone || f.Verdict == identity.Foreign
}

// torn refuses a run whose tasks cannot all be known.
func torn(run string, have map[string]Derived) error {
	if d, torn := have[""]; torn {
		return unverified("move the file away once you know what it was", "run %q: %s", run, d.Note)
	}
	return nil
}

// unsound is what a stop of the run's tasks would find that it cannot read.
func (u *upRun) unsound() error {
	names, _ := u.taskNames(u.dir)
	var errs []error
	for _, name := range names {
		t := u.dir.Task(name)
		seen := u.look(t)
		_, err := t.ReadCapture()
		if seen.Trouble = errors.Join(seen.Trouble, trouble(err)); seen.Trouble != nil {
			u.excuse(t, &seen)
		}
		errs = append(errs, seen.Trouble)
	}
	return errors.Join(errs...)
}

// awaitOrphans gives a command whose keeper was killed by force the moment that
// it takes to end: the kernel hangs up on it as it closes the keeper's pty. Seen
// in between it would be called up, and end before anybody could watch it. It
// reports whether there was one.
func (u *upRun) awaitOrphans(ctx context.Context, all map[string]Seen) (waited bool) {
	deadline := u.Host.Now().Add(dyingDeadline)
	for _, seen := range all {
		if unwatched(seen) && seen.Command.Verdict == identity.Owned {
			u.diesBy(ctx, *seen.Keeper.Command, deadline)
			waited = true
		}
	}
	return waited
}

// archive moves the ended run away, under all its locks, if it is still the one
// that was settled: else errMeanwhile, as where another up has moved it away or
// begun it anew. The server's lock is held, which a start waits for under its
// task's: so no lock is waited for that is held through one.
func (u *upRun) archive(ctx context.Context, s settled) error {
	unlockTasks, err := u.tryLockRun()
	if err != nil {
		return meanwhile(u.dir, err)
	}
	defer unlockTasks()
	unlock, err := u.dir.Lock(ctx)
	if err != nil {
		return meanwhile(u.dir, err)
	}
	defer unlock()
	run, err := u.dir.Read()
	if trouble(err) != nil {
		return err
	}
	if run.ID != s.id || u.startedBy(run) || !u.asSettled(s.began) {
		return meanwhile(u.dir, ErrNoRecord)
	}
	to, err := u.dir.Archive()
	if err == nil {
		u.warn(u.tornIn(to))
	}
	return err
}

// tornIn names what cannot be trusted in an archived run: nothing needs it any more,
// and it is kept.
func (u *upRun) tornIn(folder string) []string {
	r := &RunDir{Name: u.dir.Name, Path: folder, store: u.dir.store}
	names, _ := r.Tasks()
	errs := make([]error, len(names))
	sideBySide(len(names), func(i int) { errs[i] = unreadable(r.Task(names[i])) })
	var notes []string
	for _, err := range errs {
		if err != nil {
			notes = append(notes, "kept as it is: "+strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	return notes
}

// tryLockRun takes the locks of all tasks of the run. ErrNoRecord where somebody
// holds one: it is not as it was settled.
func (u *upRun) tryLockRun() (Unlock, error) {
	var locks []Unlock
	release := func() {
		for _, unlock := range locks {
			unlock()
		}
	}
	names, err := u.dir.Tasks()
	for _, name := range names {
		unlock, ok, lockErr := u.dir.Task(name).TryLock()
		if err = lockErr; err == nil && !ok {
			err = ErrNoRecord
		}
		if err != nil {
			break
		}
		locks = append(locks, unlock)
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// meanwhile is errMeanwhile where the run is not as it was.
func meanwhile(r *RunDir, err error) error {
	if errors.Is(err, ErrNoRecord) {
		return fmt.Errorf("run %q: %w", r.Name, errMeanwhile)
	}
	return err
}

// asSettled reports whether every task of the run is over, and none was started
// since it was seen. All locks of the run are held. A record that was torn since is
// not archived: it is named where it is.
func (u *upRun) asSettled(began map[string]time.Time) bool {
	names, err := u.taskNames(u.dir)
	if err != nil {
		return false
	}
	for i, seen := range u.looks(u.dir, names) {
		seen.Busy = false // it is us
		if !Derive(seen).Over() || !seen.started().Equal(began[names[i]]) {
			return false
		}
	}
	return true
}
