package tasks

import "hob/sweep"

// lockState is how the keeper stands to op.lock.
type lockState int

const (
	lockFree    lockState = iota // not asked for
	lockAsked                    // waited for
	lockRefused                  // tried, and somebody has it
	lockHeld
)

// sight is all that the keeper decides over.
type sight struct {
	kind      sweep.Kind
	unstarted bool   // the command could not be started
	ended     bool   // the command has ended
	empty     bool   // wait has said ECHILD
	graceOver bool   // what the command left behind has had its time
	spared    bool   // all that lives is left alone on purpose
	want      string // reason of a stop that the keeper is to run
	stopping  bool   // a stop of the keeper's own is under way
	pending   bool   // the command is not started yet, since before comes first
	prepared  bool   // and before has ended well
	after     bool   // after_stop is to be run when the task is over
	hooking   bool   // it is under way
	leftover  bool   // it has been run: what lives now it has left
	stopped   bool   // one has run from the first step
	reported  bool   // one has run since the command ended
	restart   bool   // the policy says to start it again
	due       bool   // the pause before that is over, and the port is free
	lock      lockState
	afterOnly bool // the after_stop alone is run, for somebody who waits
	gaveUp    bool // the lock was waited for long enough
	theirs    bool // another hob has begun a stop
	settled   bool // another hob has finished one
}

// move is what the keeper does next.
type move string

const (
	doNothing  move = "rest"
	doAskLock  move = "ask for the lock"
	doTryLock  move = "try the lock"
	doLetGo    move = "give the lock back"
	doStopAll  move = "stop from the first step"
	doStopLeft move = "stop what the command left behind"
	doRestart  move = "start again"
	doStart    move = "start after before"
	doAfter    move = "run after_stop"
	doQuit     move = "end"
)

// decide says what a keeper does next: it sees its task to the end, and leaves a
// stop that another hob has begun to that hob, unless that was killed.
func decide(s sight) move {
	switch {
	case s.stopping, s.hooking:
		return doNothing
	case s.unstarted && s.empty:
		return decideOver(s)
	case s.pending:
		return decidePending(s)
	case s.ended && s.empty:
		return decideEmpty(s)
	}
	return decideLiving(s)
}

// decideEmpty: nothing of the tree is left.
func decideEmpty(s sight) move {
	switch {
	case s.settled:
		return doQuit
	case s.stopped:
		return decideOver(s)
	case s.theirs:
		return decideTheirsEmpty(s)
	case !s.reported:
		return locked(s, doStopLeft, s.gaveUp)
	case s.want != "" || !s.restart:
		return decideOver(s)
	case s.due:
		return locked(s, doRestart, false)
	}
	return idle(s)
}

// decideTheirsEmpty: whoever stops the task waits for this keeper to end, and
// writes the rest; unless it was killed, and has let the lock go.
func decideTheirsEmpty(s sight) move {
	switch s.lock {
	case lockHeld:
		return doStopAll
	case lockFree:
		return doTryLock
	}
	return doQuit
}

// decideLiving: something of the tree lives.
func decideLiving(s sight) move {
	switch {
	case s.leftover && !s.reported:
		return locked(s, doStopLeft, false)
	case s.stopped, s.settled, s.reported && s.want == "" && !s.theirs:
		return decideSpared(s)
	case s.want != "", s.theirs:
		return locked(s, doStopAll, false)
	case s.ended && s.graceOver:
		return locked(s, doStopLeft, false)
	}
	return idle(s)
}

// decideSpared: a stop is over, and something lives.
func decideSpared(s sight) move {
	switch {
	case s.afterOnly && s.reported:
		return doQuit // somebody waits for it, and has what the report says
	case s.spared && s.settled:
		return doQuit
	case s.spared:
		return decideOver(s)
	}
	return idle(s)
}

// decideOver: nothing is left to be done for the task but what comes after it;
// whoever else stops it sees to that.
func decideOver(s sight) move {
	if s.after && !s.theirs && !s.settled {
		return locked(s, doAfter, s.gaveUp)
	}
	return doQuit
}

// decidePending: before runs, or has just ended well.
func decidePending(s sight) move {
	switch {
	case s.stopped || s.settled:
		if s.empty {
			return doQuit
		}
		return decideSpared(s)
	case s.theirs && s.empty:
		return decideTheirsEmpty(s)
	case s.want != "" || s.theirs:
		return locked(s, doStopAll, false)
	case s.prepared:
		return locked(s, doStart, false)
	}
	return idle(s)
}

// locked is m under the lock; without it, when it was waited for in vain, the end.
func locked(s sight, m move, gaveUp bool) move {
	switch {
	case s.lock == lockHeld:
		return m
	case gaveUp:
		return doQuit
	case s.lock == lockAsked:
		return doNothing
	}
	return doAskLock
}

func idle(s sight) move {
	if s.lock == lockHeld {
		return doLetGo
	}
	return doNothing
}
