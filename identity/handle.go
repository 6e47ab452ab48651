package identity

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// errClosed is what a Handle answers after Close.
var errClosed = fmt.Errorf("%w: the handle is closed", ErrUnverifiable)

// pinned is a Handle on a pidfd (or on a Windows process handle). The kernel
// never reuses what it stands for, so identity was settled when it was made.
type pinned struct {
	v    *verifier
	ref  Ref
	rows rowReader

	mu     sync.Mutex
	fd     int
	uses   int // calls under way; the descriptor is closed after the last
	closed bool
}

func newPinned(v *verifier, fd int, ref Ref) *pinned {
	return &pinned{v: v, ref: ref, fd: fd, rows: v.reader(ref.PID)}
}

// rowReader reads one process, by its number or by what it holds open of it. What
// it says holds only if the process has not been reaped afterwards.
type rowReader interface {
	row(want Field) (Process, error)
	// listChildren errors with ErrUnsupported where a Host has to be asked.
	listChildren() ([]int, error)
	close()
}

// holder is a pinner that can hold open what its rows are read from.
type holder interface{ hold(pid int) rowReader }

func (v *verifier) reader(pid int) rowReader {
	if h, ok := v.sys.(holder); ok {
		return h.hold(pid)
	}
	return byNumber{v.sys, pid}
}

// byNumber reads a process by its number alone.
type byNumber struct {
	sys pinner
	pid int
}

func (r byNumber) row(want Field) (Process, error) { return r.sys.row(r.pid, want) }
func (r byNumber) listChildren() ([]int, error)    { return nil, ErrUnsupported }
func (r byNumber) close()                          {}

// use keeps the descriptor open during a call. A closed descriptor's number may
// be another process's pidfd already, so Close waits for the calls under way.
func (p *pinned) use() (fd int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return -1, false
	}
	p.uses++
	return p.fd, true
}

func (p *pinned) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uses--
	p.closeUnused()
}

func (p *pinned) closeUnused() {
	if p.closed && p.uses == 0 && p.fd >= 0 {
		p.v.sys.unpin(p.fd)
		p.rows.close()
		p.fd = -1
	}
}

// Ref is what to write down about the process.
func (p *pinned) Ref() Ref { return p.ref }

// Verify looks again, through the pin.
func (p *pinned) Verify() Finding {
	fd, ok := p.use()
	if !ok {
		return unverifiable("7", "the handle of pid %d is closed", p.ref.PID)
	}
	defer p.done()
	return p.v.alive(fd, p.ref.PID)
}

// Lives is Verify without the name of who does not reap a corpse.
func (p *pinned) Lives() Finding {
	fd, ok := p.use()
	if !ok {
		return unverifiable("7", "the handle of pid %d is closed", p.ref.PID)
	}
	defer p.done()
	return p.v.lives(fd, p.ref.PID)
}

// Read reads the row by its number and checks afterwards that the pin is not
// reaped: until then the number was this process's.
func (p *pinned) Read(want Field) (Process, error) {
	fd, ok := p.use()
	if !ok {
		return Process{}, fmt.Errorf("read pid %d: %w", p.ref.PID, errClosed)
	}
	defer p.done()
	row, err := p.rows.row(want &^ WantPidfs)
	if err = p.unreaped(fd, err); err != nil {
		return Process{}, fmt.Errorf("read pid %d: %w", p.ref.PID, err)
	}
	return p.withID(row, want, fd), nil
}

// Children lists the children as [Host.Children] does, and checks as Read does.
func (p *pinned) Children() ([]int, error) {
	fd, ok := p.use()
	if !ok {
		return nil, fmt.Errorf("children of pid %d: %w", p.ref.PID, errClosed)
	}
	defer p.done()
	pids, err := p.rows.listChildren()
	if errors.Is(err, ErrUnsupported) {
		return nil, err
	}
	if err = p.unreaped(fd, err); err != nil {
		return nil, fmt.Errorf("children of pid %d: %w", p.ref.PID, err)
	}
	return pids, nil
}

// unreaped judges what was read by number: while the pin was not reaped after
// that, it is this process's. err is the reader's.
func (p *pinned) unreaped(fd int, err error) error {
	state, endErr := p.v.sys.ended(fd)
	switch {
	case endErr != nil:
		return fmt.Errorf("%w: %w", ErrUnverifiable, endErr)
	case state == reaped:
		return ErrGone
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnverifiable, hidden(err))
	}
	return nil
}

func (p *pinned) withID(row Process, want Field, fd int) Process {
	if want&WantPidfs == 0 {
		return row
	}
	id, err := p.v.sys.id(fd)
	if err != nil || id == nil {
		row.Missing |= WantPidfs
	}
	row.PIDFS = id
	return row
}

// Signal verifies, then signals through the pin. It never falls back to the
// bare number.
func (p *pinned) Signal(sig syscall.Signal) error {
	fd, ok := p.use()
	if !ok {
		return fmt.Errorf("signal pid %d: %w", p.ref.PID, errClosed)
	}
	defer p.done()
	if f := p.v.alive(fd, p.ref.PID); f.Verdict != Owned {
		return fmt.Errorf("signal pid %d: %w", p.ref.PID, f.Err())
	}
	return signalError(p.ref, p.v.sys.signal(fd, sig))
}

// signalError words what the kernel said to a signal (row 13 for EPERM).
func signalError(ref Ref, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ESRCH), errors.Is(err, os.ErrProcessDone):
		return fmt.Errorf("signal pid %d: %w", ref.PID, ErrGone)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("signal pid %d (uid %s): %w", ref.PID, uidName(ref.UID), ErrNotPermitted)
	}
	return fmt.Errorf("signal pid %d: %w", ref.PID, err)
}

func uidName(uid *int) string {
	if uid == nil {
		return "unknown"
	}
	return fmt.Sprint(*uid)
}

// Close gives the pin back, after the calls that are under way.
func (p *pinned) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.closeUnused()
	return nil
}
