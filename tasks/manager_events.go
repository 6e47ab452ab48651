package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Events gives out the events of runs, the oldest first, and with follow goes on
// as they come, also when a run's name is used again.
func (m *Manager) Events(ctx context.Context, sel []Selection, follow bool, out func(run string, e Event) error) error {
	var w *watcher
	wake := make(chan struct{}, 1)
	if follow {
		var err error
		if w, err = newWatcher(); err != nil {
			return err
		}
		defer w.close()
		for _, s := range sel {
			err := w.join(m.Store.runs(), func(file string) bool { return file == s.Run.Name }, wake)
			if err == nil {
				err = w.join(s.Run.Path, func(file string) bool { return file == "events.jsonl" }, wake)
			}
			if err != nil {
				return err
			}
		}
	}
	var errs []error
	for _, s := range sel {
		errs = append(errs, s.Err)
		m.noteCut(s.Run)
	}
	seen := map[string]*eventsRead{}
	for {
		for _, s := range sel {
			w.again(s.Run.Path)
		}
		if err := m.newEvents(sel, seen, out); err != nil || !follow {
			return errors.Join(append(errs, err)...)
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// noteCut says that lines are left out, which a crash has cut: history, and no
// record that anything is decided by, so it is a note.
func (m *Manager) noteCut(r *RunDir) {
	if _, torn, _ := r.Events(); torn > 0 {
		m.warn([]string{fmt.Sprintf("%s: lines left out, since a crash has cut them: %d", r.file("events.jsonl"), torn)})
	}
}

// newEvents gives out the events of each run that were not given out yet.
func (m *Manager) newEvents(sel []Selection, seen map[string]*eventsRead, out func(string, Event) error) error {
	type told struct {
		run string
		e   Event
	}
	var all []told
	var errs []error
	for _, s := range sel {
		if seen[s.Run.Name] == nil {
			seen[s.Run.Name] = &eventsRead{}
		}
		events, err := m.eventsOf(s.Run, seen[s.Run.Name])
		errs = append(errs, err)
		for _, e := range events {
			all = append(all, told{s.Run.Name, e})
		}
	}
	slices.SortStableFunc(all, func(a, b told) int { return a.e.At.Compare(b.e.At) })
	for _, t := range all {
		if err := out(t.run, t.e); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// eventsOf are the run's events that were not read yet: first what was left of an
// earlier run of the name, which is in the archive now.
func (m *Manager) eventsOf(r *RunDir, read *eventsRead) (events []Event, err error) {
	for range upTries {
		run, err := r.Read()
		if err == nil && read.id != "" && run.ID != read.id || errors.Is(err, ErrNoRecord) && read.id != "" {
			if old := m.whereIs(r, read.id); old != nil && old != r {
				rest, _ := old.newEvents(read) // what cannot be read is history
				events = append(events, rest...)
			}
			*read = eventsRead{}
		}
		next := *read
		next.id = run.ID
		fresh, err := r.newEvents(&next)
		if now, nowErr := r.Read(); nowErr == nil && now.ID != run.ID {
			continue // it has made room for another in between
		}
		*read = next
		return append(events, fresh...), err
	}
	return events, nil
}
