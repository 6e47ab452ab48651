package tasks

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of the manager, to be matched with errors.Is.
var (
	ErrUsage       = errors.New("wrong usage")
	ErrRefused     = errors.New("refused: lives, and is not proven to be ours")
	ErrUnverified  = errors.New("could not be verified")
	ErrSurvivors   = errors.New("survivors remain")
	ErrInterrupted = errors.New("interrupted")
)

// Problem is an error with advice, and with the kind (one of the errors above)
// that decides the exit code; Kind nil is a plain failure.
type Problem struct {
	Kind error
	Msg  string
	Tip  string
	Err  error
}

func (p *Problem) Error() string {
	if p.Err != nil && p.Msg != "" {
		return p.Msg + ": " + p.Err.Error()
	}
	if p.Err != nil {
		return p.Err.Error()
	}
	return p.Msg
}

// Hint is what the person can do about it; "" when there is nothing to say.
func (p *Problem) Hint() string { return p.Tip }

// Unwrap gives errors.Is both the kind and the cause.
func (p *Problem) Unwrap() []error {
	var errs []error
	for _, e := range []error{p.Kind, p.Err} {
		if e != nil {
			errs = append(errs, e)
		}
	}
	return errs
}

// usage is a wrong use of the command line.
func usage(tip, format string, args ...any) error {
	return &Problem{Kind: ErrUsage, Msg: fmt.Sprintf(format, args...), Tip: tip}
}

// refused is an act that hob does not do because what lives there is not proven ours.
func refused(tip, format string, args ...any) error {
	return &Problem{Kind: ErrRefused, Msg: fmt.Sprintf(format, args...), Tip: tip}
}

// unverified is something that could not be told.
func unverified(tip, format string, args ...any) error {
	return &Problem{Kind: ErrUnverified, Msg: fmt.Sprintf(format, args...), Tip: tip}
}

// advice is what an error says that a person can do; where it says nothing, otherwise.
func advice(err error, otherwise string) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) && h.Hint() != "" {
		return h.Hint()
	}
	return otherwise
}

// quoted lists names for people: "a", "b" and "c".
func quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	if len(q) < 2 {
		return strings.Join(q, "")
	}
	return strings.Join(q[:len(q)-1], ", ") + " and " + q[len(q)-1]
}

// untrusted says what a person can do about a task of which a record cannot be
// trusted. It is left as it is; its keeper, where that is known and lives, can stop
// it without the record.
func (m *Manager) untrusted(run string, t *TaskDir, err error) error {
	var rec *RecordError
	if !errors.As(err, &rec) {
		return err
	}
	tip := rec.Hint()
	pid, _ := m.livingKeeper(t) // one that could not be looked for is not named
	if pid > 0 && rec.Kind == Unusable {
		tip += fmt.Sprintf("; or kill -TERM %d, its keeper, which then stops the task", pid)
	} else if pid > 0 && rec.Kind != Newer {
		tip = fmt.Sprintf("put the file right, or back, from a copy; or kill -TERM %d, its keeper, which then stops the task, and hob rm --forget %s", pid, run)
	}
	return &Problem{Kind: ErrUnverified, Err: err, Tip: tip}
}
