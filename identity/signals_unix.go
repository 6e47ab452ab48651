//go:build unix

package identity

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// SigCont resumes a stopped process. It stands here because its number differs
// between systems and package syscall lacks it on Windows.
const SigCont = syscall.SIGCONT

// SignalName is a signal's name without its "SIG": "TERM". A number that the
// system has no name for gives "signal N".
func SignalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	return sig.String()
}
