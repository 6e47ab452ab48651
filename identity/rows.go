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

// OpenRead pins whatever process has the number, reads its row and looks whether it
// lives: what Open, Read and Verify say one after the other, in half of their time.
// A Handle that is returned is the caller's to close, a corpse's too.
func OpenRead(h Host, pid int, want Field) (Handle, Process, Finding, error) {
	if o, ok := h.(interface {
		OpenRead(pid int, want Field) (Handle, Process, Finding, error)
	}); ok {
		return o.OpenRead(pid, want)
	}
	pin, err := h.Open(pid)
	return readOpened(pin, want, err)
}

// Opened is what OpenRead says of one process.
type Opened struct {
	Pin   Handle // nil with an error
	Row   Process
	Found Finding
	Err   error
}

// OpenAll is OpenRead of each number. A host may look at several at a time.
func OpenAll(h Host, pids []int, want Field) []Opened {
	out := make([]Opened, len(pids))
	one := func(i int) {
		o := &out[i]
		o.Pin, o.Row, o.Found, o.Err = OpenRead(h, pids[i], want)
	}
	if c, ok := h.(interface{ atOnce(n int, one func(int)) }); ok {
		c.atOnce(len(pids), one)
		return out
	}
	for i := range pids {
		one(i)
	}
	return out
}

func readOpened(pin Handle, want Field, err error) (Handle, Process, Finding, error) {
	if err != nil {
		return nil, Process{}, Finding{}, err
	}
	row, err := pin.Read(want)
	if err != nil {
		_ = pin.Close()
		return nil, Process{}, Finding{}, err
	}
	return pin, row, pin.Verify(), nil
}

// Lives is what the Handle's Verify says, but that it need not know who does not reap
// a corpse, which takes longer than the rest.
func Lives(pin Handle) Finding {
	if p, ok := pin.(interface{ Lives() Finding }); ok {
		return p.Lives()
	}
	return pin.Verify()
}

// Count is how many processes the host has, or more: those of all its pid namespaces
// where only the kernel's own count can be had for the price of one call. ok is false
// where nobody counts them.
func Count(h Host) (n int, ok bool) {
	if c, counts := h.(interface{ Count() (int, bool) }); counts {
		return c.Count()
	}
	return 0, false
}

// absentProcess reports whether a look found that no process has the number.
func absentProcess(err error) bool { return errors.Is(err, ErrGone) }

// startToken spells a start token.
func startToken(source string, n uint64) Token {
	return Token(source + ":" + strconv.FormatUint(n, 10))
}
