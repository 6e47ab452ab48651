package tasks

import (
	"fmt"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// watcher wakes whoever waits for a record in a task's folder. One inotify
// instance serves a whole verb: a user may have only 128 of them (inotify(7)).
type watcher struct {
	notify *fsnotify.Watcher
	mu     sync.Mutex
	subs   map[string][]subscription
	done   chan struct{}
}

type subscription struct {
	wanted func(file string) bool
	wake   chan struct{}
}

func newWatcher() (*watcher, error) {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch the state folder: %w", err)
	}
	w := &watcher{notify: n, subs: map[string][]subscription{}, done: make(chan struct{})}
	go w.pump()
	return w, nil
}

// add returns a channel that is sent to after a wanted file of dir has changed.
// Several changes may come as one.
func (w *watcher) add(dir string, wanted func(file string) bool) (<-chan struct{}, error) {
	wake := make(chan struct{}, 1)
	return wake, w.join(dir, wanted, wake)
}

// join is add for a channel that hears of several folders.
func (w *watcher) join(dir string, wanted func(file string) bool, wake chan struct{}) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.notify.Add(dir); err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	w.subs[dir] = append(w.subs[dir], subscription{wanted, wake})
	return nil
}

// again watches a folder that is joined where it is now, if it was made anew. One that
// is not there is made known by the folder above it.
func (w *watcher) again(dir string) {
	if w != nil {
		_ = w.notify.Add(dir)
	}
}

// pump hands events on. Errors (a queue that overflowed) wake everybody: then
// something was missed.
func (w *watcher) pump() {
	defer close(w.done)
	for {
		select {
		case e, ok := <-w.notify.Events:
			if !ok {
				return
			}
			w.wake(filepath.Dir(e.Name), filepath.Base(e.Name))
		case _, ok := <-w.notify.Errors:
			if !ok {
				return
			}
			w.wakeAll()
		}
	}
}

func (w *watcher) wake(dir, file string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.subs[dir] {
		if s.wanted(file) {
			poke(s.wake)
		}
	}
}

func (w *watcher) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, list := range w.subs {
		for _, s := range list {
			poke(s.wake)
		}
	}
}

func poke(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

func (w *watcher) close() {
	if w == nil {
		return
	}
	_ = w.notify.Close()
	<-w.done
}

// stateFiles are the records by which a task's state changes.
func stateFiles(file string) bool {
	switch file {
	case "keeper.json", "exit.json", "task.json", "report.json":
		return true
	}
	return false
}
