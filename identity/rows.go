package identity

import (
	"errors"
	"fmt"
	"strconv"
)

// OpenPidfd makes a Handle of the pidfd that came with a fork
// (syscall.SysProcAttr.PidFD), so that not even the first look at a child is by
// its number. The Handle takes fd over; it is closed when this errors. A Host
// without pidfds answers ErrUnsupported and leaves fd alone.
func OpenPidfd(h Host, pid, fd int) (Handle, error) {
	o, ok := h.(interface {
		OpenPidfd(pid, fd int) (Handle, error)
	})
	if !ok {
		return nil, fmt.Errorf("open pid %d by pidfd: %w", pid, ErrUnsupported)
	}
	return o.OpenPidfd(pid, fd)
}

// Children lists the children of a pinned process: by the pin where it can tell,
// which costs a fraction, else by its number.
func Children(h Host, pin Handle) ([]int, error) {
	if p, ok := pin.(interface{ Children() ([]int, error) }); ok {
		if pids, err := p.Children(); !errors.Is(err, ErrUnsupported) {
			return pids, err
		}
	}
	return h.Children(pin.Ref().PID)
}

// absentProcess reports whether a look found that no process has the number.
func absentProcess(err error) bool { return errors.Is(err, ErrGone) }

// startToken spells a start token.
func startToken(source string, n uint64) Token {
	return Token(source + ":" + strconv.FormatUint(n, 10))
}
