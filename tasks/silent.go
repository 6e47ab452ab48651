package tasks

import (
	"context"
	"time"

	"hob/identity"
)

// silentTurn is closed when something has happened that may change what a task is
// without a record being written. nil where there is no such thing to be waited for.
func (m *Manager) silentTurn(ctx context.Context, t *TaskDir, s Seen) <-chan struct{} {
	if s.Busy {
		return letGo(ctx, t)
	}
	return m.endOfTask(ctx, s)
}

// letGo is closed when whoever holds the task's op.lock has let go of it. Its hob may
// have been killed, or it was just another one's look: then nothing is written.
func letGo(ctx context.Context, t *TaskDir) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		if unlock, err := t.Lock(TellWaits(ctx, nil)); err == nil {
			unlock()
		}
		close(done)
	}()
	return done
}

// endOfTask is closed when the process has ended whose end changes what a task is:
// its keeper, and where that is gone or was none, its command; or when it is to be
// looked for once more, since nobody can tell us. Nothing is to be
// waited for in a task of which nothing lives; then it is nil.
func (m *Manager) endOfTask(ctx context.Context, s Seen) <-chan struct{} {
	var ref *identity.Ref
	switch {
	case s.KeeperV.Verdict == identity.Owned:
		ref = &s.Keeper.Keeper
	case s.Command.Verdict == identity.Owned && s.adopted() != nil:
		ref = &s.adopted().Command
	case s.Command.Verdict == identity.Owned && s.Keeper != nil:
		ref = s.Keeper.Command
	}
	if ref == nil {
		return nil
	}
	done := make(chan struct{})
	h, _ := m.Host.Verify(*ref)
	if h == nil {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		defer h.Close()
		if err := m.Host.Wait(ctx, []identity.Handle{h}, time.Time{}); err != nil {
			pause(ctx, lookAgain)
		}
	}()
	return done
}

// lookAgain is how long a task is left unlooked at whose end cannot be waited for: a
// wait that has failed says nothing of the process.
const lookAgain = time.Second

// pause ends after d, or with ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
