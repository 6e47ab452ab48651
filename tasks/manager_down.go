package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"hob/identity"
	"hob/sweep"
	"hob/sweep/gpu"
	"hob/tmux"
)

// StopOptions of a stop.
type StopOptions struct {
	Reason string // of the report: down, restart, up, …
	DryRun bool

	onlyEnded bool // what lives is left alone: it has come up since nothing was

	// began is when each task was last started as whoever stops it saw it: one
	// that was started since is left alone, with errMeanwhile. Nil: all are meant.
	began map[string]time.Time
}

// Down stops the tasks side by side, and ends the tmux server with its last
// pane. The task that the caller itself runs below comes last: its keeper does
// the work, since hob ends with it.
//
// With nothing selected nothing is up, and what ended by itself has left dead
// panes: those are closed, and only what goes wrong is told.
func (m *Manager) Down(ctx context.Context, sel []Selection, o StopOptions) []Outcome {
	if len(sel) > 0 || o.DryRun {
		return m.down(ctx, sel, o)
	}
	all, err := m.All()
	if err != nil {
		return []Outcome{{Err: err}}
	}
	o.onlyEnded = true
	return slices.DeleteFunc(m.down(ctx, all, o), func(out Outcome) bool { return out.Err == nil })
}

func (m *Manager) down(ctx context.Context, sel []Selection, o StopOptions) []Outcome {
	var outs []Outcome
	for _, s := range m.ownLast(sel) {
		outs = append(outs, m.stopTasks(ctx, s, o)...)
	}
	if o.DryRun {
		return outs
	}
	panes, err := m.endServer(ctx)
	if err != nil {
		outs = append(outs, Outcome{Err: err})
	}
	for _, s := range sel {
		if s.Whole && len(panes) > 0 {
			outs = append(outs, m.keptPanes(s, panes)...)
		}
	}
	return outs
}

// ownLast puts the run that the caller is in at the end.
func (m *Manager) ownLast(sel []Selection) []Selection {
	own := m.getenv("HOB_RUN")
	sorted := slices.Clone(sel)
	slices.SortStableFunc(sorted, func(a, b Selection) int {
		return boolInt(a.Run.Name == own) - boolInt(b.Run.Name == own)
	})
	return sorted
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// stopTasks stops tasks of one run side by side, the caller's own last.
func (m *Manager) stopTasks(ctx context.Context, s Selection, o StopOptions) []Outcome {
	if _, err := s.Run.Read(); trouble(err) != nil {
		return []Outcome{{Name: Name{Run: s.Run.Name}, State: Unverified, Err: err}}
	}
	m = m.sharing()
	outs := make([]Outcome, len(s.Tasks))
	var own []int
	var wg sync.WaitGroup
	for i, task := range s.Tasks {
		t := s.Run.Task(task)
		if !o.onlyEnded && m.position(t) != elsewhere {
			own = append(own, i)
			continue
		}
		wg.Go(func() { outs[i] = m.stopTask(ctx, s.Run, t, o) })
	}
	wg.Wait()
	for _, i := range own {
		outs[i] = m.stopOwn(s.Run, s.Run.Task(s.Tasks[i]), o)
	}
	return outs
}

// sharing is m whose looks at the whole host are shared by what it does side by side,
// and which has panes killed together.
func (m *Manager) sharing() *Manager {
	c := *m
	c.Host = identity.Shared(m.Host)
	if c.kills == nil {
		c.kills = &killQueue{}
	}
	return &c
}

// stopTask takes the task's lock and stops it.
func (m *Manager) stopTask(ctx context.Context, r *RunDir, t *TaskDir, o StopOptions) Outcome {
	out := Outcome{Name: Name{r.Name, t.Name}}
	if _, err := t.ReadTask(); errors.Is(err, ErrNoRecord) && m.missing(t, Seen{}) == nil {
		out.State, out.Did = Stopped, "was never started"
		return out
	}
	unlock, err := m.lockTask(ctx, t, !o.DryRun)
	if errors.Is(err, ErrNoRecord) {
		out.State, out.Did = Stopped, "was archived or removed meanwhile" // which is done to nothing that lives
		return out
	}
	if err != nil {
		out.Err = err
		return out
	}
	defer unlock()
	return m.stopLocked(ctx, r, t, o)
}

// stopLocked is the stop of one task by the whole protocol. The task's lock is
// held. What has ended already is only tidied away.
func (m *Manager) stopLocked(ctx context.Context, r *RunDir, t *TaskDir, o StopOptions) Outcome {
	out := Outcome{Name: Name{r.Name, t.Name}}
	look := m.lookToAct
	if o.DryRun {
		look = m.lookHeld
	}
	seen := look(t)
	d := Derive(seen)
	out.State = d.State
	switch {
	case seen.Trouble != nil:
		out.Err = m.untrusted(r.Name, t, seen.Trouble)
	case seen.Cut != nil && o.DryRun:
		out.Did = "would be settled: " + d.Note
	case seen.Task == nil:
		out.Did = "was never started"
	case !d.Over() && seen.startedElsewhere(out.Name) != nil:
		out.Did, out.Err = "left as it is", seen.startedElsewhere(out.Name)
	case m.inside(seen):
		out.Err = usage("type it in another pane", "hob was typed in what was adopted, and would end with it")
	case o.began != nil && !seen.started().Equal(o.began[t.Name]):
		out.Did, out.Err = "left alone", fmt.Errorf("it was started: %w", errMeanwhile)
	default:
		switch decideStop(seen, d, o.onlyEnded) {
		case stopTidy:
			m.tidy(ctx, r, t, seen, d, o, &out)
		case stopRun:
			m.runStop(ctx, r, t, seen, o, &out)
		case stopNothing:
		}
		if !o.DryRun {
			m.discardCgroup(r, t)
		}
	}
	return out
}

// stopping is what a stop has to do for one task.
type stopping int

const (
	stopRun     stopping = iota // the whole protocol
	stopTidy                    // it has ended, and left a dead pane at most
	stopNothing                 // it lives, and only what has ended was meant
)

// decideStop is pure. A task that is over, and whose keeper is about to end, has
// no dead pane yet that could be closed: it is stopped, which waits for the keeper.
func decideStop(seen Seen, d Derived, onlyEnded bool) stopping {
	switch keeper := seen.Keeper != nil && seen.KeeperV.Verdict == identity.Owned; {
	case d.Over() && !keeper:
		return stopTidy
	case onlyEnded && !d.Over():
		return stopNothing
	}
	return stopRun
}

// tidy closes the dead pane of a task that has ended, and brings its record up
// to what was seen.
func (m *Manager) tidy(ctx context.Context, r *RunDir, t *TaskDir, seen Seen, d Derived, o StopOptions, out *Outcome) {
	out.Did = "had ended"
	rep, err := t.ReadReport()
	if err == nil {
		out.Report = &rep
	}
	_, captureErr := t.ReadCapture() // by what it knows alone hob could find survivors
	out.Err = errors.Join(trouble(err), trouble(captureErr))
	if o.DryRun {
		return
	}
	task := *seen.Task
	if task.State != d.State {
		task.State, task.UpdatedAt = d.State, m.now()
		task.EndedAt = endedAt(seen, m.now())
		out.Err = errors.Join(out.Err, t.WriteTask(task))
	}
	s := stopper{Manager: m, run: r, dir: t, seen: seen}
	out.Err = errors.Join(out.Err, s.ClosePane(ctx))
	s.afterStop(ctx, out)
}

// runStop is the stop protocol (README, "Stop and sweep") for one task.
func (m *Manager) runStop(ctx context.Context, r *RunDir, t *TaskDir, seen Seen, o StopOptions, out *Outcome) {
	run, err := r.shared()
	if err != nil {
		out.Err = m.untrusted(r.Name, t, err)
		return
	}
	s := stopper{Manager: m, run: r, dir: t, seen: seen, server: run.Tmux.Server}
	target, prev, err := s.target(run)
	if err == nil {
		err = fromElsewhere(out.Name, seen)
	}
	if err != nil {
		out.Err = m.untrusted(r.Name, t, err)
		return
	}
	out.Did = "stopped"
	if o.DryRun {
		out.Did = "would be stopped"
		rep, err := sweep.Stop(ctx, m.Host, target, prev, &s, sweep.Options{Reason: o.Reason, DryRun: true, GPU: gpu.Read})
		out.Report, out.Err = &rep, err
		return
	}
	if target, prev, out.Err = s.begin(run, o.Reason, target, prev); out.Err != nil {
		return
	}
	rep, err := sweep.Stop(ctx, m.Host, target, prev, &s, sweep.Options{Reason: o.Reason, GPU: gpu.Read})
	cut := s.hookCut(seen, &rep)
	out.Report = &rep
	out.State, out.Err = s.finish(rep, err)
	s.afterStop(ctx, out)
	out.Hook = cmp.Or(out.Hook, cut)
}

// fromElsewhere refuses to stop or sweep a task of which nothing can be told from
// here, as in another pid namespace, or on another host that shares the state
// folder: nothing could be done, and what would be written of it is not known.
func fromElsewhere(n Name, s Seen) error {
	unknown := func(f identity.Finding) bool { return f.Verdict == identity.Unverifiable }
	if s.Keeper == nil || !unknown(s.KeeperV) || s.Keeper.Command != nil && !unknown(s.Command) {
		return nil
	}
	return noneToTell(n, s.KeeperV)
}

func noneToTell(n Name, keeper identity.Finding) error {
	return unverified("run hob where it was started; hob rm --forget "+n.Run+" gives the record up",
		"nothing was done, since no process of it can be told from here: %s", keeper.Reason)
}

// begin writes that the stop has begun. The keeper of a start that was cut may
// just be coming up: it writes itself down and then looks at task.json again, so
// either it sees the stop, and starts nothing, or it is seen here, where it is
// looked for again after that; so is a command that it had not written down, which
// would else not get its own stop signal. (A restart is no such case: the keeper
// starts again under the lock that is held here.)
func (s *stopper) begin(run Run, reason string, t sweep.Target, prev sweep.Capture) (sweep.Target, sweep.Capture, error) {
	task := *s.seen.Task
	s.byItself = endedByItself(s.seen)
	task.State, task.Reason, task.UpdatedAt = Stopping, reason, s.now()
	s.event(s.run, s.dir.Name, "stopping: "+reason)
	s.seen.Task = &task
	err := s.dir.writeTask(task, whole) // the capture, which comes before any signal, makes the folder last
	if noSpace(err) {
		err = nil // and no room is left: the stop goes on from memory, and says so
	}
	if err != nil || s.seen.Keeper != nil && s.seen.Keeper.Command != nil {
		return t, prev, err
	}
	s.seen = s.lookHeld(s.dir)
	if s.seen.Trouble != nil {
		return t, prev, s.seen.Trouble
	}
	return s.target(run)
}

// finish writes the report and what the stop came to.
func (s *stopper) finish(rep sweep.Report, stopErr error) (State, error) {
	task := *s.seen.Task
	now := s.now()
	task.State, task.UpdatedAt, task.EndedAt = s.stateAfter(rep), now, endedAt(s.seen, now)
	err := errors.Join(stopErr, s.dir.writeEnd(rep, task), s.hookOver(rep))
	s.event(s.run, s.dir.Name, string(task.State)+": "+string(rep.Verdict))
	return task.State, err
}

// stateAfter is the state of a task after a stop or a sweep. One whose report is
// not clean is never recorded as stopped; one that had ended by itself keeps
// how it ended, so that a completed job stays completed.
func (s *stopper) stateAfter(rep sweep.Report) State {
	switch {
	case rep.Verdict == sweep.Survivors:
		return Survivors
	case rep.Verdict != sweep.Clean:
		return Unverified
	case s.byItself:
		return fromExit(s.seen).State
	}
	return Stopped
}

// endedByItself reports whether a task's command had ended before anybody began
// to stop it.
func endedByItself(s Seen) bool {
	if s.Exit == nil || s.Exit.RestartAt != nil {
		return false
	}
	switch s.Task.State {
	case Starting, Up:
		return true
	}
	return s.Task.Reason == "" || s.Task.Reason == "exited"
}

// keptPanes names the panes that a person added to the run's session: they are
// kept, and the session with them.
func (m *Manager) keptPanes(s Selection, panes []tmux.Pane) []Outcome {
	run, err := s.Run.Read()
	if err != nil || run.Tmux.Server == nil {
		return nil
	}
	ours, all := m.recordedPanes(s, run.Tmux.Server)
	var outs []Outcome
	for _, p := range panes {
		if p.ServerPID == run.Tmux.Server.PID && p.Session == run.Tmux.Session && !slices.Contains(ours, p.ID) {
			whose := "which hob did not make"
			if !all {
				whose = "which may be of a task whose record cannot be read"
			}
			did := fmt.Sprintf("keeps pane %s (window %s), %s", p.ID, p.WindowName, whose)
			outs = append(outs, Outcome{Name: Name{Run: s.Run.Name}, Did: did})
		}
	}
	return outs
}

// recordedPanes are the ids of the selected tasks' panes in this server. Where
// task.json cannot be read the keeper's own record names its pane; all is false where
// that cannot be read either.
func (m *Manager) recordedPanes(s Selection, server *identity.Ref) (ids []string, all bool) {
	all = true
	for _, name := range s.Tasks {
		t := s.Run.Task(name)
		task, err := t.ReadTask()
		if trouble(err) != nil {
			k, keeperErr := t.ReadKeeper()
			ids, all = append(ids, k.Pane), all && keeperErr == nil
		} else if p := task.Pane; p != nil && (server == nil || p.Server == nil || p.Server.PID == server.PID) {
			ids = append(ids, p.Pane)
		}
	}
	return ids, all
}
