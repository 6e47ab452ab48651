package tasks

import (
	"fmt"
	"time"

	"hob/recipes"
)

// Bounds of the restart policy.
const (
	maxBackoff = time.Minute
	longLife   = time.Minute // a command that lived longer (and ten backoffs) begins a new count
)

// restartPlan is whether a command that has ended is started again, and when.
type restartPlan struct {
	again bool
	pause time.Duration
	fails int    // ends in a row, this one included
	why   string // for people
}

// planRestart decides it from how the command ended, how long it lived, and how
// often in a row it has ended before.
func planRestart(r Restart, e Exit, fails int, lived time.Duration) restartPlan {
	limit, backoff := r.Max, r.Backoff
	if limit <= 0 {
		limit = recipes.RestartMax // a crash loop has an end
	}
	if backoff <= 0 {
		backoff = recipes.RestartWait
	}
	if lived >= longLife && lived >= 10*backoff {
		fails = 0
	}
	p := restartPlan{fails: fails + 1}
	switch {
	case e.Error != "":
		p.why = "it could not be started"
	case r.Policy == "always", r.Policy == "on-failure" && !succeeded(e):
		if p.again = p.fails <= limit; !p.again {
			p.why = fmt.Sprintf("it ended %d times in a row", p.fails)
			return p
		}
		p.pause = max(backoff, min(backoff<<min(p.fails-1, 10), maxBackoff))
		p.why = fmt.Sprintf("restart %d of %d in %s", p.fails, limit, p.pause)
	}
	return p
}

func succeeded(e Exit) bool { return e.Error == "" && e.Code != nil && *e.Code == 0 }

// outcome is how a command ended, for people.
func (e Exit) outcome() string {
	switch {
	case e.Error != "":
		return "could not be started: " + e.Error
	case e.Signal != "":
		return "ended by " + e.Signal
	case e.Code == nil:
		return "ended, nobody knows how"
	}
	return fmt.Sprintf("exit code %d", *e.Code)
}
