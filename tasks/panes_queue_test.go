package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"hob/tmux"
)

// ask asks for panes that are named by their window, side by side, and returns
// what became of each.
func askAll(q *spawnQueue, names []string, makeAll func([]tmux.Spawn) ([]tmux.Pane, error)) map[string]string {
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[string]string{}
	for _, name := range names {
		wg.Go(func() {
			pane, err := q.ask(tmux.Spawn{Window: name}, makeAll)
			mu.Lock()
			defer mu.Unlock()
			got[name] = pane.ID
			if err != nil {
				got[name] = err.Error()
			}
		})
	}
	wg.Wait()
	return got
}

func numbers(n int) []string {
	var names []string
	for i := range n {
		names = append(names, strconv.Itoa(i))
	}
	return names
}

// TestPanesAreAskedForTogether: what is asked for while panes are being made is
// made next, together, and each asker gets its own.
func TestPanesAreAskedForTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q spawnQueue
		var sizes []int
		got := askAll(&q, numbers(atOnce+3), func(all []tmux.Spawn) (panes []tmux.Pane, err error) {
			if len(sizes) == 0 {
				synctest.Wait() // until all the others have asked
			}
			sizes = append(sizes, len(all))
			for _, s := range all {
				panes = append(panes, tmux.Pane{ID: "%" + s.Window})
			}
			return panes, nil
		})
		if len(sizes) > 3 || slices.Max(sizes) > atOnce {
			t.Errorf("made by %v", sizes)
		}
		for name, id := range got {
			if id != "%"+name {
				t.Errorf("pane %s for %s", id, name)
			}
		}
	})
}

// TestOnePaneFails: the others are made, unless tmux did not answer: then they may
// have been, and are not made twice.
func TestOnePaneFails(t *testing.T) {
	for _, c := range []struct {
		err    error
		failed int
	}{
		{tmux.ErrNoTarget, 1},
		{fmt.Errorf("tmux: %w", context.DeadlineExceeded), 3},
		{tmux.ErrLost, 3},
	} {
		asked := map[string]int{}
		makeAll := func(all []tmux.Spawn) (panes []tmux.Pane, err error) {
			for i, s := range all {
				asked[s.Window]++
				if i == 2 && len(all) == 5 {
					return panes, c.err
				}
				panes = append(panes, tmux.Pane{ID: s.Window})
			}
			return panes, nil
		}
		asks := make([]*request[tmux.Spawn, tmux.Pane], 5)
		for i := range asks {
			asks[i] = &request[tmux.Spawn, tmux.Pane]{what: tmux.Spawn{Window: strconv.Itoa(i)}, done: make(chan struct{})}
		}
		for rest := asks; len(rest) > 0; {
			rest = rest[answer(rest, makeAll):]
		}
		failed := 0
		for _, a := range asks {
			<-a.done
			if errors.Is(a.err, c.err) {
				failed++
			} else if a.came.ID != a.what.Window {
				t.Errorf("%v: %+v", c.err, a)
			}
		}
		if failed != c.failed || c.failed > 1 && asked["3"]+asked["4"] > 0 {
			t.Errorf("%v: %d failed, asked for %v", c.err, failed, asked)
		}
	}
}
