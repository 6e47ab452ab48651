//go:build !unix

package pilot

import (
	"errors"
	"syscall"
)

// ownSession does nothing: there are no kernel sessions here.
func ownSession() *syscall.SysProcAttr { return nil }

// sharePort refuses: there is no SO_REUSEPORT here.
func sharePort(_, _ string, _ syscall.RawConn) error {
	return errors.New("share the port: not supported on this system")
}
