//go:build unix

package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"hob/identity"
)

// kernel is what package identity asks about single processes. Each of its calls
// is a point too: the world may move on in the middle of a verdict.
type kernel struct{ w *World }

func (k kernel) Pin(pid int) (int, error) {
	w := k.w
	w.small("pidfd_open")
	p := w.byPID[pid]
	switch {
	case w.o.NoPidfd:
		return -1, syscall.ENOSYS
	case p == nil && w.taken(pid):
		return -1, syscall.ENOENT // a thread, or dead and held as a group or session
	case p == nil:
		return -1, syscall.ESRCH
	case w.o.MaxPins > 0 && len(w.fds) >= w.o.MaxPins:
		return -1, syscall.EMFILE
	}
	w.fd++
	w.fds[w.fd], w.reached = p, p
	return w.fd, nil
}

func (k kernel) Unpin(fd int) { delete(k.w.fds, fd) }

func (k kernel) ID(fd int) (*uint64, error) {
	if k.w.o.NoPidfs {
		return nil, nil
	}
	return new(k.w.fds[fd].inode), nil
}

func (k kernel) Ended(fd int) (exited, gone bool, err error) {
	k.w.small("poll")
	p := k.w.fds[fd]
	return !p.Alive(), p.state == reaped, nil
}

func (k kernel) SignalPinned(fd int, sig syscall.Signal) error {
	k.w.small("pidfd_send_signal")
	return k.w.send(k.w.fds[fd], sig)
}

func (k kernel) Row(pid int, want identity.Field) (identity.Process, error) {
	w := k.w
	w.small("read stat")
	p, err := w.readable(pid)
	if err != nil {
		return identity.Process{}, err
	}
	return w.row(p, want), nil
}

// readable finds the process that procfs shows under a number, which may be a thread's.
func (w *World) readable(pid int) (*Process, error) {
	p := w.byPID[pid]
	if p == nil {
		p = w.byTID[pid]
	}
	switch {
	case w.sightless():
		return nil, errors.New("no procfs")
	case p == nil, w.unseen(p):
		return nil, fs.ErrNotExist
	case p.hidden:
		return nil, os.ErrPermission
	case p != w.caller && w.chance(w.o.Chaos.RowFails):
		return nil, syscall.EIO
	}
	return p, nil
}

func (k kernel) TGID(pid int) (int, error) {
	p, err := k.w.readable(pid)
	if err != nil {
		return 0, err
	}
	return p.pid, nil
}

func (k kernel) UID(fd, _ int) int {
	w, p := k.w, k.w.fds[fd]
	if w.o.NoPidfs && (w.sightless() || w.unseen(p) || p.hidden) {
		return -1
	}
	return p.uid
}

// LeaderRow tells, as the real one, a hidden row from an absent one by signal 0.
func (k kernel) LeaderRow(pid int, want identity.Field) (identity.Process, error) {
	w := k.w
	w.small("read stat")
	p := w.byPID[pid]
	if p == nil {
		return identity.Process{}, fmt.Errorf("%w: no process has the number", identity.ErrGone)
	}
	if _, err := w.readable(pid); err != nil {
		return identity.Process{}, fmt.Errorf("%w: %w", identity.ErrUnverifiable, err)
	}
	w.reached = p
	return w.row(p, want), nil
}

// Kill is kill(2), which takes a thread's number for its process. Between the
// check and it something may happen only where Window asks for that.
func (k kernel) Kill(pid int, sig syscall.Signal) error {
	w := k.w
	if w.o.Window {
		w.small("kill")
	}
	p := w.byPID[pid]
	if p == nil {
		p = w.byTID[pid]
	}
	if p == nil {
		return syscall.ESRCH
	}
	return w.send(p, sig)
}

// send is a signal of the caller's reaching whom it reaches.
func (w *World) send(p *Process, sig syscall.Signal) error {
	if p.state == reaped {
		return syscall.ESRCH
	}
	early := time.Duration(0)
	if g := p.due(); g != nil && g.byHob && !g.through && !g.still() {
		early = max(1, w.now-g.since)
	}
	denied := w.caller.uid != 0 && p.uid != w.caller.uid
	w.ledger.Deliveries = append(w.ledger.Deliveries, Delivery{
		Step: w.step, Turn: w.turn, At: w.Now(), Sig: sig, To: p, PID: p.pid, Alive: p.Alive(), Denied: denied, Spared: p.spared, Below: p.below(), Early: early,
	})
	w.note(evSent, p, int(sig))
	if denied {
		return syscall.EPERM
	}
	p.take(sig)
	return nil
}

// KillNumber signals by bare number, as hob never does. Planted faults use it.
func (w *World) KillNumber(pid int, sig syscall.Signal) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.point("kill")
	return kernel{w}.Kill(pid, sig)
}

// small is a point within a Host call: a system call, which takes little time.
func (w *World) small(what string) {
	w.mayCut(what)
	w.Pass(2 * time.Microsecond)
	w.stir(w.o.Chaos.Density / 4)
}
