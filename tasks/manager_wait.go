package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Ending is how a task ended.
type Ending struct {
	Name
	State State
	Note  string
	Code  *int   // exit code; null when a signal ended it, or nobody knows
	Sig   string // the signal's name
}

// Good reports whether the work was done: a job that completed, a server or
// shell that ended well or was stopped.
func (e Ending) Good() bool {
	return e.State == Completed || e.State == Exited || e.State == Stopped
}

// ExitCode is the work's own code, as a shell would give it; 1 when it is not known.
func (e Ending) ExitCode() int {
	switch {
	case e.Code != nil:
		return *e.Code
	case e.Sig != "":
		if n, err := signalNamed(e.Sig); err == nil {
			return 128 + int(n)
		}
	case e.Good():
		return 0
	}
	return 1
}

func endingOf(n Name, s Seen) Ending {
	d := Derive(s)
	e := Ending{Name: n, State: d.State, Note: d.Note}
	if s.Exit != nil {
		e.Code, e.Sig = s.Exit.Code, s.Exit.Signal
	}
	return e
}

// Wait waits until each task has ended, and nobody is at work on it.
func (m *Manager) Wait(ctx context.Context, sel []Selection) ([]Ending, error) {
	w, err := newWatcher()
	if err != nil {
		return nil, err
	}
	defer w.close()
	var names []Name
	var selErrs []error
	for _, s := range sel {
		selErrs = append(selErrs, s.Err)
		for _, task := range s.Tasks {
			names = append(names, Name{s.Run.Name, task})
		}
	}
	ends, errs := make([]Ending, len(names)), make([]error, len(names))
	var wg sync.WaitGroup
	for i, n := range names {
		wg.Go(func() { ends[i], errs[i] = m.untilEnd(ctx, w, n) })
	}
	wg.Wait()
	return ends, errors.Join(append(selErrs, errs...)...)
}

// untilEnd waits until one task has ended. One that was never started is not
// waited for, unless it is to be: then its first record is.
func (m *Manager) untilEnd(ctx context.Context, w *watcher, n Name) (Ending, error) {
	return m.untilEndOf(ctx, w, n, false)
}

func (m *Manager) untilEndOf(ctx context.Context, w *watcher, n Name, expected bool) (Ending, error) {
	r := m.Store.Run(n.Run)
	t := r.Task(n.Task)
	if _, err := t.ReadTask(); errors.Is(err, ErrNoRecord) && !expected {
		return Ending{Name: n, State: Stopped, Note: "never started"}, nil
	}
	wake := make(chan struct{}, 1)
	err := errors.Join(w.join(t.Path, stateFiles, wake), w.join(m.Store.runs(), func(file string) bool { return file == n.Run }, wake))
	if err != nil {
		return Ending{Name: n}, err
	}
	run, _ := r.Read() // what is wrong with it is no business of this task's
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var end <-chan struct{}
	for {
		switch at := m.whereIs(r, run.ID); at {
		case r:
		case nil:
			return Ending{Name: n, State: Unverified}, unverified("", "%s was removed while it was waited for: how it ended is not known", n)
		default:
			return endingOf(n, m.look(at.Task(n.Task))), nil
		}
		seen := m.look(t)
		if seen.Trouble != nil {
			return Ending{Name: n, State: Unverified}, seen.Trouble
		}
		if seen.Task != nil && hasEnded(seen) {
			return endingOf(n, seen), nil
		}
		if seen.Task == nil && !expected {
			return Ending{Name: n, State: Unverified}, unverified("", "%s: its record was removed meanwhile", n)
		}
		if end == nil {
			end = m.silentTurn(ctx, t, seen)
		}
		select {
		case <-wake:
		case <-end:
			end = nil // whoever is left is waited for next
		case <-ctx.Done():
			return Ending{Name: n}, context.Cause(ctx)
		}
	}
}

// whereIs finds the run with this id: where it was, in the archive when its name
// was used again, nil when it was removed.
func (m *Manager) whereIs(r *RunDir, id string) *RunDir {
	now, err := r.Read()
	if id == "" || err == nil && now.ID == id || trouble(err) != nil {
		return r
	}
	archived, _ := m.Store.Archived() // what cannot be read is not it
	for _, a := range slices.Backward(archived) {
		if old, err := a.Read(); a.Name == r.Name && err == nil && old.ID == id {
			return a
		}
	}
	return nil
}

// hasEnded: the task is over, or in a state that it does not leave by itself.
func hasEnded(s Seen) bool {
	d := Derive(s)
	return !d.State.Lives() && !d.Tended
}

// Failure is what a verb says of work that failed.
func (e Ending) Failure() error {
	err := fmt.Errorf("%s %s: %s", e.Name, e.State, e.Note)
	switch {
	case e.Good():
		return nil
	case e.State == Survivors:
		return &Problem{Kind: ErrSurvivors, Err: err, Tip: "hob report " + e.String() + " names them"}
	case e.State == Unverified:
		return &Problem{Kind: ErrUnverified, Err: err, Tip: "hob sweep " + e.String() + " looks once more"}
	}
	return err
}
