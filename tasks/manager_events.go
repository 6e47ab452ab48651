package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// EventsOptions of Events.
type EventsOptions struct {
	Follow bool // go on as things happen, also when a run's name is used again
	All    bool // also in runs that are made meanwhile
}

// Events gives out the events of runs, the oldest first.
func (m *Manager) Events(ctx context.Context, sel []Selection, o EventsOptions, out func(run string, e Event) error) error {
	f := &eventsFollowed{m: m, seen: map[string]*eventsRead{}, wake: make(chan struct{}, 1)}
	var err error
	if o.Follow {
		if f.watch, err = newWatcher(); err != nil {
			return err
		}
		defer f.watch.close()
	}
	if o.Follow && o.All {
		if err = f.watch.join(m.Store.runs(), func(string) bool { return true }, f.wake); err != nil {
			return &Problem{Err: err, Tip: "hob up makes the state folder"}
		}
	}
	var errs []error
	for _, s := range sel {
		errs = append(errs, s.Err, f.add(s))
		m.noteCut(s.Run)
	}
	for {
		if o.Follow && o.All {
			f.addNew()
		}
		if err := f.tell(out); err != nil || !o.Follow {
			return errors.Join(append(errs, err)...)
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// eventsFollowed is how far the events of some runs have been told.
type eventsFollowed struct {
	m     *Manager
	sel   []Selection
	seen  map[string]*eventsRead
	watch *watcher // nil: nobody follows
	wake  chan struct{}
}

// add takes a run up, and watches for it to change and to make room for the next.
func (f *eventsFollowed) add(s Selection) error {
	f.sel = append(f.sel, s)
	f.seen[s.Run.Name] = &eventsRead{}
	if f.watch == nil {
		return nil
	}
	err := f.watch.join(f.m.Store.runs(), func(file string) bool { return file == s.Run.Name }, f.wake)
	if err == nil {
		err = f.watch.join(s.Run.Path, func(file string) bool { return file == "events.jsonl" }, f.wake)
	}
	return err
}

// addNew takes up the runs that have been made since. One that cannot be watched has
// gone again, and is told of by the folder above.
func (f *eventsFollowed) addNew() {
	names, _ := f.m.Store.Runs() // what cannot be read is looked for at the next turn
	for _, name := range names {
		if f.seen[name] == nil {
			_ = f.add(Selection{Run: f.m.Store.Run(name)})
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

// tell gives out the events of each run that were not given out yet.
func (f *eventsFollowed) tell(out func(string, Event) error) error {
	type told struct {
		run string
		e   Event
	}
	var all []told
	var errs []error
	for _, s := range f.sel {
		f.watch.again(s.Run.Path)
		events, err := f.m.eventsOf(s.Run, f.seen[s.Run.Name])
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
