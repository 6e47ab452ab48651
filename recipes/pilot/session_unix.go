//go:build unix

package pilot

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownSession starts a child in a kernel session of its own.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// sharePort lets others listen on our port (SO_REUSEPORT).
func sharePort(_, _ string, conn syscall.RawConn) error {
	var failed error
	err := conn.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	if err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("share the port: %w", failed)
	}
	return nil
}
