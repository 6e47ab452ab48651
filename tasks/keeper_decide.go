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
	stopped   bool   // one has run from the first step
	reported  bool   // one has run since the command ended
	restart   bool   // the policy says to start it again
	due       bool   // the pause before that is over, and the port is free
	lock      lockState
	gaveUp    bool // the lock was waited for long enough
	theirs    bool // another hob has begun a stop
	settled   bool // another hob has finished one
}

// move is what the keeper does next.
type move string

const (
	rest     move = "rest"
	askLock  move = "ask for the lock"
	tryIt    move = "try the lock"
	letGo    move = "give the lock back"
	stopAll  move = "stop from the first step"
	stopLeft move = "stop what the command left behind"
	again    move = "start again"
	quit     move = "end"
)

// decide is the keeper's part of design 4.7, 4.8 and 6.1.
func decide(s sight) move {
	switch {
	case s.stopping:
		return rest
	case s.unstarted && s.empty:
		return quit
	case s.ended && s.empty:
		return decideEmpty(s)
	}
	return decideLiving(s)
}

// decideEmpty: nothing of the tree is left.
func decideEmpty(s sight) move {
	switch {
	case s.stopped, s.settled:
		return quit
	case s.theirs:
		return decideTheirsEmpty(s)
	case !s.reported:
		return locked(s, stopLeft, s.gaveUp)
	case s.want != "" || !s.restart:
		return quit
	case s.due:
		return locked(s, again, false)
	}
	return idle(s)
}

// decideTheirsEmpty: whoever stops the task waits for this keeper to end, and
// writes the rest; unless it was killed, and has let the lock go.
func decideTheirsEmpty(s sight) move {
	switch s.lock {
	case lockHeld:
		return stopAll
	case lockFree:
		return tryIt
	}
	return quit
}

// decideLiving: something of the tree lives.
func decideLiving(s sight) move {
	switch {
	case s.stopped, s.settled, s.reported && s.want == "" && !s.theirs:
		if s.spared {
			return quit
		}
		return idle(s)
	case s.want != "", s.theirs:
		return locked(s, stopAll, false)
	case s.ended && s.graceOver:
		return locked(s, stopLeft, false)
	}
	return idle(s)
}

// locked is m under the lock; without it, when it was waited for in vain, the end.
func locked(s sight, m move, gaveUp bool) move {
	switch {
	case s.lock == lockHeld:
		return m
	case gaveUp:
		return quit
	case s.lock == lockAsked:
		return rest
	}
	return askLock
}

func idle(s sight) move {
	if s.lock == lockHeld {
		return letGo
	}
	return rest
}
