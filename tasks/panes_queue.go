package tasks

import (
	"context"
	"errors"
	"slices"
	"sync"

	"hob/tmux"
)

// atOnce bounds what one tmux does: the keepers' records of panes that it has made
// are read while it makes the next ones.
const atOnce = 8

// queue gathers what is asked for while something is being done, so that many tasks
// that start or stop at once cost a few tmux programs and not one each. Nobody waits
// for it to fill: the first ask is seen to at once, and those that came meanwhile
// next, together.
type queue[A, R any] struct {
	mu   sync.Mutex
	asks []*request[A, R]
	busy bool
}

type request[A, R any] struct {
	what A
	done chan struct{}
	came R
	err  error
}

// spawnQueue has panes made, killQueue killed, each with what came of it.
type (
	spawnQueue = queue[tmux.Spawn, tmux.Pane]
	killQueue  = queue[paneOf, error]
)

// paneOf is a pane of a server.
type paneOf struct {
	srv  *tmux.Server
	pane tmux.Pane
}

// killAll is what a killQueue does. One server is asked for all of its panes.
func killAll(ctx context.Context, all []paneOf) ([]error, error) {
	var errs []error
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(p paneOf) bool { return p.srv.Socket != all[0].srv.Socket })
		if n < 0 {
			n = len(all)
		}
		var panes []tmux.Pane
		for _, p := range all[:n] {
			panes = append(panes, p.pane)
		}
		errs = append(errs, all[0].srv.KillAllExactly(ctx, panes)...)
		all = all[n:]
	}
	return errs, nil
}

// ask has something done and waits for it. do does things in order and stops at the
// first that cannot be done, which its error is about.
func (q *queue[A, R]) ask(what A, do func([]A) ([]R, error)) (R, error) {
	a := &request[A, R]{what: what, done: make(chan struct{})}
	q.mu.Lock()
	q.asks = append(q.asks, a)
	if !q.busy {
		q.busy = true
		go q.work(do)
	}
	q.mu.Unlock()
	<-a.done
	return a.came, a.err
}

// work does what is asked for until nothing is.
func (q *queue[A, R]) work(do func([]A) ([]R, error)) {
	for asks := q.take(); len(asks) > 0; asks = q.take() {
		for len(asks) > 0 {
			asks = asks[answer(asks, do):]
		}
	}
}

// take is what has been asked for; with nothing, the work is over.
func (q *queue[A, R]) take() []*request[A, R] {
	q.mu.Lock()
	defer q.mu.Unlock()
	asks := q.asks[:min(len(q.asks), atOnce)]
	q.asks, q.busy = q.asks[len(asks):], len(asks) > 0
	return asks
}

// answer does as much as it comes to, and returns how many asks that answers: those,
// and the one that could not be done. Where tmux did not answer that is all of them:
// those after it may have been done, and are not done twice.
func answer[A, R any](asks []*request[A, R], do func([]A) ([]R, error)) int {
	var all []A
	for _, a := range asks {
		all = append(all, a.what)
	}
	came, err := do(all)
	for i, r := range came {
		asks[i].came = r
		close(asks[i].done)
	}
	failed := asks[len(came):]
	if len(failed) > 1 && !unanswered(err) {
		failed = failed[:1]
	}
	for _, a := range failed {
		a.err = err
		close(a.done)
	}
	return len(came) + len(failed)
}

// unanswered reports whether an error leaves open what the tmux server has done.
func unanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, tmux.ErrLost)
}
