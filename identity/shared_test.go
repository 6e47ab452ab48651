package identity

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

// lookHost counts its looks, each of which waits to be let go.
type lookHost struct {
	Host
	mu      sync.Mutex
	looks   int
	release chan struct{}
}

func (h *lookHost) Snapshot(context.Context, Field) (*Table, error) {
	h.mu.Lock()
	h.looks++
	table := &Table{Procs: []Process{{PID: h.looks}}}
	h.mu.Unlock()
	<-h.release
	return table, nil
}

// TestSharedLooks: who asks while a look is under way gets the next one, since the
// one under way may have passed what happened before they asked.
func TestSharedLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		real := &lookHost{release: make(chan struct{})}
		h := Shared(real)
		if Shared(h) != h {
			t.Error("shared twice")
		}
		got := make(chan int, 20)
		ask := func() {
			table, err := h.Snapshot(t.Context(), WantArgs)
			if err != nil {
				t.Error(err)
				return
			}
			got <- table.Procs[0].PID
		}
		go ask()
		synctest.Wait() // it is under way
		for range 10 {
			go ask()
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := h.Snapshot(ended, WantArgs); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that has ended: %v", err)
		}
		synctest.Wait()
		real.release <- struct{}{}
		synctest.Wait()
		go ask() // the second is under way by now
		synctest.Wait()
		real.release <- struct{}{}
		real.release <- struct{}{}
		synctest.Wait()
		count := map[int]int{}
		for len(got) > 0 {
			count[<-got]++
		}
		if real.looks != 3 || count[1] != 1 || count[2] != 10 || count[3] != 1 {
			t.Errorf("%d looks, who got which: %v", real.looks, count)
		}
	})
}
