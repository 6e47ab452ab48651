package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// pinner is the little that the pinned way needs from a kernel, so that a test
// can make it answer with any errno. Its real forms are in kernel_linux.go and
// local_windows.go.
type pinner interface {
	// pin is pidfd_open(2).
	pin(pid int) (fd int, err error)
	unpin(fd int)
	// id is the pidfd's inode where it identifies the process, else nil (an
	// older kernel gives all pidfds one inode).
	id(fd int) (*uint64, error)
	// ended reports whether the process has exited (poll), and if so
	// whether it has also been reaped.
	ended(fd int) (life, error)
	signal(fd int, sig syscall.Signal) error
	// row reads a process by its number.
	row(pid int, want Field) (Process, error)
	// tgid is the process that the number, which may be a thread's, belongs to.
	tgid(pid int) (int, error)
	// pinnedUID is the real uid of the pinned process, -1 when unknown.
	pinnedUID(fd, pid int) int
}

// life is what poll(2) on a pidfd tells.
type life int

const (
	living life = iota
	zombie      // exited, not reaped: the number is still taken
	reaped
)

// verifier decides by the verdict table (package documentation). It is the same on
// every system that has a pin.
type verifier struct {
	sys   pinner
	bare  bareWay // row 8
	facts Facts
}

// verify decides a Ref. The Handle is not nil exactly when it is Owned.
func (v *verifier) verify(ref Ref) (Handle, Finding) {
	if f, decided := admit(ref, v.facts); decided {
		return nil, f
	}
	h, f := v.look(ref)
	return settle(ref, v.facts, h, f)
}

// look pins the number (rows 5 to 8), then compares (9, 10), then asks whether
// what it pinned lives (11, 12).
func (v *verifier) look(ref Ref) (Handle, Finding) {
	fd, f := v.take(ref.PID)
	if f.Row == "8" {
		return v.bare.look(ref)
	}
	if f.Verdict != "" {
		return nil, f
	}
	if f = v.compare(fd, ref); f.Verdict == Owned {
		f = v.alive(fd, ref.PID)
	}
	if f.Verdict != Owned {
		v.sys.unpin(fd)
		return nil, f
	}
	return newPinned(v, fd, ref), f
}

// take is rows 5 to 8. A Finding without a verdict means that fd is a pin, row
// 8 that no pin can be had.
func (v *verifier) take(pid int) (fd int, f Finding) {
	for try := 1; ; try++ {
		fd, err := v.sys.pin(pid)
		switch {
		case err == nil:
			return fd, Finding{}
		case errors.Is(err, syscall.ESRCH):
			return -1, gone("5", "no process has pid %d", pid)
		case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.EINVAL):
			if f, again := v.notLeader(pid, try); !again {
				return -1, f
			}
		case noPin(err):
			return -1, Finding{Row: "8", Reason: fmt.Sprintf("pid %d cannot be pinned: %v", pid, err)}
		default:
			return -1, unverifiable("7", "pid %d cannot be pinned: %v", pid, err)
		}
	}
}

// noPin recognises a kernel without pidfd_open (ENOSYS, Linux < 5.3 and gVisor)
// and a seccomp filter that refuses it: pidfd_open itself never says EPERM.
func noPin(err error) bool {
	return errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EPERM)
}

// notLeader is row 6: the number is a thread's now, or dead and still pinned as a
// group or session id (ENOENT since Linux 6.18, EINVAL before). Either way the
// process is gone, unless the number turns out to lead a thread group: then the
// look was in the middle of an exec or of a reuse, and is made once more.
// kill(2) by this number would end whichever process the thread belongs to.
func (v *verifier) notLeader(pid, try int) (f Finding, again bool) {
	leader, err := v.sys.tgid(pid)
	switch {
	case try == 1 && (leader == pid || absent(err)):
		return f, true
	case err == nil && leader != pid:
		return gone("6", "pid %d is a thread of process %d now", pid, leader), false
	case absent(err):
		return gone("6", "no process has pid %d (the number is still pinned by a group or session)", pid), false
	case err == nil:
		return unverifiable("6", "pid %d cannot be pinned although it leads a process", pid), false
	}
	return unverifiable("6", "pid %d cannot be pinned, and cannot be read: %v", pid, err), false
}

// compare is rows 9 to 10a: is the pinned process the recorded one?
func (v *verifier) compare(fd int, ref Ref) Finding {
	if ref.PIDFS != nil {
		id, err := v.sys.id(fd)
		if err != nil {
			return unverifiable("7", "the pidfd of pid %d cannot be read: %v", ref.PID, err)
		}
		if id != nil {
			return same("9", *id == *ref.PIDFS, ref)
		}
	}
	if ref.Start == "" { // also a legacy record with a pid alone
		if ref.PIDFS == nil {
			return owned("10")
		}
		return unverifiable("10a", "pid %d was recorded by its pidfd inode alone, which this kernel does not show", ref.PID)
	}
	return v.compareStart(fd, ref)
}

func same(row string, equal bool, ref Ref) Finding {
	if equal {
		return owned(row)
	}
	return foreign(row, "pid %d belongs to another process now", ref.PID)
}

// compareStart is row 10: the start token read *after* the number was pinned,
// and the pin not yet reaped after the read, is the pinned process's.
func (v *verifier) compareStart(fd int, ref Ref) Finding {
	if !v.sameClock(ref) {
		return unverifiable("10a", "start tokens differ between time namespaces (recorded in %s, seen from %s)", nsName(ref.TimeNS), nsName(v.facts.TimeNS))
	}
	row, err := rowTwice(byNumber{v.sys, ref.PID}, 0)
	state, endErr := v.sys.ended(fd)
	switch {
	case endErr != nil:
		return unverifiable("7", "the pidfd of pid %d cannot be polled: %v", ref.PID, endErr)
	case state == reaped:
		return gone("12", "pid %d has ended", ref.PID)
	case resource(err):
		return unverifiable("7", "pid %d cannot be read: %v", ref.PID, err)
	case err != nil:
		return unverifiable("10a", "pid %d lives, but its row cannot be read: %v", ref.PID, hidden(err))
	}
	return same("10", row.Start == ref.Start, ref)
}

// sameClock reports whether start tokens of the record and of this caller count
// from the same instant: a time namespace shifts field 22 for those who read in
// it (time_namespaces(7)). A record that does not say is taken to be of the
// initial one.
func (v *verifier) sameClock(ref Ref) bool {
	if ref.TimeNS == "" && v.facts.TimeNS != "" {
		return sameNS(initTimeNS, v.facts.TimeNS)
	}
	return sameNS(ref.TimeNS, v.facts.TimeNS)
}

// rowTwice reads a row again when it was malformed: a stat line can be torn by
// an exec, but not twice.
func rowTwice(r rowReader, want Field) (Process, error) {
	p, err := r.row(want)
	if errors.Is(err, errMalformed) {
		p, err = r.row(want)
	}
	return p, err
}

// alive is rows 11 and 12, and of a corpse it names the parent.
func (v *verifier) alive(fd, pid int) Finding {
	f := v.lives(fd, pid)
	if !f.Zombie {
		return f
	}
	if row, err := v.sys.row(pid, 0); err == nil {
		if state, err := v.sys.ended(fd); err == nil && state == zombie { // still its row
			return corpse(pid, row.PPID)
		}
	}
	return f
}

// lives is rows 11 and 12. The state letter does not count: a leader that has
// exited shows Z while a thread of it lives, and poll knows.
func (v *verifier) lives(fd, pid int) Finding {
	state, err := v.sys.ended(fd)
	switch {
	case err != nil:
		return unverifiable("7", "the pidfd of pid %d cannot be polled: %v", pid, err)
	case state == living:
		return owned("11")
	case state == reaped:
		return gone("12", "pid %d has ended", pid)
	}
	f := gone("12", "pid %d has ended and is not reaped", pid)
	f.Zombie = true
	return f
}

// corpse is row 12 of one whose parent is known.
func corpse(pid, parent int) Finding {
	f := gone("12", "pid %d has ended; its parent, pid %d, has not reaped it", pid, parent)
	f.Zombie, f.ZombieOf = true, parent
	return f
}

// open pins whatever process has the number.
func (v *verifier) open(pid int, now time.Time) (Handle, error) {
	fd, bare, err := v.grab(pid)
	switch {
	case err != nil:
		return nil, err
	case bare:
		return v.bare.open(pid, now)
	}
	return v.adopt(pid, fd, now)
}

// grab pins a number; bare says that there is no pin to be had.
func (v *verifier) grab(pid int) (fd int, bare bool, err error) {
	if pid < 1 || pid > maxPID(v.facts.OS) {
		return -1, false, fmt.Errorf("open pid %d: %w: not a pid", pid, ErrUnverifiable)
	}
	fd, f := v.take(pid)
	if f.Verdict != "" {
		return -1, false, fmt.Errorf("open pid %d: %w", pid, f.Err())
	}
	return fd, f.Row == "8", nil
}

// adopt makes a Handle of a fresh pin, and takes it over.
func (v *verifier) adopt(pid, fd int, now time.Time) (Handle, error) {
	p := newPinned(v, fd, v.facts.newRef(pid, now))
	if _, err := v.describe(p, 0); err != nil {
		_ = p.Close()
		return nil, fmt.Errorf("open pid %d: %w", pid, err)
	}
	return p, nil
}

// openRead is open, a Read and a Verify in one: everything is read between the pin
// and one look at what was pinned, so it is of the process that this look is about.
func (v *verifier) openRead(pid int, want Field, now time.Time) (Handle, Process, Finding, error) {
	fd, bare, err := v.grab(pid)
	switch {
	case err != nil:
		return nil, Process{}, Finding{}, err
	case bare:
		h, err := v.bare.open(pid, now)
		return readOpened(h, want, err)
	}
	p := newPinned(v, fd, v.facts.newRef(pid, now))
	seen, err := v.describe(p, want&^WantPidfs)
	if err == nil && seen.rowErr != nil {
		err = fmt.Errorf("%w: %w", ErrUnverifiable, hidden(seen.rowErr))
	}
	if err != nil {
		_ = p.Close()
		return nil, Process{}, Finding{}, fmt.Errorf("open pid %d: %w", pid, err)
	}
	f := owned("11")
	if seen.state == zombie {
		f = corpse(pid, seen.row.PPID)
	}
	return p, p.withID(seen.row, want, fd), f, nil
}

// described is what completes a Ref.
type described struct {
	row    Process
	rowErr error
	state  life // living or zombie, looked at last
}

// describe completes the Ref of a pinned process. One of the two tokens is enough:
// under hidepid the inode can be read and the row cannot.
func (v *verifier) describe(p *pinned, want Field) (d described, err error) {
	id, err := v.sys.id(p.fd)
	if err != nil {
		return d, fmt.Errorf("%w: %w", ErrUnverifiable, err)
	}
	d.row, d.rowErr = rowTwice(p.rows, want)
	uid := v.sys.pinnedUID(p.fd, p.ref.PID)
	d.state, err = v.sys.ended(p.fd)
	switch {
	case err != nil:
		return d, fmt.Errorf("%w: %w", ErrUnverifiable, err)
	case d.state == reaped:
		return d, ErrGone
	case d.rowErr != nil && id == nil:
		return d, fmt.Errorf("%w: %w", ErrUnverifiable, hidden(d.rowErr))
	case d.rowErr == nil:
		p.ref.Start = d.row.Start
	}
	p.ref.PIDFS = id
	if uid >= 0 {
		p.ref.UID = &uid
	}
	return d, nil
}

// newRef is a Ref with all that is the host's.
func (f Facts) newRef(pid int, now time.Time) Ref {
	return Ref{
		Machine: f.Machine, Host: f.Host, Boot: f.Boot, PIDNS: f.PIDNS, TimeNS: f.TimeNS,
		PID: pid, RecordedAt: now.Round(0).UTC().Truncate(time.Millisecond),
	}
}

// absent reports whether a read of procfs by number found no such number.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// resource reports whether a look failed for want of descriptors or memory.
func resource(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// hidden words an error of a row whose process is known to live.
func hidden(err error) error {
	if absent(err) || errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("hidden by procfs (hidepid): %w", err)
	}
	return err
}
