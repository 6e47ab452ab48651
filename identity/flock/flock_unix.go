//go:build unix && !solaris && !aix

package flock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Lock takes the exclusive lock on f. Without wait it errors with ErrHeld when
// somebody else has it. Any other error means that the file system refuses locks.
func Lock(f *os.File, wait bool) error {
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		err := unix.Flock(int(f.Fd()), how)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrHeld
		default:
			return os.NewSyscallError("flock", err)
		}
	}
}

// Unlock gives the lock back. It does so by LOCK_UN and not by the close alone:
// a child between fork and exec still holds the open file, and with it the lock.
func Unlock(f *os.File) error {
	return os.NewSyscallError("flock", unix.Flock(int(f.Fd()), unix.LOCK_UN))
}
