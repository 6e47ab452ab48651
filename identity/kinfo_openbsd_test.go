package identity

import (
	"unsafe"

	"github.com/shirou/gopsutil/v4/process"
)

// These fail to compile when our offsets and gopsutil's generated struct part
// ways; `go vet` with GOOS=openbsd sees it on any system.
const (
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Pid) - 108)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Ppid) - 112)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Sid) - 116)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.X_pgid) - 120)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Ruid) - 132)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Tdev) - 212)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Tpgid) - 124)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Sigignore) - 296)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Stat) - 304)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Comm) - 312)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Vm_rssize) - 384)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Uvalid) - 400)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Ustart_sec) - 408)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Ustart_usec) - 416)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Psflags) - 560)
)
