package tasks

import (
	"context"
	"errors"
	"slices"
)

// Events gives out the events of runs, the oldest first, and with follow goes on
// as they come.
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
			if err := w.join(s.Run.Path, func(file string) bool { return file == "events.jsonl" }, wake); err != nil {
				return err
			}
		}
	}
	seen := map[string]int{}
	for {
		if err := newEvents(sel, seen, out); err != nil || !follow {
			return err
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// newEvents gives out the events after the first seen ones of each run. A file
// that is shorter than before was trimmed: its newest is then given out alone.
func newEvents(sel []Selection, seen map[string]int, out func(string, Event) error) error {
	type told struct {
		run string
		e   Event
	}
	var all []told
	var errs []error
	for _, s := range sel {
		events, _, err := s.Run.Events()
		errs = append(errs, err)
		from := seen[s.Run.Name]
		if from > len(events) {
			from = max(0, len(events)-1)
		}
		seen[s.Run.Name] = len(events)
		for _, e := range events[from:] {
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
