package identity

import "golang.org/x/sys/unix"

var layout = &openbsdKinfo

// The operations of kern.proc (sysctl(2)).
const (
	kernProcAll = 0
	kernProcPID = 1
)

func readFacts() Facts {
	f := factsBSD()
	f.bootedAt()
	f.Machine, _ = unix.Sysctl("hw.uuid")
	return f
}

// startOffset: the start is compared only while the boot time has not moved, so
// it does not matter whether the kernel adds it.
func startOffset(int64) int64 { return 0 }

func sysctlAll() ([]byte, error) {
	return unix.SysctlRaw("kern.proc", kernProcAll, 0, layout.size, 1<<20)
}

func sysctlPID(pid int) ([]byte, error) {
	return unix.SysctlRaw("kern.proc", kernProcPID, pid, layout.size, 1)
}

// addArgs reads nothing: x/sys does not reach kern.procargs, and OpenBSD does
// not let programs make system calls past its C library.
func addArgs(*Process, Field) {}
