package identity

import (
	"syscall"
	"time"
)

// Kernel is what a decision about a single process is made from: the system
// calls and the row of one process, by number or through a pin. The real ones
// are behind [Local]; identity/sim has a simulated one, so that the decisions
// which it tests are the real ones.
type Kernel interface {
	// Pin is pidfd_open(2), with its errnos; ENOSYS means that no pin can be had.
	Pin(pid int) (fd int, err error)
	Unpin(fd int)
	// ID is the pidfd's inode where it identifies the process, else nil.
	ID(fd int) (*uint64, error)
	// Ended is poll(2) on a pidfd: every thread has exited; and it was reaped.
	Ended(fd int) (exited, gone bool, err error)
	SignalPinned(fd int, sig syscall.Signal) error
	// Row reads a process by its number.
	Row(pid int, want Field) (Process, error)
	// TGID is the process that the number, which may be a thread's, belongs to.
	TGID(pid int) (int, error)
	// UID is the real uid of the pinned process, -1 when unknown.
	UID(fd, pid int) int
	// LeaderRow reads a process that cannot be pinned. It errors with ErrGone
	// when no process has the number (a thread's is nobody's), and with
	// ErrUnverifiable when it could not look.
	LeaderRow(pid int, want Field) (Process, error)
	// Kill is kill(2).
	Kill(pid int, sig syscall.Signal) error
}

// Decider makes hob's decisions about single processes over any Kernel: the
// verdict table, pinned where a pin can be had and unpinned where not.
type Decider struct{ v verifier }

// NewDecider makes a Decider for a caller with these Facts.
func NewDecider(k Kernel, f Facts) Decider {
	sys := kernelSys{k}
	return Decider{verifier{sys: sys, facts: f, bare: bareWay{sys: sys, facts: f, row: "8"}}}
}

// Verify is what a Host's Verify is.
func (d Decider) Verify(ref Ref) (Handle, Finding) { return d.v.verify(ref) }

// Open is what a Host's Open is.
func (d Decider) Open(pid int, now time.Time) (Handle, error) { return d.v.open(pid, now) }

// OpenRead is what the function OpenRead does on a Host that can.
func (d Decider) OpenRead(pid int, want Field, now time.Time) (Handle, Process, Finding, error) {
	return d.v.openRead(pid, want, now)
}

// kernelSys is a Kernel as a pinner and a bareSys.
type kernelSys struct{ k Kernel }

func (s kernelSys) pin(pid int) (int, error)                    { return s.k.Pin(pid) }
func (s kernelSys) unpin(fd int)                                { s.k.Unpin(fd) }
func (s kernelSys) id(fd int) (*uint64, error)                  { return s.k.ID(fd) }
func (s kernelSys) signal(fd int, sig syscall.Signal) error     { return s.k.SignalPinned(fd, sig) }
func (s kernelSys) row(pid int, want Field) (Process, error)    { return s.k.Row(pid, want) }
func (s kernelSys) tgid(pid int) (int, error)                   { return s.k.TGID(pid) }
func (s kernelSys) pinnedUID(fd, pid int) int                   { return s.k.UID(fd, pid) }
func (s kernelSys) kill(pid int, sig syscall.Signal) error      { return s.k.Kill(pid, sig) }
func (s kernelSys) leaderRow(pid int, f Field) (Process, error) { return s.k.LeaderRow(pid, f) }

func (s kernelSys) ended(fd int) (life, error) {
	exited, gone, err := s.k.Ended(fd)
	switch {
	case err != nil || !exited:
		return living, err
	case gone:
		return reaped, nil
	}
	return zombie, nil
}
