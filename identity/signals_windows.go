package identity

import "syscall"

// SigCont has no meaning on Windows; Handle.Signal refuses it there.
const SigCont = syscall.Signal(18)

// SignalName is a signal's name without its "SIG": "TERM".
func SignalName(sig syscall.Signal) string {
	switch sig {
	case syscall.SIGHUP:
		return "HUP"
	case syscall.SIGINT:
		return "INT"
	case syscall.SIGTERM:
		return "TERM"
	case syscall.SIGKILL:
		return "KILL"
	case SigCont:
		return "CONT"
	}
	return sig.String()
}
