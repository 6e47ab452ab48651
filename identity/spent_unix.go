//go:build unix

package identity

import (
	"time"

	"golang.org/x/sys/unix"
)

// Spent is the processor time that the caller's process has used, so that what
// something costs can be told on a busy machine too. 0 when it cannot be told.
func Spent() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
