//go:build unix && !linux && !solaris && !aix

package child

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"hob/identity"
)

// Subreap errors with identity.ErrUnsupported: an orphan of the tree goes to
// init, unless it was captured before.
func Subreap() error { return identity.ErrUnsupported }

// Stamp errors with identity.ErrUnsupported: no number of these systems is inherited
// for good and shown to others.
func Stamp(uint64) (uint64, error) { return 0, identity.ErrUnsupported }

func start(c Command) (pid, pidfd int, err error) {
	signals() // before the first child can end
	pid, err = fork(c, &syscall.SysProcAttr{})
	return pid, -1, err
}

var signals = sync.OnceValue(func() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGCHLD)
	return c
})

// waitExit blocks until a child may have exited. These systems' waitid is not
// in x/sys, and without WNOWAIT a wait would reap outside the Reaper's lock.
func waitExit() { <-signals() }

// KeepToMyself sees to it that commands inherit no descriptor of ours beyond
// the standard three, also none that we have inherited.
func KeepToMyself() { closeOnExec() }
