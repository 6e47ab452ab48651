package sweep

import (
	"errors"
	"slices"

	"hob/identity"
)

// ended reports whether a fate is final: the process has ended.
func ended(f Fate) bool {
	return slices.Contains([]Fate{Exited, Terminated, Killed, ForeignFate}, f)
}

// fateOf decides what became of a member from the last look at it, the signals
// it was sent and whether it is left alone.
func fateOf(f identity.Finding, sent []Sent, sp spare) Fate {
	switch f.Verdict {
	case identity.Foreign:
		return ForeignFate
	case identity.Gone:
		return endOf(sent)
	case identity.Owned:
		if sp.why != "" && !sp.counts {
			return Spared
		}
		return Survived
	}
	return Unverifiable
}

// endOf is how a process that has ended came to it. CONT ends nothing.
func endOf(sent []Sent) Fate {
	fate := Exited
	for _, s := range sent {
		switch s.Signal {
		case "CONT":
		case "KILL":
			return Killed
		default:
			fate = Terminated
		}
	}
	return fate
}

// verdictOf sums a report up. Survivors outrank what could not be verified: they
// are known to be there.
func verdictOf(members []ReportMember, inspection string, blind bool) Verdict {
	has := func(f Fate) bool {
		return slices.ContainsFunc(members, func(m ReportMember) bool { return m.Fate == f })
	}
	switch {
	case has(Survived):
		return Survivors
	case has(Unverifiable), blind, inspection == inspectedNone:
		return Unverified
	}
	return Clean
}

// Errors of this package, to be matched with errors.Is.
var (
	// ErrNotSaved: the capture could not be written; the stop went on from memory.
	ErrNotSaved = errors.New("the capture could not be saved")
	// ErrRefused: a process that was named by its id is not the one it is taken for.
	ErrRefused = errors.New("refused")
)
