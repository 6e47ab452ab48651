//go:build unix && !solaris && !aix

package child

import (
	"errors"
	"syscall"
)

// reapAll reaps every child that has ended. It errors with ErrNoChildren when
// none is left.
func reapAll() (ended []Exit, err error) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ECHILD):
			return ended, ErrNoChildren
		case err != nil:
			return ended, err
		case pid == 0:
			return ended, nil
		case ws.Exited():
			ended = append(ended, Exit{PID: pid, Code: ws.ExitStatus()})
		case ws.Signaled():
			ended = append(ended, Exit{PID: pid, Signal: ws.Signal()})
		}
	}
}

func closePidfd(fd int) {
	if fd >= 0 {
		_ = syscall.Close(fd)
	}
}

func fork(c Command, sys *syscall.SysProcAttr) (pid int, err error) {
	if c.Terminal {
		sys.Setsid, sys.Setctty, sys.Ctty = true, true, 0
	} else {
		sys.Setpgid = true
	}
	withFiles(c.NoFile, func() {
		pid, err = syscall.ForkExec(c.Path, c.Args, &syscall.ProcAttr{Dir: c.Dir, Env: c.Env, Files: c.Files, Sys: sys})
	})
	return pid, err
}

// closeOnExec marks what a program is likely to have open.
func closeOnExec() {
	for fd := 3; fd < 1024; fd++ {
		syscall.CloseOnExec(fd)
	}
}
