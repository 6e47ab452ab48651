package identity

import (
	"time"

	"golang.org/x/sys/windows"
)

// Spent is the processor time that the caller's process has used, so that what
// something costs can be told on a busy machine too. 0 when it cannot be told.
func Spent() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user) != nil {
		return 0
	}
	ticks := func(t windows.Filetime) time.Duration {
		return time.Duration(t.HighDateTime)<<32 | time.Duration(t.LowDateTime)
	}
	return 100 * (ticks(kernel) + ticks(user))
}
