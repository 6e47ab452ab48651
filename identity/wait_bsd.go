//go:build darwin || freebsd || openbsd

package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// lookAgain is how often a process is looked at that kqueue refuses to watch.
const lookAgain = 50 * time.Millisecond

// Wait blocks on kqueue(2): NOTE_EXIT of every process, and a pipe that ctx
// closes.
func (l *local) Wait(ctx context.Context, hs []Handle, deadline time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	kq, err := unix.Kqueue()
	if err != nil {
		return fmt.Errorf("wait for processes: kqueue: %w", err)
	}
	defer closeFD(kq)
	stop, err := wakeBy(ctx, kq)
	if err != nil {
		return fmt.Errorf("wait for processes: %w", err)
	}
	defer stop()
	blind, ended, err := watch(kq, hs)
	if err != nil || ended {
		return err
	}
	return waitEvents(ctx, kq, blind, deadline)
}

// watch registers every process. A number may have changed hands before it was
// registered, so each is verified after that.
func watch(kq int, hs []Handle) (blind []Handle, ended bool, err error) {
	for _, h := range hs {
		b, ok := h.(*bare)
		if !ok {
			return nil, false, fmt.Errorf("wait for processes: %w: a %T is not a handle of this host", ErrUnsupported, h)
		}
		var ev unix.Kevent_t
		unix.SetKevent(&ev, b.ref.PID, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
		ev.Fflags = unix.NOTE_EXIT
		if _, err := unix.Kevent(kq, []unix.Kevent_t{ev}, nil, nil); err != nil && !errors.Is(err, unix.ESRCH) {
			blind = append(blind, h)
		}
		if over(h) {
			return nil, true, nil
		}
	}
	return blind, false, nil
}

func over(h Handle) bool {
	v := h.Verify().Verdict
	return v == Gone || v == Foreign
}

func waitEvents(ctx context.Context, kq int, blind []Handle, deadline time.Time) error {
	events := make([]unix.Kevent_t, 1)
	for {
		n, err := unix.Kevent(kq, nil, events, timeoutBSD(len(blind) > 0, deadline))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait for processes: kevent: %w", err)
		case n > 0, !deadline.IsZero() && !time.Now().Before(deadline):
			return nil
		}
		for _, h := range blind {
			if over(h) {
				return nil
			}
		}
	}
}

func timeoutBSD(blind bool, deadline time.Time) *unix.Timespec {
	left := time.Duration(-1)
	if !deadline.IsZero() {
		left = max(0, time.Until(deadline))
	}
	if blind && (left < 0 || left > lookAgain) {
		left = lookAgain
	}
	if left < 0 {
		return nil
	}
	ts := unix.NsecToTimespec(int64(left))
	return &ts
}

// wakeBy lets ctx end the wait: closing the write end makes the read end
// readable. (OpenBSD has no EVFILT_USER.)
func wakeBy(ctx context.Context, kq int) (stop func(), err error) {
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	unix.CloseOnExec(p[0])
	unix.CloseOnExec(p[1])
	var ev unix.Kevent_t
	unix.SetKevent(&ev, p[0], unix.EVFILT_READ, unix.EV_ADD)
	if _, err := unix.Kevent(kq, []unix.Kevent_t{ev}, nil, nil); err != nil {
		_, _ = unix.Close(p[0]), unix.Close(p[1])
		return nil, fmt.Errorf("kevent: %w", err)
	}
	closed := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() { defer close(closed); _ = unix.Close(p[1]) })
	return func() {
		if unhook() {
			_ = unix.Close(p[1])
		} else {
			<-closed
		}
		_ = unix.Close(p[0])
	}, nil
}
