package child

import (
	"errors"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Subreap makes the caller the one that adopts the orphans of its tree.
func Subreap() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// start forks and executes, with an empty signal mask: ForkExec hands on the
// mask of the calling thread, which a keeper may have inherited from whoever
// started tmux.
func start(c Command) (pid, pidfd int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var none, old unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &none, &old); err != nil {
		return 0, -1, err
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) }()
	pidfd = -1
	pid, err = fork(c, &syscall.SysProcAttr{PidFD: &pidfd})
	return pid, pidfd, err
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
