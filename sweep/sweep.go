// Package sweep captures a task's process tree, stops it, and looks at the
// whole host afterwards for what outlived it. It signals only what it can prove
// to be ours (evidence A to C, each time through a pin of package identity), and
// names the rest.
//
// Decisions are pure functions over what was seen; effects apply them. What a
// stop needs from the outside (saving the capture, killing the pane) comes in
// through [Effects], so that the package knows neither records nor tmux.
package sweep

import (
	"context"

	"hob/identity"
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
	// Note tells a watcher what goes on ("asking 4121 with TERM"), for progress and events.
	Note(format string, args ...any)
}

// Options of a stop.
type Options struct {
	Reason string
	// From is the step of the protocol to start from: StepAll, or StepTerm when
	// the command has ended by itself (reason "exited").
	From Step
	// Keeper: the caller is the task's keeper itself. Then it never kills its
	// own pane, and emptiness is known from its own reaper.
	InKeeper bool
	DryRun   bool
}

// Step of the stop protocol.
type Step int

// The steps a stop may begin at.
const (
	StepAll  Step = iota // capture, ask, term, force, pane, sweep
	StepTerm             // the command has ended: capture, term, force, pane, sweep
)

// Stop runs the stop protocol on one task. prev is the capture on disk (rolling,
// or left by a stop that was cut); the returned Report is complete also when
// the error is not nil.
func Stop(ctx context.Context, h identity.Host, t Target, prev Capture, fx Effects, o Options) (Report, error) {
	panic("not written yet")
}

// Sweep is step 7 alone, for a task that has ended: survivors of its capture are
// ended, look-alikes named. With living true nothing is signalled.
func Sweep(ctx context.Context, h identity.Host, t Target, prev Capture, fx Effects, living bool, o Options) (Report, error) {
	panic("not written yet")
}

// Observe is one round of the rolling capture: the tree below the keeper now,
// merged into prev. changed reports whether there is something new to write.
func Observe(ctx context.Context, h identity.Host, t Target, prev Capture) (c Capture, changed bool, err error) {
	panic("not written yet")
}
