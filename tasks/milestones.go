package tasks

import (
	"context"
	"errors"
	"sync"
)

// The conditions of a dependency.
const (
	condStarted   = "started"
	condReady     = "ready"
	condCompleted = "completed"
)

// rank orders the conditions: a later one includes the earlier.
func rank(condition string) int {
	switch condition {
	case condReady:
		return 1
	case condCompleted:
		return 2
	}
	return 0
}

// milestones are how far a task has come in this `up`, for those that wait.
type milestones struct {
	reached [3]chan struct{}
	over    chan struct{} // nobody follows the task any more
	state   *milestoneState
}

type milestoneState struct {
	sync.Mutex
	at  int // the highest reached, -1 for none
	err error
}

func newMilestones() milestones {
	m := milestones{over: make(chan struct{}), state: &milestoneState{at: -1}}
	for i := range m.reached {
		m.reached[i] = make(chan struct{})
	}
	return m
}

// reach says that the task has come as far as condition.
func (m milestones) reach(condition string) {
	m.state.Lock()
	defer m.state.Unlock()
	for m.state.at < rank(condition) {
		m.state.at++
		close(m.reached[m.state.at])
	}
}

// fail says why the task comes no further.
func (m milestones) fail(err error) {
	m.state.Lock()
	defer m.state.Unlock()
	m.state.err = err
}

func (m milestones) close() { close(m.over) }

// wait blocks until the task has come as far as condition, or never will.
func (m milestones) wait(ctx context.Context, condition string) error {
	select {
	case <-m.reached[rank(condition)]:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-m.over:
	}
	m.state.Lock()
	defer m.state.Unlock()
	if m.state.at >= rank(condition) {
		return nil
	}
	if m.state.err != nil {
		return m.state.err
	}
	return errors.New("it did not come so far")
}
