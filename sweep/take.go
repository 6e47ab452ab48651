package sweep

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"hob/identity"
)

// Take names one process by its exact id, as a report lists it: a person who
// has looked at a look-alike says that it is to be ended.
type Take struct {
	PID   int
	Start identity.Token
}

// ParseTake reads PID:START ("4121:linux:88125").
func ParseTake(s string) (Take, error) {
	pid, start, ok := strings.Cut(s, ":")
	n, err := strconv.Atoi(pid)
	if !ok || err != nil || n < 1 || start == "" {
		return Take{}, fmt.Errorf("%q is not PID:START, as reports list it (4121:linux:88125)", s)
	}
	return Take{PID: n, Start: identity.Token(start)}, nil
}

// String is the form that ParseTake reads.
func (t Take) String() string { return fmt.Sprintf("%d:%s", t.PID, t.Start) }

// promote makes members of look-alikes that a person named. Each must be a
// look-alike of this task now, and the process that was listed; it is pinned
// here, and verified again at each signal. What is below it is then a child of a
// verified process like any other. All are promoted or none is.
func (s *stopper) promote(ctx context.Context) error {
	if len(s.o.Take) == 0 {
		return nil
	}
	host := s.scan(ctx)
	for _, t := range s.o.Take {
		like, ok := listed(host.lookalikes, t)
		if !ok {
			return s.unlisted(t)
		}
		if err := s.take(t, like); err != nil {
			return err
		}
	}
	s.rounds() // what is below them
	return nil
}

func listed(likes []Lookalike, t Take) (Lookalike, bool) {
	for _, l := range likes {
		if l.PID == t.PID && l.Start == t.Start {
			return l, true
		}
	}
	return Lookalike{}, false
}

// unlisted says why a process is no look-alike (any more).
func (s *stopper) unlisted(t Take) error {
	pin, err := s.tr.h.Open(t.PID)
	if errors.Is(err, identity.ErrGone) {
		return fmt.Errorf("take %s: %w", t, err)
	}
	if err == nil {
		defer pin.Close()
		if start := pin.Ref().Start; start != t.Start {
			return fmt.Errorf("%w: pid %d is another process now (%s, not %s)", ErrRefused, t.PID, start, t.Start)
		}
	}
	name := s.tr.t.Run + "/" + s.tr.t.Task
	return fmt.Errorf("%w: %s does not look like %s now; `hob sweep %s` lists what does", ErrRefused, t, name, name)
}

// take pins a look-alike and makes a member of it.
func (s *stopper) take(t Take, like Lookalike) error {
	switch {
	case like.Keeper != nil:
		return fmt.Errorf("%w: %s is of %s/%s, which is up; `%s` ends it", ErrRefused, t, like.Keeper.Run, like.Keeper.Task, like.Keeper.Down())
	case like.vague:
		return fmt.Errorf("%w: whether %s is of another task that is up could not be told: a process above it cannot be read", ErrRefused, t)
	}
	pin, row, err := s.tr.pinLiving(t.PID)
	if err != nil {
		return fmt.Errorf("%w: %s has ended, or cannot be read any more", ErrRefused, t)
	}
	if pin.Ref().Start != t.Start {
		_ = pin.Close()
		return fmt.Errorf("%w: %s has ended, and its number is another process's now", ErrRefused, t)
	}
	n := s.tr.take(pin, row, nil, append(hints(like.Why), Taken))
	if sp := s.tr.spareOf(n); sp.why != "" {
		return fmt.Errorf("%w: %s is left alone whoever asks: %s", ErrRefused, t, sp.why)
	}
	return nil
}

// hints are the evidence behind a look-alike's Why. None of it permits a signal.
func hints(why []string) []Evidence {
	var out []Evidence
	for _, w := range why {
		kind, _, _ := strings.Cut(w, " ")
		if e := Evidence(kind); e.Grade() == 'D' {
			out = append(out, e)
		}
	}
	return out
}
