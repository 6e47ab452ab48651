package child

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"hob/identity"
)

// Subreap makes the caller the one that adopts the orphans of its tree.
func Subreap() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// start forks and executes, with an empty signal mask and timers as punctual as any:
// ForkExec hands on both of the calling thread, which a keeper has inherited from
// whoever started tmux.
func start(c Command) (pid, pidfd int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var none, old unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &none, &old); err != nil {
		return 0, -1, err
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) }()
	defer punctual()()
	pidfd = -1
	attr := &syscall.SysProcAttr{PidFD: &pidfd}
	if c.Cgroup != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, c.Cgroup.FD()
	}
	pid, err = fork(c, attr)
	return pid, pidfd, err
}

// CgroupRefused reports whether an error of [Reaper.Start] may say that the
// command could not be born in its cgroup: an older kernel, a filter that knows no
// clone3, no right to the cgroup, a cgroup that was removed or has become a
// threaded one. Some of it the program itself may be the reason for; then it
// cannot be started elsewhere either.
func CgroupRefused(err error) bool {
	for _, errno := range []error{syscall.ENOSYS, syscall.EPERM, syscall.EACCES, syscall.E2BIG, syscall.EINVAL,
		syscall.EBUSY, syscall.ENODEV, syscall.EOPNOTSUPP, syscall.EAGAIN, syscall.EBADF} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// waitExit blocks until a child has exited, and leaves it a zombie: it is
// reaped under the Reaper's lock. It returns at once when there is no child.
func waitExit() {
	for errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}

// KeepToMyself sees to it that commands inherit no descriptor of ours beyond
// the standard three, also none that we have inherited.
func KeepToMyself() {
	if unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) != nil { // Linux < 5.11
		closeOnExec()
	}
}

// nest is how far below an inherited stamp one's own is, at most.
const nest = 1 << 16

// Stamp gives the caller, and so all that it starts from now on, a number that
// descendants keep whatever they do to their environment, session, name, user or
// cgroup: the hard limit of file locks (RLIMIT_LOCKS), which no kernel has used
// since 2.4.25. Who may not raise limits can only lower it, so where the caller has
// inherited a lower one, as below another hob's keeper, the number is below that.
// It returns what identity.Process.Stamp then shows.
func Stamp(n uint64) (uint64, error) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_LOCKS, &old); err != nil {
		return 0, fmt.Errorf("read the limit of file locks: %w", err)
	}
	if old.Max <= n {
		if old.Max <= nest {
			return 0, fmt.Errorf("stamp the tree: the limit of file locks is %d already: %w", old.Max, identity.ErrUnsupported)
		}
		n = old.Max - 1 - n%nest
	}
	if err := unix.Setrlimit(unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: n, Max: n}); err != nil {
		return 0, fmt.Errorf("set the limit of file locks to %d: %w", n, err)
	}
	return n, nil
}
