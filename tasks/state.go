package tasks

import (
	"fmt"
	"strings"
	"time"

	"hob/identity"
	"hob/sweep"
)

// Seen is what one look at a task found: its records, and what became of the
// processes that they name. [Derive] turns it into a state.
type Seen struct {
	Task    *Task            // nil: the task was never started
	Keeper  *Keeper          // nil: none was written for this start
	Exit    *Exit            // nil: none was written for this start
	Trouble error            // a record that cannot be trusted
	Cut     error            // records that the end of the boot has torn: nothing of the task can live
	KeeperV identity.Finding // zero when no keeper is recorded
	Command identity.Finding // zero when no command is recorded
	Busy    bool             // somebody holds the task's op.lock
	Left    Left             // what the last report left alive
}

// started is when the task was last started; zero when it never was.
func (s Seen) started() time.Time {
	if s.Task == nil || s.Task.StartedAt == nil {
		return time.Time{}
	}
	return *s.Task.StartedAt
}

// orphaned reports whether a task whose record says that it runs has lost both
// its keeper and its command: then only the capture says whether something of it
// lives.
func (s Seen) orphaned() bool {
	if s.adopted() != nil {
		return s.Task.State == Up && (s.Command.Verdict == identity.Gone || s.Command.Verdict == identity.Foreign) && !rebooted(s)
	}
	if s.Keeper == nil || s.Task.State != Starting && s.Task.State != Up {
		return false
	}
	dead := func(f identity.Finding) bool {
		return f.Verdict != identity.Owned && f.Verdict != identity.Unverifiable
	}
	return dead(s.KeeperV) && dead(s.Command) && !s.Keeper.Empty && !rebooted(s)
}

// adopted is how the task came under hob's care, nil for one that hob started.
func (s Seen) adopted() *Adoption {
	if s.Task == nil {
		return nil
	}
	return s.Task.Adopted
}

// Left counts, by their verdict now, the captured members whose end nobody has
// seen yet.
type Left struct{ Owned, Unknown, Ended int }

// Derived is the state of a task as the evidence shows it. Note says why where
// the state alone does not.
type Derived struct {
	State   State
	Note    string
	Answers bool // its readiness holds; a job that does is up, not ready, for it offers nothing
	Tended  bool // the command has ended, and the keeper still sees to what it left behind

	HookFailed bool // after_stop, of a task that is over
}

// Over reports whether the task has ended, with nothing of it left, nothing
// unknown about it, and nobody at work on it.
func (d Derived) Over() bool { return d.State.Settled() && !d.Tended }

// Derive decides what state a task is in. It is pure: the record's own word is
// one claim among others, and the processes outrank it.
func Derive(s Seen) Derived {
	switch {
	case s.Trouble != nil:
		return Derived{State: Unverified, Note: s.Trouble.Error()}
	case s.Cut != nil && (s.Task == nil || !s.Task.State.Settled()):
		return Derived{State: Lost, Note: "the host was restarted; " + s.Cut.Error()}
	case s.Task == nil:
		return Derived{State: Stopped, Note: "never started"}
	}
	switch s.Task.State {
	case Stopped, Exited, Completed, Failed:
		return deriveEnded(s).withHook(s)
	case Survivors, Unverified:
		return deriveLeft(s).withHook(s)
	}
	if d, unknown := unverifiable(s); unknown {
		return d
	}
	switch s.Task.State {
	case Starting:
		return deriveStarting(s)
	case Stopping:
		return deriveStopping(s)
	}
	return deriveUp(s)
}

// unverifiable is the state of a task of which hob cannot tell whether it runs.
func unverifiable(s Seen) (Derived, bool) {
	for _, f := range []identity.Finding{s.KeeperV, s.Command} {
		if f.Verdict == identity.Unverifiable {
			return Derived{State: Unverified, Note: f.Reason}, true
		}
	}
	return Derived{}, false
}

// deriveEnded holds the claim that all has ended against the command.
func deriveEnded(s Seen) Derived {
	if s.Command.Verdict == identity.Owned {
		return Derived{State: Survivors, Note: "the record says " + string(s.Task.State) + ", and the command lives"}
	}
	d := Derived{State: s.Task.State, Note: s.Task.Error}
	if d.Note == "" && d.State == Failed && s.Exit != nil {
		d.Note = fromExit(s).Note
	}
	if k := s.Keeper; k != nil && k.Hook == HookAfterStop && s.KeeperV.Verdict == identity.Owned {
		d.Tended, d.Note = true, strings.TrimPrefix(d.Note+"; its after_stop runs", "; ")
	}
	if s.afterStopCut() {
		return Derived{State: Unverified, Note: "the keeper of its after_stop was killed: what that has left is not known"}
	}
	return d
}

// withHook says that the task's after_stop has failed: whoever stopped it was told once,
// and a keeper that ran it had nobody to tell.
func (d Derived) withHook(s Seen) Derived {
	if k := s.Keeper; k != nil && s.Task.AfterStop != nil && strings.HasPrefix(k.HookNote, HookAfterStop) {
		d.HookFailed, d.Note = true, strings.TrimPrefix(d.Note+"; "+k.HookNote, "; ")
	}
	return d
}

// afterStopCut reports whether the keeper that ran after_stop has ended before that was
// over, and no sweep has looked since for what it left.
func (s Seen) afterStopCut() bool {
	k := s.Keeper
	return k != nil && k.Hook == HookAfterStop && !k.Empty && s.Task.AfterStop != nil && isGone(s.KeeperV) && !rebooted(s)
}

// deriveLeft looks at what an earlier sweep could not end or see.
func deriveLeft(s Seen) Derived {
	l := s.Left
	switch {
	case s.Command.Verdict == identity.Owned:
		return Derived{State: Survivors, Note: "the command lives"}
	case l.Owned > 0:
		return Derived{State: Survivors, Note: fmt.Sprintf("%d of its processes live", l.Owned)}
	case l.Unknown > 0:
		return Derived{State: Unverified, Note: fmt.Sprintf("%d of its processes cannot be told", l.Unknown)}
	case l.Ended > 0 && s.Task.State == Survivors:
		return Derived{State: Survivors, Note: "those that were left have ended since; a sweep will say so"}
	}
	note := s.Task.Error
	if s.Task.State == Unverified && note == "" {
		note = "the report of its last sweep says what could not be told"
	}
	return Derived{State: s.Task.State, Note: note}
}

// deriveStarting: the keeper may not have written its first record yet.
func deriveStarting(s Seen) Derived {
	switch {
	case s.Keeper != nil:
		return deriveUp(s)
	case s.Exit != nil:
		return fromExit(s)
	case s.Busy:
		return Derived{State: Starting}
	}
	return Derived{State: Lost, Note: "its start was cut before the keeper ran"}
}

// deriveStopping tells a stop that goes on from one that was cut.
func deriveStopping(s Seen) Derived {
	alive := s.KeeperV.Verdict == identity.Owned || s.Command.Verdict == identity.Owned
	if alive || s.Busy {
		return Derived{State: Stopping}
	}
	if rebooted(s) {
		return Derived{State: Lost, Note: "the host was restarted in the middle of its stop"}
	}
	return Derived{State: Unverified, Note: "its stop was cut"}
}

// deriveUp is for a task whose record says that it runs.
func deriveUp(s Seen) Derived {
	keeper := s.KeeperV.Verdict == identity.Owned
	command := s.Command.Verdict == identity.Owned
	switch {
	case s.adopted() != nil:
		return deriveAdopted(s)
	case keeper && command:
		return alive(s.Task.Kind, *s.Keeper)
	case keeper && s.Exit != nil && s.Exit.RestartAt != nil:
		return Derived{State: Starting, Note: s.Keeper.ReadyNote}
	case keeper && s.Exit != nil:
		d := fromExit(s)
		if !s.Keeper.Empty {
			d.Tended = true
			d.Note = strings.TrimPrefix(d.Note+"; its keeper sees to what it left behind", "; ")
		}
		return d
	case keeper:
		return Derived{State: Starting, Note: startNote(*s.Keeper)}
	case command:
		return Derived{State: Up, Note: "its keeper is gone"}
	}
	return ended(s)
}

// ended: neither keeper nor command live, and the record was not brought up to it.
func ended(s Seen) Derived {
	switch {
	case s.Exit != nil && (rebooted(s) || s.Keeper == nil || s.Keeper.Empty):
		return fromExit(s)
	case rebooted(s):
		return Derived{State: Lost, Note: "the host was restarted"}
	case s.Left.Owned > 0:
		return Derived{State: Survivors, Note: fmt.Sprintf("keeper and command are gone, and %d of its processes live", s.Left.Owned)}
	case s.Left.Unknown > 0:
		return Derived{State: Unverified, Note: fmt.Sprintf("keeper and command are gone, and %d of its processes cannot be told", s.Left.Unknown)}
	case s.Exit != nil:
		return Derived{State: Unverified, Note: "it ended, and its keeper died before it could look at what was left"}
	}
	return Derived{State: Lost, Note: "keeper and command are gone, and nobody wrote how"}
}

// deriveAdopted is for a task that hob did not start. Nobody waits for its
// command, so nobody can say how that ended.
func deriveAdopted(s Seen) Derived {
	switch {
	case s.Command.Verdict == identity.Owned:
		return Derived{State: Up}
	case rebooted(s):
		return Derived{State: Lost, Note: "the host was restarted"}
	case s.Left.Owned > 0:
		return Derived{State: Survivors, Note: fmt.Sprintf("its command is gone, and %d of its processes live", s.Left.Owned)}
	case s.Left.Unknown > 0:
		return Derived{State: Unverified, Note: fmt.Sprintf("its command is gone, and %d of its processes cannot be told", s.Left.Unknown)}
	}
	return Derived{State: Lost, Note: "it has ended, and nobody saw how: it was adopted, and has no keeper"}
}

// rebooted reports whether the keeper (of an adopted task the command) is gone
// because its boot is over (row 3 of the verdict table): then nothing of the task
// can live.
func rebooted(s Seen) bool {
	f := s.KeeperV
	if s.adopted() != nil {
		f = s.Command
	}
	return f.Verdict == identity.Gone && f.Row == "3"
}

func alive(kind sweep.Kind, k Keeper) Derived {
	switch {
	case k.Ready && kind == sweep.Job:
		return Derived{State: Up, Answers: true}
	case k.Ready:
		return Derived{State: Ready, Answers: true, Note: k.HookNote}
	case k.WasReady || k.DeadlineHit:
		return Derived{State: Unready, Note: k.ReadyNote}
	}
	return Derived{State: Up, Note: k.ReadyNote}
}

func startNote(k Keeper) string {
	if k.Hook == hookBefore {
		return "runs before"
	}
	if k.Restarts > 0 {
		return fmt.Sprintf("restart %d", k.Restarts)
	}
	return ""
}

// fromExit is the state of a task whose command has ended by itself.
func fromExit(s Seen) Derived {
	e := s.Exit
	switch {
	case e.Error != "":
		return Derived{State: Failed, Note: e.Error}
	case e.Signal != "":
		return Derived{State: Failed, Note: "ended by " + e.Signal}
	case e.Code == nil:
		return Derived{State: Failed, Note: "ended, and its exit code is not known"}
	case *e.Code != 0:
		return Derived{State: Failed, Note: fmt.Sprintf("exit code %d", *e.Code)}
	case s.Task.Kind == sweep.Job:
		return Derived{State: Completed}
	}
	return Derived{State: Exited}
}

// Lives reports whether something of a task in this state may still run by its
// keeper: such a task is left alone by `up`.
func (s State) Lives() bool {
	switch s {
	case Starting, Up, Ready, Unready, Stopping:
		return true
	}
	return false
}

// Settled reports whether a task in this state has ended, with nothing of it
// left and nothing unknown about it.
func (s State) Settled() bool {
	switch s {
	case Stopped, Exited, Completed, Failed:
		return true
	}
	return false
}
