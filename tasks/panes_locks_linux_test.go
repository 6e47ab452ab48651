package tasks

import (
	"context"
	"errors"
	"testing"
	"time"

	"hob/tmux"
	"hob/tmux/tmuxtest"
)

// Nobody who holds server.lock may wait for what another pane's maker holds: that one may
// be waiting for server.lock, and an up would wait for itself. So here the first pane's
// place cannot be written yet, its server ends, and the others have to be made anew,
// for which they need that lock: whatever the order of the steps is, all come to an end.
func TestAServerThatEndsWhileTheFirstPlaceIsWritten(t *testing.T) {
	for name, ends := range map[string]bool{"its server ends": true, "nothing happens": false} {
		t.Run(name, func(t *testing.T) {
			g := newPaneRig(t)
			p := g.maker()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			unlock, err := g.dir.Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			waits := lockWaits(t)
			type made struct {
				task string
				err  error
			}
			out := make(chan made, 3)
			spawn := func(task string) {
				go func() {
					_, err := p.spawn(ctx, task, []string{"sleep", "600"})
					out <- made{task, err}
				}()
			}
			spawn("a")
			if lock := <-waits; lock != "run.lock" { // its pane is made
				t.Fatalf("the first pane waits for %s", lock)
			}
			if ends {
				if err := tmuxtest.KillServer(ctx, g.srv); err != nil {
					t.Fatal(err)
				}
			}
			spawn("b")
			spawn("c")
			select { // they wait for the first one, or they have come as far as the lock that it holds
			case <-waits:
			case <-time.After(500 * time.Millisecond):
			}
			unlock()
			for done := 0; done < 3; {
				select {
				case m := <-out:
					done++
					lost := m.task == "a" && ends && errors.Is(m.err, tmux.ErrLost)
					if m.err != nil && !lost {
						t.Errorf("the pane of %s: %v", m.task, m.err)
					}
				case <-waits: // a lock that somebody else has for a moment
				case <-time.After(patience):
					t.Fatal("the panes wait for each other")
				}
			}
		})
	}
}
