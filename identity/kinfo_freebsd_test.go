package identity

import (
	"unsafe"

	"github.com/shirou/gopsutil/v4/process"
)

// These fail to compile when our offsets and gopsutil's generated struct part
// ways; `go vet` with GOOS=freebsd sees it on any system.
const (
	_ = -uint(unsafe.Sizeof(process.KinfoProc{}) - 1088)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Pid) - 72)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Ppid) - 76)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Pgid) - 80)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Tpgid) - 84)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Sid) - 88)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Sigignore) - 136)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Ruid) - 172)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Rssize) - 264)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Start) - 336)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Flag) - 368)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Stat) - 388)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Comm) - 447)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Tdev) - 560)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Jid) - 592)
	_ = -uint(unsafe.Offsetof(process.KinfoProc{}.Numthreads) - 596)
)
