package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"hob/sweep"
)

// Hooks are commands that go with a task's life. The keeper runs them, in its tree,
// with the command's environment and folder; what they write goes to the task's
// log and pane. So they are captured and ended like all of the task. An
// after_stop of a task that another hob has stopped gets a keeper of its own (RunAfterStop).
const (
	hookBefore    = "before"      // before each start of the command, which waits for it
	hookReady     = "after_ready" // once in each life, beside the command
	HookAfterStop = "after_stop"  // once, when the task is over
)

// pendingStart is a command that is not started yet, since `before` comes first.
type pendingStart int

const (
	notPending  pendingStart = iota
	beforeRuns               // before is under way
	beforeEnded              // it ended well: the command may be started, under the lock
)

// shown is a hook for events and for whoever watches: its program. In its arguments
// may stand what a recipe has filled in from an environment.
func (h *Hook) shown() string {
	if len(h.Args) > 1 {
		return h.Args[0] + " …"
	}
	return strings.Join(h.Args, " ")
}

// hookEnv is the command's environment, and what a hook may want to know.
func hookEnv(env []string, hook string, more ...string) []string {
	return append(append(append([]string{}, env...), "HOB_HOOK="+hook), more...)
}

// hook runs a hook beside the loop, and hands the loop what came of it.
func (k *keeper) hook(name string, h *Hook, done func(error), more ...string) {
	tty, env := k.term.slave.Fd(), hookEnv(k.life.env, name, more...)
	k.note("%s: %s", name, h.shown())
	ctx, cancel := k.hookContext(h.Timeout)
	go func() {
		defer cancel()
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err == nil {
			defer null.Close()
			var code int
			code, err = k.runChild(ctx, h.Args, env, k.spec.Dir, []uintptr{null.Fd(), tty, tty})
			err = hookError(name, h, code, err)
		}
		k.post(func() { done(err) })
	}()
}

// hookError is why a hook has failed; nil when it has not.
func hookError(name string, h *Hook, code int, err error) error {
	var no *startError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s did not end within %s", name, h.Timeout)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s was interrupted", name)
	case errors.As(err, &no):
		return &startError{no.code, fmt.Errorf("%s: %w", name, err)}
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case code != 0:
		return &startError{code, fmt.Errorf("%s ended with exit code %d", name, code)}
	}
	return nil
}

// before runs what must end well before the command is started. The lock is not
// held meanwhile, so that a stop need not wait for it.
func (k *keeper) before() {
	if err := k.newCapture(); err != nil {
		k.notStarted(&startError{126, fmt.Errorf("not started, since its records cannot be written: %w", err)})
		return
	}
	k.life.pending, k.rec.Hook = beforeRuns, hookBefore
	k.complain("keeper.json", k.save())
	k.hook(hookBefore, k.spec.Before, k.beforeDone)
}

// beforeDone takes in how before ended.
func (k *keeper) beforeDone(err error) {
	k.readTask()
	k.lookAt = k.h.Now()
	switch {
	case k.want != "" || k.disowned || k.task.State == Stopping:
		k.life.pending, k.rec.Hook = notPending, ""
		k.notStarted(&startError{126, errors.New("it was stopped before it was started")})
	case err != nil:
		k.life.pending, k.rec.Hook = notPending, ""
		k.notStarted(err)
	default:
		k.life.pending = beforeEnded
	}
}

// startPending starts the command after before. The lock is held: nobody can have
// asked for a stop that it would undo.
func (k *keeper) startPending() {
	k.life.pending, k.rec.Hook = notPending, ""
	k.readTask()
	if k.disowned || k.task.State != Up && k.task.State != Starting {
		k.notStarted(&startError{126, errors.New("it was stopped before it was started")})
		return
	}
	k.start()
}

// afterReady runs beside a command that has become ready. That it fails is told,
// and stops nothing: the server answers.
func (k *keeper) afterReady() {
	k.rec.HookNote = ""
	if k.spec.AfterReady == nil {
		return
	}
	k.rec.Hook = hookReady
	life := k.life.began
	k.hook(hookReady, k.spec.AfterReady, func(err error) {
		if k.life.began != life || k.rec.Hook != hookReady {
			return
		}
		k.rec.Hook = ""
		k.hookFailed(err)
	})
}

func (k *keeper) hookFailed(err error) {
	if err == nil {
		return
	}
	k.rec.HookNote = err.Error()
	k.term.tell("%v", err)
	k.note("%v", err)
}

// afterDue reports whether after_stop is still to be run by this keeper: the task
// is over, by its own end or a stop of the keeper's.
func (k *keeper) afterDue() bool {
	over := k.task.State.Settled() || k.life.failed != nil
	return k.spec.AfterStop != nil && !k.hooked && !k.disowned && over && k.rec.StartedAt != nil && k.task.AfterStop == nil
}

// afterStop runs what comes after the task. The lock is held until it has ended.
// What it leaves running is ended like what a command leaves.
func (k *keeper) afterStop() {
	k.hooked = true
	if err := k.markAfterStop(); err != nil {
		k.complain("task.json", err)
		return
	}
	k.hooking, k.rec.Hook = true, HookAfterStop
	k.complain("keeper.json", k.save())
	k.hook(HookAfterStop, k.spec.AfterStop, func(err error) {
		k.hooking = false
		if k.life.reported = k.reaper.Empty(); k.life.reported {
			k.rec.Hook = ""
		}
		k.hookFailed(err)
	}, "HOB_STATE="+string(k.task.State))
}

// announceAfterStop says that the task is not over when its state says so: before
// that is written.
func (k *keeper) announceAfterStop() {
	if k.spec.AfterStop != nil && !k.hooked && k.rec.StartedAt != nil {
		k.rec.Hook = HookAfterStop
		k.complain("keeper.json", k.save())
	}
}

// markAfterStop writes down that after_stop is run, before it is: it is run once.
func (k *keeper) markAfterStop() error {
	t, err := k.dir.ReadTask()
	if err != nil || t.Nonce != k.spec.Nonce {
		return errors.Join(err, k.keep(func() error { return nil }))
	}
	now := k.h.Now().UTC().Round(0)
	t.AfterStop, t.UpdatedAt = &now, now
	if k.life.failed != nil && !t.State.Settled() {
		t.State, t.Error, t.EndedAt = Failed, k.life.failed.Error(), &now
	}
	if err := k.dir.WriteTask(t); err != nil {
		return err
	}
	k.task, k.wroteAt = t, now
	return nil
}

// stopKind is how a stop of the keeper's counts: what it does for what an
// after_stop left behind is still part of the stop that went before.
func (k *keeper) stopKind(from sweep.Step) sweep.Step {
	if k.stopped {
		return sweep.StepAll
	}
	return from
}
