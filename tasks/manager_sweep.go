package tasks

import (
	"context"
	"errors"
	"slices"
	"sync"

	"hob/sweep"
	"hob/sweep/gpu"
)

// Sweep looks at the whole host for what is left of tasks that have ended, and
// ends what is provably theirs. Of a living task nothing is signalled; what
// looks like it is named.
func (m *Manager) Sweep(ctx context.Context, sel []Selection, o StopOptions) []Outcome {
	var outs []Outcome
	for _, s := range sel {
		run, err := s.Run.recorded()
		if errors.Is(err, ErrNoRecord) && !m.anyTask(s) {
			continue // it was archived or removed meanwhile, or never got as far as a task
		}
		if err != nil {
			outs = append(outs, Outcome{Name: Name{Run: s.Run.Name}, State: Unverified, Err: err})
			continue
		}
		list := make([]Outcome, len(s.Tasks))
		var wg sync.WaitGroup
		for i, task := range s.Tasks {
			wg.Go(func() { list[i] = m.sweepTask(ctx, run, s.Run, s.Run.Task(task), o) })
		}
		wg.Wait()
		outs = append(outs, list...)
	}
	return outs
}

// anyTask reports whether there is a record of a task, or there may be.
func (m *Manager) anyTask(s Selection) bool {
	return slices.ContainsFunc(s.Tasks, func(name string) bool {
		_, err := s.Run.Task(name).ReadTask()
		return !errors.Is(err, ErrNoRecord)
	})
}

func (m *Manager) sweepTask(ctx context.Context, run Run, r *RunDir, t *TaskDir, o StopOptions) Outcome {
	out := Outcome{Name: Name{r.Name, t.Name}, State: Stopped, Did: "was never started"}
	if _, err := t.ReadTask(); errors.Is(err, ErrNoRecord) && m.missing(t, Seen{}) == nil {
		return out
	}
	seen := m.look(t)
	if s := Derive(seen).State; !s.Lives() || s == Stopping {
		unlock, err := m.lockTask(ctx, t, !o.DryRun)
		if errors.Is(err, ErrNoRecord) {
			out.Did = "was archived or removed meanwhile"
			return out
		}
		if err != nil {
			out.State, out.Did, out.Err = Derive(seen).State, "left as it is", err
			return out
		}
		defer unlock()
		if seen = m.lookToAct(t); seen.Task != nil && seen.Task.State == Starting && seen.Keeper == nil {
			return m.stopLocked(ctx, r, t, o) // a start that was cut: its keeper may still be coming up
		}
	}
	if seen.Task == nil && seen.Trouble == nil {
		out.Did = "has no record any more" // and perhaps a run of that name is being made anew
		return out
	}
	m.sweepOne(ctx, run, r, t, seen, o, &out)
	return out
}

// sweepOne sweeps a task as it was seen: under its lock, or living. One that has
// ended since it was seen living is only looked at, for nobody holds its lock.
func (m *Manager) sweepOne(ctx context.Context, run Run, r *RunDir, t *TaskDir, seen Seen, o StopOptions, out *Outcome) {
	d := Derive(seen)
	out.State, out.Did = d.State, "swept"
	if seen.Trouble != nil {
		out.Did, out.Err = "left as it is", m.untrusted(r.Name, t, seen.Trouble)
		return
	}
	if err := seen.startedElsewhere(out.Name); err != nil && !d.Over() {
		out.Did, out.Err = "left as it is", err
		return
	}
	s := stopper{Manager: m, run: r, dir: t, seen: seen, server: run.Tmux.Server}
	target, prev, err := s.target(run)
	if err == nil {
		err = fromElsewhere(out.Name, seen)
	}
	if err != nil {
		out.Did, out.Err = "left as it is", m.untrusted(r.Name, t, err)
		return
	}
	living := d.State.Lives()
	rep, err := sweep.Sweep(ctx, m.Host, target, prev, &s, living, sweep.Options{Reason: o.Reason, DryRun: o.DryRun, GPU: gpu.Read})
	out.Report, out.Err = &rep, err
	if living || o.DryRun || err != nil || rep.Host.Inspection == "none" {
		if living {
			out.Did = "looked at"
		}
		return
	}
	out.State, out.Err = s.swept(rep)
	m.discardCgroup(r, t)
}

// hookOver writes down, in the place of a keeper that is gone, that nothing is left of
// the after_stop which it ran.
func (s *stopper) hookOver(rep sweep.Report) error {
	if rep.Verdict != sweep.Clean || s.seen.Keeper == nil || s.seen.Keeper.Hook == "" || !isGone(s.seen.KeeperV) {
		return nil
	}
	k := *s.seen.Keeper
	k.Hook, k.Empty, k.UpdatedAt = "", true, s.now()
	return s.dir.writeKeeper(k, passing)
}

// swept writes what a sweep came to.
func (s *stopper) swept(rep sweep.Report) (State, error) {
	s.byItself = endedByItself(s.seen)
	state := s.stateAfter(rep)
	if state == Stopped && s.seen.Task.State.Settled() {
		state = s.seen.Task.State
	}
	err := errors.Join(s.dir.WriteReport(rep), s.hookOver(rep))
	if task := *s.seen.Task; task.State != state {
		now := s.now()
		task.State, task.UpdatedAt = state, now
		if state == Stopped && task.Reason == "" {
			task.Reason = rep.Reason // of a start that was cut: nobody else has said why
		}
		if task.EndedAt == nil {
			task.EndedAt = endedAt(s.seen, now)
		}
		err = errors.Join(err, s.dir.WriteTask(task))
		s.event(s.run, s.dir.Name, string(state)+" after a sweep")
	}
	return state, err
}
