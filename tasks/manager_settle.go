package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hob/identity"
)

// settle makes room for a new run of the same name, if the one that is there has
// ended. A stop takes as long as it is given, so no lock is held that other runs
// wait for; whether there is room is decided again under the server's.
func (u *upRun) settle(ctx context.Context) error {
	if u.o.DryRun {
		return nil
	}
	u.awaitOrphans(ctx)
	d, have, began, err := u.find()
	if err != nil || d != runEnded {
		return err
	}
	return u.settleRun(ctx, have, began)
}

// settleRun ends what an earlier run of the name left, and archives its records.
// Those that cannot be trusted, and survivors, stay where they are, and nothing is
// started over them.
func (u *upRun) settleRun(ctx context.Context, have map[string]Derived, began map[string]time.Time) error {
	if err := torn(u.dir.Name, have); err != nil {
		return err
	}
	names, _ := u.taskNames(u.dir)
	outs := u.stopTasks(ctx, Selection{Run: u.dir, Tasks: names, Whole: true}, StopOptions{Reason: "up", began: began})
	for _, o := range outs {
		if errors.Is(o.Err, errMeanwhile) {
			return nil // it lives: what is to be done is planned under the server's lock
		}
		if err := o.unsettled(); err != nil {
			return &Problem{Err: fmt.Errorf("run %q ended and is not settled: %s: %w", u.dir.Name, o.Task, err),
				Tip: "hob sweep " + u.dir.Name + ", or another name with --name"}
		}
	}
	return u.archive(ctx, u.run.ID, began)
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
		_, err := t.ReadCapture()
		errs = append(errs, u.look(t).Trouble, trouble(err))
	}
	return errors.Join(errs...)
}

// awaitOrphans gives a command whose keeper was killed by force the moment that
// it takes to end: the kernel hangs up on it as it closes the keeper's pty. Seen
// in between it would be called up, and end before anybody could watch it.
func (u *upRun) awaitOrphans(ctx context.Context) {
	names, _ := u.taskNames(u.dir)
	deadline := u.Host.Now().Add(dyingDeadline)
	for _, name := range names {
		if seen := u.look(u.dir.Task(name)); unwatched(seen) && seen.Command.Verdict == identity.Owned {
			u.diesBy(ctx, *seen.Keeper.Command, deadline)
		}
	}
}

// archive moves the ended run away, under all its locks, if it is still the one
// that was settled. One that another up has moved away, or begun anew, is left.
func (u *upRun) archive(ctx context.Context, id string, began map[string]time.Time) error {
	unlockTasks, err := u.lockRun(ctx, u.dir)
	if err != nil {
		return gonePast(err)
	}
	defer unlockTasks()
	unlock, err := u.dir.Lock(ctx)
	if err != nil {
		return gonePast(err)
	}
	defer unlock()
	run, err := u.dir.Read()
	if trouble(err) != nil {
		return err
	}
	if run.ID != id || u.startedBy(run) || !u.asSettled(began) {
		return nil
	}
	_, err = u.dir.Archive()
	return err
}

// gonePast is nil where the run's folder has been moved away.
func gonePast(err error) error {
	if errors.Is(err, ErrNoRecord) {
		return nil
	}
	return err
}

// asSettled reports whether every task of the run is over, and none was started
// since it was seen. All locks of the run are held.
func (u *upRun) asSettled(began map[string]time.Time) bool {
	names, err := u.taskNames(u.dir)
	return err == nil && !slices.ContainsFunc(names, func(name string) bool {
		seen := u.lookHeld(u.dir.Task(name))
		return !Derive(seen).Over() || !seen.started().Equal(began[name])
	})
}
