package identity

import (
	"encoding/hex"
	"unsafe"

	"golang.org/x/sys/unix"
)

var layout = &darwinKinfo

// These fail to compile when x/sys' struct and our offsets part ways.
const (
	_ = uint(unsafe.Sizeof(unix.KinfoProc{}) - 648)
	_ = uint(648 - unsafe.Sizeof(unix.KinfoProc{}))
	_ = -uint(unsafe.Offsetof(unix.KinfoProc{}.Proc) + unsafe.Offsetof(unix.ExternProc{}.P_stat) - 36)
	_ = -uint(unsafe.Offsetof(unix.KinfoProc{}.Proc) + unsafe.Offsetof(unix.ExternProc{}.P_pid) - 40)
	_ = -uint(unsafe.Offsetof(unix.KinfoProc{}.Proc) + unsafe.Offsetof(unix.ExternProc{}.P_starttime) - 0)
	_ = -uint(unsafe.Offsetof(unix.KinfoProc{}.Proc) + unsafe.Offsetof(unix.ExternProc{}.P_sigignore) - 232)
	_ = -uint(unsafe.Offsetof(unix.KinfoProc{}.Proc) + unsafe.Offsetof(unix.ExternProc{}.P_comm) - 243)
	_ = -uint(unsafe.Offsetof(unix.KinfoProc{}.Eproc) + unsafe.Offsetof(unix.Eproc{}.Pcred) + unsafe.Offsetof(unix.Pcred{}.P_ruid) - 392)
	_ = -uint(unsafe.Offsetof(unix.KinfoProc{}.Eproc) + unsafe.Offsetof(unix.Eproc{}.Ppid) - 560)
	_ = -uint(unsafe.Offsetof(unix.KinfoProc{}.Eproc) + unsafe.Offsetof(unix.Eproc{}.Pgid) - 564)
	_ = -uint(unsafe.Offsetof(unix.KinfoProc{}.Eproc) + unsafe.Offsetof(unix.Eproc{}.Tdev) - 572)
	_ = -uint(unsafe.Offsetof(unix.KinfoProc{}.Eproc) + unsafe.Offsetof(unix.Eproc{}.Tpgid) - 576)
)

func readFacts() Facts {
	f := factsBSD()
	boot, err := unix.Sysctl("kern.bootsessionuuid")
	if f.Boot = boot; err != nil || boot == "" {
		f.bootedAt()
	}
	f.Machine = hostUUID()
	return f
}

// hostUUID is gethostuuid(2): the hardware's UUID. x/sys has no wrapper.
func hostUUID() string {
	var id [16]byte
	var wait unix.Timespec
	_, _, errno := unix.Syscall(unix.SYS_GETHOSTUUID, uintptr(unsafe.Pointer(&id)), uintptr(unsafe.Pointer(&wait)), 0) //nolint:staticcheck // libSystem has no wrapper in x/sys
	if errno != 0 || id == [16]byte{} {
		return ""
	}
	return hex.EncodeToString(id[:])
}

// startOffset: p_starttime is the wall clock at the fork, and stays.
func startOffset(int64) int64 { return 0 }

func sysctlAll() ([]byte, error)        { return unix.SysctlRaw("kern.proc.all") }
func sysctlPID(pid int) ([]byte, error) { return unix.SysctlRaw("kern.proc.pid", pid) }

// addArgs reads arguments and environment together; other users' are refused.
func addArgs(p *Process, want Field) {
	if want&(WantArgs|WantEnviron) == 0 {
		return
	}
	raw, err := unix.SysctlRaw("kern.procargs2", p.PID)
	if err != nil {
		return
	}
	args, environ, err := parseProcargs2(raw)
	if err != nil {
		return
	}
	p.Args, p.Missing = args, p.Missing&^WantArgs
	if len(environ) > 0 { // an empty one is most often a withheld one
		p.Environ, p.Missing = environ, p.Missing&^WantEnviron
	}
}
