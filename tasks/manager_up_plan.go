package tasks

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"hob/identity"
)

// plan finds out what of the recipe is to be started.
func (u *upRun) plan() error {
	d, have, began, _, err := u.find()
	if err != nil {
		return err
	}
	if d != runEnded {
		u.before = nil // others have archived it, or brought it up
	}
	switch {
	case d == runEnded && !u.o.DryRun && u.before == nil:
		return fmt.Errorf("run %q: %w", u.dir.Name, errMeanwhile) // it has ended since it was looked for
	case d == runEnded && !u.o.DryRun:
		u.run = Run{} // the records that are there make room for it
	case d == runEnded:
		err = errors.Join(torn(u.dir.Name, have), u.unsound())
	}
	u.chooseTasks(have, began, d == runLives)
	return err
}

// find says what stands under the run's name, with every task of it.
func (u *upRun) find() (d runState, have map[string]Derived, began map[string]time.Time, all map[string]Seen, err error) {
	u.run, err = u.dir.recorded()
	if trouble(err) != nil {
		return d, nil, nil, nil, err
	}
	have, began, all = u.lookAll()
	d, err = decideUp(u.dir.Name, u.run.Digest, digest(u.recipe), have, u.starting())
	switch {
	case err != nil && adoptedIn(Selection{Run: u.dir, Tasks: slices.Collect(maps.Keys(have))}) != "":
		err = usage("hob down "+u.dir.Name+" stops it; or another name with --name", "run %q is up, and was adopted", u.dir.Name)
	case err != nil:
	case d == runLives && u.o.Lifetime == Contained && !u.o.Keep:
		// It would be ended with this hob, and belongs to nobody or to another.
		err = usage("another name with --name, or hob down "+u.dir.Name, "run %q is up already", u.dir.Name)
	case d == runEnded && u.o.Keep:
		d = runLives
	}
	return d, have, began, all, err
}

// starting reports whether another hob is bringing the run up: it lives then,
// although perhaps no task of it does yet.
func (u *upRun) starting() bool { return u.startedBy(u.run) }

// startedBy reports whether another hob is at work on bringing the run up.
func (m *Manager) startedBy(run Run) bool {
	s := run.Starter
	return s != nil && s.PID != os.Getpid() && m.finding(s).Verdict == identity.Owned
}

// lookAll is the state of every task that the run's folder knows, and when it
// was last started.
func (u *upRun) lookAll() (map[string]Derived, map[string]time.Time, map[string]Seen) {
	have, began, all := map[string]Derived{}, map[string]time.Time{}, map[string]Seen{}
	names, err := u.taskNames(u.dir)
	if err != nil {
		have[""] = Derived{State: Unverified, Note: err.Error()}
	}
	for i, seen := range u.looks(u.dir, names) {
		name := names[i]
		have[name], began[name], all[name] = Derive(seen), seen.started(), seen
	}
	return have, began, all
}

// What `up` finds under a run's name.
type runState int

const (
	runNew   runState = iota // nothing
	runLives                 // the same recipe, something of it up
	runEnded                 // nothing of it is up
)

// decideUp says what stands under a run's name, or refuses.
func decideUp(name, recorded, wanted string, have map[string]Derived, starting bool) (runState, error) {
	if len(have) == 0 && recorded == "" {
		return runNew, nil
	}
	lives := starting
	for _, d := range have {
		lives = lives || d.State.Lives()
	}
	switch {
	case !lives:
		return runEnded, nil
	case recorded != wanted:
		return runLives, usage("hob restart "+name+" takes the recipe as it is now",
			"run %q is up, and was started from a recipe that differs", name)
	}
	return runLives, nil
}

// chooseTasks says of each wanted task what is to be done. In a run that is up a
// job that has completed is not done again unless it is named.
func (u *upRun) chooseTasks(have map[string]Derived, began map[string]time.Time, lives bool) {
	u.tasks, u.notes = nil, nil
	for _, rt := range u.wanted {
		t := &upTask{Task: rt, dir: u.dir.Task(rt.Name), act: start, mark: newMilestones()}
		if lives {
			t.was, t.began = have[rt.Name], began[rt.Name]
			t.act = chooseAction(t.was, slices.ContainsFunc(u.o.Tasks, rt.Named))
		}
		u.tasks = append(u.tasks, t)
	}
}

func chooseAction(d Derived, named bool) action {
	switch {
	case d.State == "":
		return start
	case d.State == Stopping: // or its stop was cut: it is waited for, or finished
		return settle
	case d.State.Lives(), d.State == Completed && !named:
		return leave
	case d.Over():
		return start
	}
	return settle
}
