package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"hob/identity"
	"hob/sweep"
)

// target is the task as the sweep needs to know it.
func (k *keeper) target() sweep.Target {
	t := sweep.Target{
		Run: k.spec.Run, Task: k.spec.Task, Kind: k.spec.Kind, Marker: k.spec.RunID, Args: k.spec.Args, Stamp: k.rec.Stamp,
		Keeper: &k.self, Command: k.rec.Command, Stop: k.spec.Stop,
	}
	if k.spec.Port > 0 {
		t.Ports = []int{k.spec.Port}
	}
	if t.Server = k.tmux; k.tmux != nil {
		t.Spared = []identity.Ref{*k.tmux}
	}
	return t
}

// stop runs the stop protocol beside the loop, which goes on reaping. op.lock is held.
func (k *keeper) stop(from sweep.Step) {
	reason := k.reason(from)
	k.stopping = true
	k.watch.Close()
	k.ready.end()
	k.gpus.end(k)
	if from == sweep.StepAll {
		k.writeTask(Stopping, reason, "")
	}
	t, prev := k.target(), k.capture
	if from == sweep.StepTerm {
		t.Stop.Grace = 0 // it is over
	}
	if c, err := k.dir.ReadCapture(); err == nil && c.Phase == PhaseStop {
		prev = c // of a stop that was cut
	}
	fx := &keeperEffects{k: k, disowned: k.disowned}
	go func() {
		report, err := sweep.Stop(bg, k.h, t, prev, fx, sweep.Options{Reason: reason, From: from, InKeeper: true, GPU: k.readGPU})
		k.post(func() {
			k.lastStop = fx.last
			k.stopDone(from, report, err)
		})
	}()
}

func (k *keeper) reason(from sweep.Step) string {
	switch {
	case from == sweep.StepTerm && !k.stopped:
		return "exited"
	case k.want != "":
		return k.want
	case k.task.Reason != "":
		return k.task.Reason
	}
	return "terminated"
}

// stopDone writes down what a stop has come to.
func (k *keeper) stopDone(from sweep.Step, r sweep.Report, err error) {
	k.complain("stop", err)
	k.stopping, k.life.reported = false, true
	for _, m := range r.Members {
		k.life.pids = append(k.life.pids, m.PID)
	}
	k.stopped = k.stopped || from == sweep.StepAll
	k.complain("report.json", k.keep(func() error { return k.dir.WriteReport(r) }))
	k.stopFrom = from
	state := endState(k.spec.Kind, k.stopKind(from), k.life.exit, r.Verdict)
	if from == sweep.StepTerm && k.life.restart.again && k.want == "" {
		k.note("swept: %s", r.Verdict)
	} else {
		k.announceAfterStop()
		k.writeTask(state, r.Reason, "")
		k.note("%s: %s", state, r.Verdict)
	}
	k.lookAt = k.h.Now()
	if !k.afterDue() {
		k.rec.Hook = ""
		k.release()
	}
}

// endState is the state of a task after a stop.
func endState(kind sweep.Kind, from sweep.Step, e *Exit, v sweep.Verdict) State {
	switch {
	case v == sweep.Survivors:
		return Survivors
	case v == sweep.Unverified:
		return Unverified
	case from == sweep.StepAll || e == nil:
		return Stopped
	case !succeeded(*e):
		return Failed
	case kind == sweep.Job:
		return Completed
	}
	return Exited
}

// onlySpared reports whether all that lives below the keeper is left alone on
// purpose, after a stop: then there is nothing to wait for.
func (k *keeper) onlySpared() bool {
	c, err := k.dir.ReadCapture()
	if k.disowned { // the one on disk is of another start
		c, err = k.lastStop, nil
	}
	if err != nil {
		return false
	}
	kids, err := k.h.Children(k.self.PID)
	if err != nil && !errors.Is(err, identity.ErrUnsupported) {
		return false
	}
	t, alone := k.target(), map[int]bool{}
	for _, m := range c.Members {
		if m.EndedAt != nil {
			continue
		}
		if !sweep.LeftAlone(m, t, k.stopFrom) {
			return false
		}
		alone[m.Ref.PID] = true
	}
	unknown := slices.ContainsFunc(kids, func(pid int) bool { return !alone[pid] })
	return len(alone) > 0 && !unknown
}

// keeperEffects are what a stop needs done by a keeper. Its methods are called
// beside the loop, and touch nothing of the keeper's that changes.
type keeperEffects struct {
	k        *keeper
	disowned bool
	last     sweep.Capture // as it was to be saved
}

// SaveCapture writes the capture to disk before it returns.
func (f *keeperEffects) SaveCapture(c sweep.Capture) error {
	f.last = c
	if f.disowned {
		return errDisowned
	}
	return f.k.dir.WriteCapture(c, true)
}

// ClosePane does nothing: the pane ends with its keeper.
func (f *keeperEffects) ClosePane(context.Context) error { return nil }

// KeeperDone reports whether wait has said ECHILD.
func (f *keeperEffects) KeeperDone() bool { return f.k.reaper.Empty() }

// KeeperLeft is false: it lives.
func (f *keeperEffects) KeeperLeft() bool { return false }

// Note puts a step of the stop among the events.
func (f *keeperEffects) Note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	f.k.post(func() { f.k.note("%s", text) })
}
