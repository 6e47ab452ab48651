package tasks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"hob/identity"
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

// hookCut says that this stop has ended an after_stop that still had time: a hob that was
// killed had begun it, and its keeper had not come by the task's lock. before is what
// was seen before the stop.
func (s *stopper) hookCut(before Seen, rep *sweep.Report) error {
	k := before.Keeper
	if k == nil || k.Hook != HookAfterStop || before.KeeperV.Verdict != identity.Owned || !signalledAny(*rep) {
		return nil
	}
	if now, err := s.dir.ReadKeeper(); err == nil && now.Nonce == k.Nonce && now.Hook == "" && now.HookNote == "" {
		return nil // it had come to its end, and only what it left was ended
	}
	what := HookAfterStop + " was still under way, begun by a hob that is gone: this stop has cut it short"
	if at := before.Task.AfterStop; at != nil {
		what += fmt.Sprintf(", %s after it was begun", s.now().Sub(*at).Round(time.Second))
	}
	rep.Host.Notes = append(rep.Host.Notes, what)
	s.event(s.run, s.dir.Name, what)
	return &Problem{Msg: what, Tip: "hob logs " + Name{s.run.Name, s.dir.Name}.String()}
}

// signalledAny reports whether a stop has sent somebody what may have ended it. Members
// of a stop before it had theirs earlier.
func signalledAny(rep sweep.Report) bool {
	return slices.ContainsFunc(rep.Members, func(m sweep.ReportMember) bool {
		return slices.ContainsFunc(m.Sent, func(s sweep.Sent) bool { return s.Signal != "CONT" && !s.At.Before(rep.StartedAt) })
	})
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
