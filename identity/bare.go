package identity

import (
	"fmt"
	"syscall"
	"time"
)

// bareSys is what the unpinned way needs from a system: Linux without
// pidfd_open (row 8), macOS and the BSDs.
type bareSys interface {
	// leaderRow reads the row of a process by its number. It errors with
	// ErrGone when no process has it (a thread's number is nobody's), and with
	// ErrUnverifiable when it could not look.
	leaderRow(pid int, want Field) (Process, error)
	// kill is kill(2): the one place where hob signals a bare number.
	kill(pid int, sig syscall.Signal) error
}

// bareWay verifies without a pin: the start token is compared immediately before
// every signal, and read again after it. A window of microseconds remains, so its
// findings say Unpinned.
type bareWay struct {
	sys   bareSys
	facts Facts
	row   string // the row of the verdict table that led here
}

// verify is the whole table for a system that has no pin.
func (w bareWay) verify(ref Ref) (Handle, Finding) {
	if f, decided := admit(ref, w.facts); decided {
		return nil, f
	}
	h, f := w.look(ref)
	return settle(ref, w.facts, h, f)
}

func (w bareWay) look(ref Ref) (Handle, Finding) {
	f := w.check(ref)
	if f.Verdict != Owned {
		return nil, f
	}
	return &bare{w: w, ref: ref}, f
}

// check compares the record with what has its number now.
func (w bareWay) check(ref Ref) Finding {
	_, f := w.checkRow(ref, 0)
	return f
}

func (w bareWay) checkRow(ref Ref, want Field) (Process, Finding) {
	row, err := w.sys.leaderRow(ref.PID, want)
	f := w.judge(ref, row, err)
	f.Unpinned = true
	return row, f
}

func (w bareWay) judge(ref Ref, row Process, err error) Finding {
	v := verifier{facts: w.facts}
	switch {
	case err != nil && absentProcess(err) && w.blind(ref):
		return unverifiable(w.row, "pid %d is not shown, and this system hides other users' processes", ref.PID)
	case err != nil && absentProcess(err):
		return gone(w.row, "no process has pid %d", ref.PID)
	case err != nil:
		return unverifiable(w.row, "pid %d cannot be read: %v", ref.PID, err)
	case dead(row):
		return zombieFinding(w.row, row)
	case ref.Start == "" && !ref.legacy():
		return unverifiable(w.row, "pid %d was recorded by its pidfd inode alone, and cannot be pinned here", ref.PID)
	case ref.Start == "":
		return owned(w.row)
	case !v.sameClock(ref):
		return unverifiable("10a", "start tokens differ between time namespaces (recorded in %s, seen from %s)", nsName(ref.TimeNS), nsName(w.facts.TimeNS))
	case row.Start == "":
		return unverifiable(w.row, "this system shows no start time of pid %d", ref.PID)
	}
	return same(w.row, row.Start == ref.Start, ref)
}

// blind reports whether the system would hide the recorded process although it
// lives. (On Linux leaderRow has asked kill(2), which hidepid does not blind.)
func (w bareWay) blind(ref Ref) bool {
	return w.facts.HidePID && w.facts.OS != "linux" && (ref.UID == nil || *ref.UID != w.facts.UID)
}

// dead reports whether a row is a corpse: a zombie of which no thread lives.
func dead(row Process) bool { return row.State == 'Z' && row.Threads <= 1 }

func zombieFinding(row string, p Process) Finding {
	f := gone(row, "pid %d has ended; its parent, pid %d, has not reaped it", p.PID, p.PPID)
	f.Zombie, f.ZombieOf = true, p.PPID
	return f
}

func (w bareWay) open(pid int, now time.Time) (Handle, error) {
	row, err := w.sys.leaderRow(pid, WantUser)
	if err != nil {
		return nil, fmt.Errorf("open pid %d: %w", pid, err)
	}
	if row.Start == "" {
		return nil, fmt.Errorf("open pid %d: %w: this system shows no start time of it", pid, ErrUnverifiable)
	}
	ref := w.facts.newRef(pid, now)
	ref.Start = row.Start
	if row.UID >= 0 {
		ref.UID = &row.UID
	}
	return &bare{w: w, ref: ref}, nil
}

// bare is a Handle without a pin.
type bare struct {
	w   bareWay
	ref Ref
}

// Ref is what to write down about the process.
func (b *bare) Ref() Ref { return b.ref }

// Verify compares the start token again.
func (b *bare) Verify() Finding { return b.w.check(b.ref) }

// Read reads the row and checks that it is the recorded process's. The row of a
// zombie is still its row.
func (b *bare) Read(want Field) (Process, error) {
	row, f := b.w.checkRow(b.ref, want)
	if f.Zombie && row.Start == b.ref.Start {
		return row, nil
	}
	if err := f.Err(); err != nil {
		return Process{}, fmt.Errorf("read pid %d: %w", b.ref.PID, err)
	}
	return row, nil
}

// Signal compares, signals the number, and looks whether it changed hands
// meanwhile. If it did, the error says so: the signal cannot be called back.
func (b *bare) Signal(sig syscall.Signal) error {
	if err := b.Verify().Err(); err != nil {
		return fmt.Errorf("signal pid %d: %w", b.ref.PID, err)
	}
	if err := signalError(b.ref, b.w.sys.kill(b.ref.PID, sig)); err != nil {
		return err
	}
	if f := b.Verify(); f.Verdict == Foreign {
		return fmt.Errorf("signal pid %d: %w around the signal, which no pin could prevent on this system", b.ref.PID, ErrReused)
	}
	return nil
}

// Close does nothing: there is no pin to give back.
func (b *bare) Close() error { return nil }
