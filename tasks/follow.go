package tasks

import (
	"context"
	"fmt"

	"hob/identity"
	"hob/tasks/probe"
)

// follow watches a task until it has come as far as this `up` is to see it, or
// will not.
func (u *upRun) follow(ctx context.Context, t *upTask) (Derived, error) {
	if d, ok := u.thereAtOnce(t); ok {
		return d, nil
	}
	wake, err := u.watch.add(t.dir.Path, stateFiles)
	if err != nil {
		return Derived{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var end <-chan struct{}
	goal := u.goal(t)
	for {
		seen := u.look(t.dir)
		d := Derive(seen)
		done, err := arrived(t.Name, d, goal)
		if !done && unwatched(seen) {
			done, err = true, fmt.Errorf("%s is up, and its keeper has been killed: nobody would see it become ready", t.Name)
		}
		t.reach(d, err)
		u.tell(u.progress(t, seen, d, done))
		if done {
			return d, u.explain(t, err)
		}
		if end == nil {
			end = u.silentTurn(ctx, t.dir, seen)
		}
		select {
		case <-wake:
		case <-end:
			end = nil
		case <-ctx.Done():
			return d, context.Cause(ctx)
		}
	}
}

// thereAtOnce reports whether a task had come as far as this up is to see it by its
// start. The records of that need not be read again; the processes are looked at.
func (u *upRun) thereAtOnce(t *upTask) (Derived, bool) {
	seen := t.begun
	k := seen.Keeper
	if k == nil || newerKeeper(t.dir, *k, identity.Finding{}) != nil {
		return Derived{}, false
	}
	seen.KeeperV, seen.Command = u.finding(&k.Keeper), u.finding(k.Command)
	if seen.KeeperV.Verdict != identity.Owned || seen.Command.Verdict != identity.Owned {
		return Derived{}, false
	}
	d := Derive(seen)
	if done, err := arrived(t.Name, d, u.goal(t)); !done || err != nil {
		return Derived{}, false
	}
	t.reach(d, nil)
	u.tell(u.progress(t, seen, d, true))
	return d, true
}

// unwatched reports whether the keeper is gone, and nobody writes any more how
// the task gets on.
func unwatched(s Seen) bool {
	v := s.KeeperV.Verdict
	return s.Keeper != nil && (v == identity.Gone || v == identity.Foreign)
}

func (u *upRun) progress(t *upTask, s Seen, d Derived, done bool) Progress {
	p := Progress{Name: Name{u.dir.Name, t.Name}, State: d.State, Text: d.Note, URL: t.url(), Final: done}
	if s.Task != nil && s.Task.StartedAt != nil {
		p.Since = *s.Task.StartedAt
	}
	if s.Keeper != nil {
		p.Line = s.Keeper.LastLine
	}
	if !done {
		p.Loading = u.Loading(p.Name)
	}
	return p
}

// loadingBytes is how much of a log's end is searched for progress.
const loadingBytes = 8 << 10

// Loading is how far a task says in its log that it has come, nil when it does not.
func (m *Manager) Loading(n Name) *probe.Progress {
	text, err := endOf(m.Store.Run(n.Run).Task(n.Task).LogPath(), loadingBytes)
	if err != nil {
		return nil
	}
	if p, ok := probe.LastProgress(text); ok {
		return &p
	}
	return nil
}

// reach passes on how far the task has come to those that wait for it.
func (t *upTask) reach(d Derived, err error) {
	if d.Answers {
		t.mark.reach(condReady)
	}
	switch d.State {
	case Up, Unready:
		t.mark.reach(condStarted)
	case Ready:
		t.mark.reach(condReady)
	case Completed:
		t.mark.reach(condCompleted)
	}
	if err != nil {
		t.mark.fail(err)
	}
}

// arrived decides whether a task in this state has come as far as goal. The
// error says why it will not.
func arrived(name string, d Derived, goal string) (bool, error) {
	switch d.State {
	case Starting:
		return false, nil
	case Up:
		return goal == condStarted || goal == condReady && d.Answers, nil
	case Ready:
		return goal != condCompleted, nil
	case Completed:
		return true, nil
	case Unready:
		if goal != condReady {
			return goal == condStarted, nil
		}
	}
	return true, notArrived(name, d)
}

func notArrived(name string, d Derived) error {
	switch d.State {
	case Failed:
		return fmt.Errorf("%s failed: %s", name, d.Note)
	case Exited:
		return fmt.Errorf("%s ended, with exit code 0, before it was ready", name)
	case Unready:
		return fmt.Errorf("%s does not answer: %s", name, d.Note)
	case Stopping, Stopped:
		return fmt.Errorf("%s was stopped meanwhile", name)
	}
	return fmt.Errorf("%s is %s: %s", name, d.State, d.Note)
}

// explain adds what a person needs to go on.
func (u *upRun) explain(t *upTask, err error) error {
	if err == nil {
		return nil
	}
	return &Problem{Err: err, Tip: "hob logs " + Name{u.dir.Name, t.Name}.String()}
}
