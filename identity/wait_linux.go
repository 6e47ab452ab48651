package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// lookAgain is how often a process without a pin is looked at: on Linux nothing
// else tells a stranger that such a process has ended.
const lookAgain = 20 * time.Millisecond

// wait polls the pidfds, together with an eventfd that ctx writes to.
func wait(ctx context.Context, hs []Handle, deadline time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	set, err := newWaitSet(hs)
	defer set.release()
	if err != nil {
		return fmt.Errorf("wait for processes: %w", err)
	}
	stop, err := set.wakeBy(ctx)
	if err != nil {
		return fmt.Errorf("wait for processes: %w", err)
	}
	defer stop()
	for {
		if set.bareEnded() {
			return nil
		}
		n, err := unix.Poll(set.fds, set.timeout(deadline))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait for processes: poll: %w", err)
		case ctx.Err() != nil:
			return ctx.Err()
		case n > 0, passed(deadline):
			return nil
		}
	}
}

func passed(deadline time.Time) bool { return !deadline.IsZero() && !time.Now().Before(deadline) }

// waitSet is what one wait looks at.
type waitSet struct {
	fds  []unix.PollFd
	held []*pinned
	bare []*bare
}

func newWaitSet(hs []Handle) (*waitSet, error) {
	s := &waitSet{}
	for _, h := range hs {
		switch h := h.(type) {
		case *pinned:
			fd, ok := h.use()
			if !ok {
				return s, fmt.Errorf("pid %d: %w", h.ref.PID, errClosed)
			}
			s.held = append(s.held, h)
			s.fds = append(s.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		case *bare:
			s.bare = append(s.bare, h)
		default:
			return s, fmt.Errorf("%w: a %T is not a handle of this host", ErrUnsupported, h)
		}
	}
	return s, nil
}

func (s *waitSet) release() {
	for _, h := range s.held {
		h.done()
	}
}

// wakeBy lets ctx end the poll.
func (s *waitSet) wakeBy(ctx context.Context) (stop func(), err error) {
	if ctx.Done() == nil {
		return func() {}, nil
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	s.fds = append(s.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	written := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		defer close(written)
		_, _ = unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 1})
	})
	return func() {
		if !unhook() {
			<-written // the write is under way: the descriptor must stay ours
		}
		_ = unix.Close(fd)
	}, nil
}

func (s *waitSet) bareEnded() bool {
	for _, h := range s.bare {
		if v := h.Verify().Verdict; v == Gone || v == Foreign {
			return true
		}
	}
	return false
}

// timeout is for poll(2), in milliseconds, rounded up; -1 is for ever.
func (s *waitSet) timeout(deadline time.Time) int {
	left := time.Duration(-1)
	if !deadline.IsZero() {
		left = max(0, time.Until(deadline))
	}
	if len(s.bare) > 0 && (left < 0 || left > lookAgain) {
		left = lookAgain
	}
	if left < 0 {
		return -1
	}
	return int(min(int64(left+time.Millisecond-1)/int64(time.Millisecond), 1<<30))
}
