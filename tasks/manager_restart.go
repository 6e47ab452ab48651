package tasks

import (
	"cmp"
	"context"
	"fmt"

	"hob/recipes"
)

// Loader reads a run's recipe again, as it is now. What it lays over it or sets
// otherwise than before it writes into the run.
type Loader func(*Run) (*recipes.Recipe, error)

// again is a run that is about to be restarted.
type again struct {
	sel    Selection
	run    Run
	recipe *recipes.Recipe
	same   bool // the recipe has not changed
}

// Restart stops tasks and starts them again by their recipe as it is now. All
// recipes are read before anything is stopped. A job that has completed is done
// again only if it is named.
func (m *Manager) Restart(ctx context.Context, sel []Selection, load Loader, o StopOptions) ([]Outcome, error) {
	var list []again
	for _, s := range sel {
		a, err := reload(s, load)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	var outs []Outcome
	for _, a := range list {
		outs = append(outs, m.restartRun(ctx, a, o)...)
	}
	if o.DryRun {
		return outs, nil
	}
	_, err := m.endServer(ctx)
	return outs, err
}

func reload(s Selection, load Loader) (again, error) {
	if a := adoptedIn(s); a != "" {
		return again{}, usage("hob down "+a+" stops it; a recipe with its command starts it the next time",
			"%s was adopted: hob did not start it, and does not know how", a)
	}
	run, err := s.Run.Read()
	if err != nil {
		return again{}, err
	}
	r, err := load(&run)
	if err != nil {
		return again{}, fmt.Errorf("the recipe of run %q: %w", s.Run.Name, err)
	}
	a := again{sel: s, run: run, recipe: r, same: digest(r) == run.Digest}
	if !a.same && !s.Whole {
		return a, usage("hob restart "+s.Run.Name+" restarts the whole run by it",
			"the recipe of run %q has changed, so no single task of it is restarted", s.Run.Name)
	}
	return a, nil
}

// restartRun stops, and starts only what could be stopped clean.
func (m *Manager) restartRun(ctx context.Context, a again, o StopOptions) []Outcome {
	if err := cmp.Or(lockable(m.serverLockPath()), lockable(a.sel.Run.file("run.lock"))); err != nil {
		return []Outcome{{Name: Name{Run: a.run.Name}, Err: fmt.Errorf("nothing was stopped, for nothing could be started again: %w", err)}}
	}
	outs := m.stopTasks(ctx, a.sel, o)
	var start []string
	for _, out := range outs {
		if out.Err == nil && (out.State.Settled() || o.DryRun) {
			start = append(start, out.Task)
		}
	}
	if o.DryRun || len(start) < len(outs) && !a.same {
		return outs
	}
	up := UpOptions{Name: a.run.Name, Rehearse: a.run.Rehearse, Set: a.run.Set, Profiles: a.run.Profiles,
		Lifetime: a.run.Lifetime, Owner: a.run.Owner, Keep: a.same}
	if !a.sel.Whole || len(start) < len(outs) {
		up.Tasks = start
	}
	if len(up.Tasks) == 0 && !a.sel.Whole || len(start) == 0 {
		return outs
	}
	started, err := m.Up(ctx, a.recipe, up)
	if err != nil {
		started = append(started, Outcome{Name: Name{Run: a.run.Name}, Err: err})
	}
	return append(unsettled(outs), started...)
}

// unsettled keeps of the stops those that the person must know of.
func unsettled(outs []Outcome) []Outcome {
	var bad []Outcome
	for _, o := range outs {
		if o.Err != nil || o.Hook != nil || !o.State.Settled() {
			bad = append(bad, o)
		}
	}
	return bad
}
