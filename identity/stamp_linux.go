package identity

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Bearers goes through the numbers of /proc and asks for the stamp of each before
// the next is listed, so that a process that does not live long has little time to
// end in between.
func (l *local) Bearers(ctx context.Context, stamp uint64) (Bearers, error) {
	var out Bearers
	if !l.facts.Procfs {
		return out, fmt.Errorf("look for stamps: %w: %w", ErrUnverifiable, errNoProcfs)
	}
	sawSelf, self := false, os.Getpid()
	err := eachPID(ctx, make([]byte, fewNames), func(_, pid int) {
		sawSelf = sawSelf || pid == self
		switch got, ok, err := readStamp(pid); {
		case ok && got == stamp:
			out.PIDs = append(out.PIDs, pid)
		case !ok && !absent(err):
			out.Unread = append(out.Unread, pid)
		}
	})
	if err == nil && !sawSelf {
		err = errors.New("the listing does not hold our own pid")
	}
	if err != nil {
		return out, fmt.Errorf("look for stamps: %w: %w", ErrUnverifiable, err)
	}
	return out, nil
}

// oneName is room for a name or two of /proc at a time, fewNames for some 16, which are
// asked for their stamps in less time than a fork takes.
const (
	oneName  = 64
	fewNames = 384
)

// readStamp asks the kernel for the limit, which is one call, and reads it in procfs
// where it says nothing: prlimit(2) answers for processes of the caller's user, or
// with CAP_SYS_RESOURCE, while anybody may read the file, which takes three calls
// and the kernel prints all limits into it.
func readStamp(pid int) (stamp uint64, ok bool, err error) {
	if stamp, ok = askStamp(pid); ok {
		return stamp, true, nil
	}
	err = withFile(procPath(pid)+"/limits", func(b []byte) error {
		stamp, ok = parseStamp(b)
		return nil
	})
	return stamp, ok, err
}

// askStamp is prlimit(2). Whatever refuses it (another user's process, a filter of
// system calls, the end of the process) means only that the file has to tell.
func askStamp(pid int) (stamp uint64, ok bool) {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &limit); err != nil {
		return 0, false
	}
	if limit.Max == unix.RLIM_INFINITY {
		return 0, true
	}
	return limit.Max, true
}
