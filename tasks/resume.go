package tasks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"hob/identity"
)

// lockTask waits for the task's op.lock. A keeper that was stopped (by a SIGSTOP, or
// with its terminal) in the middle of its own stop holds it and goes no further: who
// acts resumes it first, as every stop does with a stopped keeper.
func (m *Manager) lockTask(ctx context.Context, t *TaskDir, act bool) (Unlock, error) {
	unlock, ok, err := t.TryLock()
	if ok || err != nil {
		return unlock, m.untrusted(t.Run, t, err)
	}
	if m.Tell != nil { // where the task has a line of its own
		ctx = TellWaits(ctx, func(w Waiting) {
			m.tell(Progress{Name: Name{t.Run, t.Name}, State: Derive(m.look(t)).State, Since: m.now(), Text: w.String()})
		})
	}
	if !act {
		return t.Lock(ctx)
	}
	wait, over := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { m.attend(wait, t) })
	defer beside.Wait()
	defer over()
	return t.Lock(ctx)
}

// attend resumes the keeper of a task whose op.lock is waited for, until ctx is done. It
// looks again and again: a process that is sent STOP while it waits for a disk stops
// only later.
func (m *Manager) attend(ctx context.Context, t *TaskDir) {
	for ctx.Err() == nil {
		m.resumeKeeper(t)
		pause(ctx, resumeAgain)
	}
}

// resumeAgain is how long it takes until a keeper that is waited for is looked at again.
const resumeAgain = 2 * time.Second

// resumeKeeper gives CONT to the task's keeper, if it is proven to be that and stopped.
func (m *Manager) resumeKeeper(t *TaskDir) {
	k, err := t.ReadKeeper()
	if err != nil {
		return // whoever holds the lock reads it too, and says what is wrong with it
	}
	pin, f := m.Host.Verify(k.Keeper)
	if f.Verdict != identity.Owned {
		return
	}
	defer pin.Close()
	if row, err := pin.Read(0); err != nil || row.State != 'T' {
		return
	}
	what := fmt.Sprintf("CONT to the keeper %d: it was stopped", k.Keeper.PID)
	if err := pin.Signal(identity.SigCont); err != nil {
		what += ", and that was refused: " + err.Error()
	}
	m.event(t.run(), t.Name, what)
}
