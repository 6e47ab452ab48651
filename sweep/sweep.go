// Package sweep captures a task's process tree, stops it, and looks at the
// whole host afterwards for what outlived it. It signals only what it can prove
// to be ours (evidence A to C, each time through a pin of package identity), and
// names the rest.
//
// # When nothing is left
//
// The keeper is the one that every orphan of its tree falls to, and wait tells it
// when none is left. When it is killed by force its orphans become somebody else's
// children, and what was born after the last capture, and has left chain, session
// and environment, has nothing to be known by but the keeper's stamp: a number that
// is inherited for good, and that anybody may read (identity.Process.Stamp). Then
// the report looks at every process of the host for it:
//
//   - one that bears it and is no member descends from the keeper, perhaps by the hands
//     of something that holds a person's work by now (a tmux server). It is named,
//     never signalled, and the verdict is unverified until it has ended;
//   - when every process could be asked, several times, and none bears it, the scan is
//     complete: nothing is left, and the verdict may be clean;
//   - what could not be asked, a keeper that had no stamp (that of an older hob), and a
//     chain of processes of which each has gone when it is looked at is unverified.
//
// Of other users' processes that are hidden (hidepid) nothing can be said: that is a
// partial inspection, as in any report. A process that resets its limit of file
// locks, which takes privileges and a purpose, is not found.
//
// # What belongs to the cgroup
//
// A task's cgroup is known by its inode, never by its path, and the keeper stays
// outside it. Being in it proves something only as long as it holds nothing else. A
// newcomer was put there by somebody when it was there before the command, does not
// bear the keeper's stamp, names another task in its environment, or has a living
// parent or session leader outside; so may be what is below a boundary or left alone.
// From then on who is only in it is named.
//
// The force step freezes it while it looks at who is in it and ends them, each through
// its pin: so nobody forks meanwhile. The freeze permits nothing by itself. Whoever is
// in it and is not the task's stands still for that long. FrozenAt in the capture, on
// disk before the freeze and until after the thaw, tells the next hob, after a cut,
// that it is hob's to thaw ([Thaw]); a cgroup that is frozen without it is somebody
// else's doing, and stays so.
//
// The keeper removes the cgroup at its end. Where somebody who is left alone is still
// in it, the next verb that acts after that one's end does, whatever has become of
// the run.
//
// # Boundaries
//
// A tmux server or another hob's keeper inside a task, and all below it, is
// somebody's own work: also what the keeper has adopted from a pane of that server,
// which the TMUX of its environment tells.
//
// # How it is built
//
// Decisions are pure functions over what was seen; effects apply them. What a
// stop needs from the outside (saving the capture, killing the pane) comes in
// through [Effects], so that the package knows neither records nor tmux.
package sweep

import (
	"context"
	"fmt"

	"hob/identity"
	"hob/sweep/gpu"
)

// Effects is what a stop needs done by whoever calls it.
type Effects interface {
	// SaveCapture writes the capture to disk, fsynced, before it returns. Nothing is
	// signalled before the first SaveCapture has returned (nil, or an error that
	// the stop then reports and goes on from with the capture in memory).
	SaveCapture(Capture) error
	// ClosePane kills the task's recorded pane (step 6). It is called after
	// the force step, when the tree is empty or stuck.
	ClosePane(ctx context.Context) error
	// KeeperDone reports whether the keeper has said that wait answered ECHILD:
	// the proof that its tree is empty.
	KeeperDone() bool
	// KeeperLeft reports whether the keeper has said, when it ended, that all that
	// lived below it was left alone on purpose.
	KeeperLeft() bool
	// Note tells a watcher what goes on ("asking 4121 with TERM"), for progress and events.
	Note(format string, args ...any)
}

// Options of a stop.
type Options struct {
	Reason string
	// From is the step of the protocol to start from: StepAll, or StepTerm when
	// the command has ended by itself (reason "exited").
	From Step
	// InKeeper: the caller is the task's keeper itself. Then the keeper is not
	// waited for and never signalled, and ClosePane is not called: the pane
	// ends with the keeper.
	InKeeper bool
	// DryRun: nothing is signalled, saved or closed. The living members of the
	// report have no fate, and their note says what they would get.
	DryRun bool
	// Take promotes look-alikes, in a Sweep of a task that has ended. One that is
	// not what was listed is refused with ErrRefused, one that has ended is
	// identity.ErrGone, and then nothing is signalled.
	Take []Take
	// GPU reads who holds GPU memory (gpu.Read); nil: not looked at, and
	// unknown. Where the task holds any, the stop waits for it to be given back.
	GPU func(ctx context.Context, pids []int) gpu.Reading
}

// Step of the stop protocol.
type Step int

// The steps a stop may begin at.
const (
	StepAll Step = iota // capture, ask, term, force, pane, sweep
	// StepTerm is for a command that has ended by itself while others of its
	// tree live: capture, then by the task's kind: a server's survivors get
	// Stop.Grace to end by themselves (a wait without a signal), a job's are
	// told TERM at once, a shell's are not signalled at all (what a person
	// left there is named, and spared). Then term, force, sweep.
	StepTerm
)

// Stop runs the stop protocol on one task. prev is the capture on disk (rolling,
// or left by a stop that was cut); the returned Report is complete also when
// the error is not nil.
func Stop(ctx context.Context, h identity.Host, t Target, prev Capture, fx Effects, o Options) (Report, error) {
	s := newStopper(ctx, h, t, prev, fx, o)
	defer s.tr.close()
	if !o.DryRun {
		s.thawLeft()
	}
	s.capture()
	if o.DryRun {
		return s.preview(), nil
	}
	err := s.run(firstPhase(t.Kind, o.From))
	return s.report(), err
}

// Sweep is step 7 alone, for a task that has ended: survivors of its capture are
// ended (TERM, after Stop.TermGrace KILL), look-alikes named. What a person
// left behind in a shell is spared, as when the shell ended. With living true
// nothing is signalled and the report has no members.
func Sweep(ctx context.Context, h identity.Host, t Target, prev Capture, fx Effects, living bool, o Options) (Report, error) {
	o.From, o.InKeeper = StepTerm, true // the keeper and the pane are no business of a sweep
	s := newStopper(ctx, h, t, prev, fx, o)
	defer s.tr.close()
	if !living && !o.DryRun {
		s.thawLeft()
	}
	changed := s.tr.dirty
	s.capture()
	s.tr.dirty = changed || len(s.tr.targets()) > 0
	if living {
		return s.lookOnly(), refuseLiving(t, o)
	}
	if err := s.promote(ctx); err != nil || o.DryRun {
		return s.preview(), err
	}
	err := s.run(PhaseTerm)
	return s.report(), err
}

// lookOnly is the report on a living task: its look-alikes and ports.
func (s *stopper) lookOnly() Report {
	r := s.report()
	for i, p := range r.Ports {
		if p.PID != nil && r.hasMember(*p.PID) {
			r.Ports[i].Note = ownPort
		}
	}
	r.living, r.Members = true, []ReportMember{}
	r.Verdict = verdictOf(nil, r.Host.Inspection, false)
	return r
}

// ownPort is the note of a port that the living task holds itself.
const ownPort = "the task's own"

// refuseLiving refuses to take anything while the task lives: what looks like it
// then may well be at work for it.
func refuseLiving(t Target, o Options) error {
	if len(o.Take) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s/%s lives; take look-alikes after it has been stopped", ErrRefused, t.Run, t.Task)
}
