package tasks

import (
	"errors"

	"hob/identity"
)

// Some records are needed by no look, and by the next stop. One of a living task that
// cannot be trusted changes nothing of what the task is, and is named while there is
// still somebody who may have a copy, not only when the task is to be stopped.

// amiss names those of a task that lives.
func (m *Manager) amiss(t *TaskDir, s Seen) error {
	if s.Trouble != nil || !s.lives() {
		return nil // it is said already, or whoever acts next does what is to be done
	}
	var errs []error
	for _, err := range flat(unreadable(t), m.specMissing(t, s), noLockFile(t.file("op.lock"), nil)) {
		errs = append(errs, kept(m.untrusted(t.Run, t, err)))
	}
	return errors.Join(errs...)
}

// amissAtAGlance is amiss for who looks at all tasks there are, and often: of what each
// living task has, a record is read only where it does not end as one does that was
// written whole.
func (m *Manager) amissAtAGlance(t *TaskDir, s Seen) error {
	if s.Trouble != nil || !s.lives() {
		return nil
	}
	if has, whole := endsWhole(t.SpecPath()); has && whole && noLockFile(t.file("op.lock"), nil) == nil {
		if _, whole := endsWhole(t.file("capture.json")); whole {
			return nil
		}
	}
	return m.amiss(t, s)
}

// Amiss are the records of the state folder itself, of no run, that cannot be trusted.
// They are kept, and every verb goes on without what they would say.
func (s *Store) Amiss() error {
	_, serverErr := s.ReadServer()
	var errs []error
	for _, err := range flat(trouble(serverErr), s.ReadLeft(func(LeftCgroup) bool { return false })) {
		errs = append(errs, kept(asUnverified(err)))
	}
	return errors.Join(errs...)
}

// asUnverified is a record that cannot be trusted as a Problem, with its own hint.
func asUnverified(err error) error {
	return &Problem{Kind: ErrUnverified, Err: err, Tip: advice(err, "")}
}

// specMissing is the trouble that a task lives and has no spec.json: it alone says how
// the task is to be stopped.
func (m *Manager) specMissing(t *TaskDir, s Seen) error {
	if _, err := t.ReadSpec(); !errors.Is(err, ErrNoRecord) || !s.lives() {
		return nil
	}
	// The whole run may have been moved into the archive since the task was seen living.
	if now, err := t.ReadTask(); err != nil || now.Nonce != s.Task.Nonce || now.State.Settled() {
		return nil //nolint:nilerr // that is another look's to say
	}
	return &RecordError{Path: t.SpecPath(), Kind: Missing, Err: errors.New("the task lives, and that file alone says how it is to be stopped")}
}

// kept says of a record that cannot be trusted that nothing was done to it.
func kept(err error) error {
	if p, ok := errors.AsType[*Problem](err); ok && !isMissing(err) {
		p.Msg = "kept as it is"
	}
	return err
}

func isMissing(err error) bool {
	record, ok := errors.AsType[*RecordError](err)
	return ok && record.Kind == Missing
}

// flat are errors that may have been joined, one by one.
func flat(errs ...error) []error {
	var all []error
	for _, err := range errs {
		joined, ok := err.(interface{ Unwrap() []error })
		if _, advises := err.(interface{ Hint() string }); ok && !advises {
			all = append(all, flat(joined.Unwrap()...)...)
		} else if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// lives reports whether something of the task runs that its records name.
func (s Seen) lives() bool {
	return s.Task != nil && !s.Task.State.Settled() && (s.KeeperV.Verdict == identity.Owned || s.Command.Verdict == identity.Owned)
}
