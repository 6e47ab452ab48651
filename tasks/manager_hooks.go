package tasks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"hob/sweep"
	"hob/sweep/gpu"
)

// afterStop has the task's after_stop run, which its keeper has not: another hob has
// stopped it. The lock is held. It is run once, with the keeper's environment and into
// the task's log, under a keeper of its own (RunAfterStop); that it fails is told, and
// the task is stopped all the same. out gets what the task has come to after it.
func (s *stopper) afterStop(ctx context.Context, out *Outcome) {
	due, err := s.afterStopDue()
	if err != nil || !due {
		out.Hook = trouble(err)
		return
	}
	if err := s.runAfterStop(ctx); err != nil {
		s.event(s.run, s.dir.Name, err.Error())
		out.Hook = &Problem{Err: err, Tip: "hob logs " + out.Name.String()}
	}
	if s.seen = s.lookHeld(s.dir); s.seen.Trouble == nil && s.seen.Task != nil && s.seen.afterStopCut() {
		s.sweepAfter(ctx, out)
		return
	}
	if task, err := s.dir.ReadTask(); err == nil && task.AfterStop != nil {
		out.State = task.State
	}
	if rep, err := s.dir.ReadReport(); err == nil && out.Report != nil {
		out.Report = &rep // with what the hook had left
	}
}

// sweepAfter looks for what an after_stop has left whose keeper was killed.
func (s *stopper) sweepAfter(ctx context.Context, out *Outcome) {
	run, err := s.run.recorded()
	if err != nil {
		out.Err = errors.Join(out.Err, s.untrusted(s.run.Name, s.dir, err))
		return
	}
	target, prev, err := s.target(run)
	if err != nil {
		out.Err = errors.Join(out.Err, s.untrusted(s.run.Name, s.dir, err))
		return
	}
	rep, err := sweep.Sweep(ctx, s.Host, target, prev, s, false, sweep.Options{Reason: s.seen.Task.Reason, GPU: gpu.Read})
	out.Report = &rep
	if err == nil {
		out.State, err = s.swept(rep)
	}
	out.Err = errors.Join(out.Err, err)
}

func (s *stopper) afterStopDue() (bool, error) {
	spec, err := s.dir.ReadSpec()
	if err != nil || spec.AfterStop == nil {
		return false, err
	}
	task, err := s.dir.ReadTask()
	started := s.seen.Keeper != nil && s.seen.Keeper.StartedAt != nil
	if err != nil || task.AfterStop != nil || task.Nonce != spec.Nonce || !task.State.Settled() || !started {
		return false, err
	}
	s.Note("%s: %s", HookAfterStop, spec.AfterStop.shown())
	return true, nil
}

// runAfterStop waits for the keeper of the hook, and tells it when there is no more
// time: it ends the hook then, and all that this has left.
func (s *stopper) runAfterStop(ctx context.Context) error {
	cmd := exec.Command(s.Self, "keeper", s.dir.SpecPath(), HookAfterStop)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: start its keeper: %w", HookAfterStop, err)
	}
	pin, err := s.Host.Open(cmd.Process.Pid) // nobody has waited for it yet: the number is its own
	if err == nil {
		defer pin.Close()
		defer context.AfterFunc(ctx, func() { _ = pin.Signal(syscall.SIGTERM) })()
	}
	waiting, over := context.WithCancel(context.Background())
	var beside sync.WaitGroup
	beside.Go(func() { s.resumeWhile(waiting) })
	err = cmd.Wait()
	over()
	beside.Wait()
	switch text := strings.TrimPrefix(strings.TrimSpace(said.String()), "hob: "); {
	case err != nil && text != "":
		return fmt.Errorf("%s: %s: %w", HookAfterStop, text, err)
	case err != nil:
		return fmt.Errorf("%s: its keeper has ended early: %w", HookAfterStop, err)
	}
	k, err := s.dir.ReadKeeper()
	if err == nil && k.HookNote != "" {
		err = errors.New(k.HookNote)
	}
	return err
}

// resumeWhile resumes the keeper of the hook whenever it is found stopped: it would
// keep neither the hook's time nor ours.
func (s *stopper) resumeWhile(ctx context.Context) {
	for {
		if pause(ctx, resumeAgain); ctx.Err() != nil {
			return
		}
		s.resumeKeeper(s.dir)
	}
}
