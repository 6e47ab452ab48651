package tasks

import (
	"context"
	"errors"
	"sync"

	"hob/tmux"
)

// spawnsAtOnce bounds how many panes one tmux makes: their keepers' records are
// read while it makes the next ones.
const spawnsAtOnce = 8

// spawnQueue gathers what panes are asked for while others are being made, so that
// many tasks that start at once cost a few tmux programs and not one each. Nobody
// waits for it to fill: the first is made at once, and those that came meanwhile
// next, together.
type spawnQueue struct {
	mu   sync.Mutex
	asks []*spawnAsk
	busy bool
}

type spawnAsk struct {
	spawn tmux.Spawn
	done  chan struct{}
	pane  tmux.Pane
	err   error
}

// ask has a pane made and waits for it. make makes panes in order and stops at the
// first that cannot be made, which the error is about.
func (q *spawnQueue) ask(s tmux.Spawn, makeAll func([]tmux.Spawn) ([]tmux.Pane, error)) (tmux.Pane, error) {
	a := &spawnAsk{spawn: s, done: make(chan struct{})}
	q.mu.Lock()
	q.asks = append(q.asks, a)
	if !q.busy {
		q.busy = true
		go q.work(makeAll)
	}
	q.mu.Unlock()
	<-a.done
	return a.pane, a.err
}

// work makes what is asked for until nothing is.
func (q *spawnQueue) work(makeAll func([]tmux.Spawn) ([]tmux.Pane, error)) {
	for asks := q.take(); len(asks) > 0; asks = q.take() {
		for len(asks) > 0 {
			asks = asks[answer(asks, makeAll):]
		}
	}
}

// take is what has been asked for; with nothing, the work is over.
func (q *spawnQueue) take() []*spawnAsk {
	q.mu.Lock()
	defer q.mu.Unlock()
	asks := q.asks[:min(len(q.asks), spawnsAtOnce)]
	q.asks, q.busy = q.asks[len(asks):], len(asks) > 0
	return asks
}

// answer makes as many panes as it comes to, and returns how many asks that
// answers: those, and the one that could not be made. Where tmux did not answer
// that is all of them: those after it may have been made, and are not made twice.
func answer(asks []*spawnAsk, makeAll func([]tmux.Spawn) ([]tmux.Pane, error)) int {
	var spawns []tmux.Spawn
	for _, a := range asks {
		spawns = append(spawns, a.spawn)
	}
	panes, err := makeAll(spawns)
	for i, pane := range panes {
		asks[i].pane = pane
		close(asks[i].done)
	}
	failed := asks[len(panes):]
	if len(failed) > 1 && !unanswered(err) {
		failed = failed[:1]
	}
	for _, a := range failed {
		a.err = err
		close(a.done)
	}
	return len(panes) + len(failed)
}

// unanswered reports whether an error leaves open what the tmux server has done.
func unanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, tmux.ErrLost)
}
