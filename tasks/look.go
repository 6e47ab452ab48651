package tasks

import (
	"errors"
	"fmt"

	"hob/identity"
	"hob/sweep"
)

// look reads a task's records and verifies the processes that they name. Where
// the keeper turns out to be gone they are read once more: what it wrote last it
// wrote before it ended, and after the first reading perhaps. So it is with the
// command of an adopted task, and what was written before that was ended.
func (m *Manager) look(t *TaskDir) Seen {
	s := m.lookOnce(t)
	if s.Task == nil || s.Task.State.Settled() {
		return s
	}
	if s.Keeper != nil && s.KeeperV.Verdict != identity.Owned || s.adopted() != nil && s.Command.Verdict != identity.Owned {
		return m.lookOnce(t)
	}
	return s
}

// lookHeld is look for the holder of the task's op.lock: that somebody holds it
// says nothing then.
func (m *Manager) lookHeld(t *TaskDir) Seen {
	s := m.look(t)
	s.Busy = false
	return s
}

func (m *Manager) lookOnce(t *TaskDir) (s Seen) {
	defer func() {
		s.Trouble = errors.Join(s.Trouble, m.missing(t, s), m.bootGoesOn(t, s))
		m.excuse(t, &s)
	}()
	task, err := t.ReadTask()
	if err != nil {
		s.Trouble = trouble(err)
		return s
	}
	s.Task = &task
	s.Keeper = readFor(&s, t.ReadKeeper, func(k *Keeper) string { return k.Nonce })
	s.Exit = readFor(&s, t.ReadExit, func(e *Exit) string { return e.Nonce })
	if k := s.Keeper; k != nil {
		s.KeeperV = m.finding(&k.Keeper)
		s.Command = m.finding(k.Command)
		s.Trouble = errors.Join(s.Trouble, newerKeeper(t, *k, s.KeeperV))
	}
	if a := task.Adopted; a != nil {
		s.Command = m.finding(&a.Command)
	}
	switch task.State {
	case Starting, Stopping:
		var over bool
		if s.Busy, over = m.busy(t, &s); over {
			return m.lookOnce(t)
		}
	case Survivors, Unverified:
		s.Left = m.left(&s, t)
	}
	if s.orphaned() {
		s.Left = m.left(&s, t)
	}
	return s
}

// missing is a record that was removed while the task's keeper lives: without it the
// task would seem to have ended, or never to have been started. The keeper is looked
// for by what it was told. A task that is being started has none of these yet.
func (m *Manager) missing(t *TaskDir, s Seen) error {
	name := "keeper.json"
	switch {
	case s.Trouble != nil:
		return nil
	case s.Task == nil:
		name = "task.json"
		if _, err := t.ReadSpec(); err != nil && trouble(err) == nil {
			return nil // never started
		}
	case s.Keeper != nil, s.Task.State.Settled(), s.Task.State == Starting, s.Task.Adopted != nil:
		return nil
	}
	pid, err := m.keeperByArgs(t)
	switch {
	case err != nil:
		return fmt.Errorf("%s is not there, and its keeper could not be looked for: %w", t.file(name), err)
	case pid > 0:
		// It may be the keeper of a start that was made since task.json was read.
		if now, err := t.ReadTask(); err == nil && (s.Task == nil || now.Nonce != s.Task.Nonce || now.State != s.Task.State) {
			return nil
		}
		return &RecordError{Path: t.file(name), Kind: Missing, Err: fmt.Errorf("its keeper, pid %d, lives", pid)}
	}
	return nil
}

// newerKeeper refuses a task that a keeper sees to which follows rules that this
// hob does not know.
func newerKeeper(t *TaskDir, k Keeper, f identity.Finding) error {
	if k.Protocol <= KeeperProtocol || f.Verdict == identity.Gone || f.Verdict == identity.Foreign {
		return nil
	}
	return &RecordError{Path: t.file("keeper.json"), Kind: Newer,
		Err: fmt.Errorf("it is of hob %s, protocol %d, and this hob knows %d: use that one, or a newer one", k.Version, k.Protocol, KeeperProtocol)}
}

// startedElsewhere refuses a task that belongs to another host, boot or pid
// namespace, as far as can be told from here (rows 3 and 4 of the verdict table).
// Nothing of it could be ended, and what was written about it would be wrong where
// it lives.
func (s Seen) startedElsewhere(n Name) error {
	f := s.KeeperV
	if s.adopted() != nil {
		f = s.Command
	}
	if f.Verdict != identity.Unverifiable || f.Row != "3" && f.Row != "4" {
		return nil
	}
	return unverified("where it was started hob can stop it; hob rm --forget "+n.Run+" gives the record up", "its keeper cannot be verified: %s", f.Reason)
}

// trouble is nil when the record was merely never written.
func trouble(err error) error {
	if errors.Is(err, ErrNoRecord) {
		return nil
	}
	return err
}

// readFor reads a record of the keeper and drops it when it is of another start.
func readFor[T any](s *Seen, read func() (T, error), nonce func(*T) string) *T {
	v, err := read()
	if err != nil {
		s.Trouble = errors.Join(s.Trouble, trouble(err))
		return nil
	}
	if nonce(&v) != s.Task.Nonce {
		return nil
	}
	return &v
}

func (m *Manager) finding(ref *identity.Ref) identity.Finding {
	if ref == nil {
		return identity.Finding{}
	}
	h, f := m.Host.Verify(*ref)
	if h != nil {
		_ = h.Close()
	}
	return f
}

// busy reports whether somebody holds the task's op.lock. It is asked only when
// the processes cannot answer, since the try itself takes the lock for a moment.
// A lock that cannot be asked for is trouble, not an answer. Who was at work may have
// written how that came out, and let go, since task.json was read: it is over, not cut.
func (m *Manager) busy(t *TaskDir, s *Seen) (busy, over bool) {
	if s.KeeperV.Verdict == identity.Owned || s.Command.Verdict == identity.Owned {
		return false, false
	}
	unlock, ok, err := t.TryLock()
	if ok {
		now, readErr := t.ReadTask()
		over = readErr == nil && (now.Nonce != s.Task.Nonce || now.State != s.Task.State)
		unlock()
	}
	s.Trouble = errors.Join(s.Trouble, trouble(err))
	return err == nil && !ok, over
}

// left verifies the members of the capture that the last report did not see end.
func (m *Manager) left(s *Seen, t *TaskDir) Left {
	var l Left
	c, err := t.ReadCapture()
	if err != nil {
		s.Trouble = errors.Join(s.Trouble, trouble(err))
		return l
	}
	for _, member := range c.Members {
		if member.Fate != sweep.Survived && member.Fate != sweep.Unverifiable && member.Fate != "" {
			continue
		}
		switch m.finding(&member.Ref).Verdict {
		case identity.Owned:
			l.Owned++
		case identity.Unverifiable:
			l.Unknown++
		default:
			l.Ended++
		}
	}
	return l
}
