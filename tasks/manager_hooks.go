package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// afterStop runs the task's after_stop, which its keeper has not: another hob has
// stopped it. The lock is held. It is run once, with the keeper's environment and
// into the task's log; that it fails is told, and the task is stopped all the same.
func (s *stopper) afterStop(ctx context.Context) error {
	spec, err := s.dir.ReadSpec()
	if err != nil || spec.AfterStop == nil {
		return trouble(err)
	}
	task, err := s.dir.ReadTask()
	started := s.seen.Keeper != nil && s.seen.Keeper.StartedAt != nil
	if err != nil || task.AfterStop != nil || task.Nonce != spec.Nonce || !task.State.Settled() || !started {
		return trouble(err)
	}
	now := s.now()
	task.AfterStop, task.UpdatedAt = &now, now
	if err := s.dir.WriteTask(task); err != nil {
		return err
	}
	s.Note("%s: %s", hookStop, spec.AfterStop.shown())
	s.event(s.run, s.dir.Name, hookStop+": "+spec.AfterStop.shown())
	if err := s.runHook(ctx, spec, task.State); err != nil {
		s.event(s.run, s.dir.Name, err.Error())
		return &Problem{Err: err, Tip: "hob logs " + Name{s.run.Name, s.dir.Name}.String()}
	}
	return nil
}

func (s *stopper) runHook(ctx context.Context, spec Spec, state State) error {
	env := hookEnv(environment(spec, s.Store.Home, s.getenv), hookStop, "HOB_STATE="+string(state))
	path, err := resolve(spec.AfterStop.Args[0], spec.Dir, env)
	if err != nil {
		return fmt.Errorf("%s: %w", hookStop, err)
	}
	log, err := os.OpenFile(s.dir.LogPath(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w", hookStop, err)
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(ctx, spec.AfterStop.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path)
	cmd.Args, cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = spec.AfterStop.Args, env, spec.Dir, log, log
	if len(spec.Limits) > 0 {
		cmd.Path, cmd.Args = s.Self, spec.Limits.Through("hob", path, spec.AfterStop.Args)
	}
	cmd.WaitDelay = time.Second // what it leaves running must not hold us
	err = cmd.Run()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return hookError(hookStop, spec.AfterStop, 0, context.Cause(ctx))
	case errors.As(err, &ended) && ended.ExitCode() > 0:
		return hookError(hookStop, spec.AfterStop, ended.ExitCode(), nil)
	}
	return hookError(hookStop, spec.AfterStop, 0, err)
}
