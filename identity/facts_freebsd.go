package identity

import (
	"bytes"
	"encoding/hex"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

var layout = &freebsdKinfo

func readFacts() Facts {
	f := factsBSD()
	// 16 random bytes since FreeBSD 13. kern.boottime moves with the clock.
	if id, err := unix.SysctlRaw("kern.boot_id"); err == nil && len(id) == 16 {
		f.Boot = hex.EncodeToString(id)
	} else {
		f.bootedAt()
	}
	f.Machine, _ = unix.Sysctl("kern.hostuuid")
	see, err := unix.SysctlUint32("security.bsd.see_other_uids")
	f.HidePID = f.UID != 0 && (err != nil || see == 0)
	f.PIDNS = jail(&f)
	f.InitPIDNS = f.PIDNS == ""
	return f
}

// jail names the jail that we are in: it hides the rest of the host.
func jail(f *Facts) string {
	const jid = 592 // ki_jid
	raw, err := sysctlPID(os.Getpid())
	if err != nil || len(raw) != layout.size {
		f.Incomplete = append(f.Incomplete, "jail: our own row cannot be read")
		return "jail:unknown"
	}
	if id := layout.int(raw, jid); id != 0 {
		return "jail:" + strconv.Itoa(id)
	}
	return ""
}

// startOffset: the kernel keeps starts since boot and adds the boot time, which
// moves with the clock, to what it shows (fill_kinfo_proc_only).
func startOffset(boot int64) int64 { return boot }

func sysctlAll() ([]byte, error)        { return unix.SysctlRaw("kern.proc.proc") }
func sysctlPID(pid int) ([]byte, error) { return unix.SysctlRaw("kern.proc.pid", pid) }

func splitArgs(b []byte) []string { return splitNul(bytes.TrimRight(b, "\x00")) }

func addArgs(p *Process, want Field) {
	if want&WantArgs != 0 {
		if raw, err := unix.SysctlRaw("kern.proc.args", p.PID); err == nil {
			p.Args, p.Missing = splitArgs(raw), p.Missing&^WantArgs
		}
	}
	if want&WantEnviron != 0 {
		if raw, err := unix.SysctlRaw("kern.proc.env", p.PID); err == nil {
			p.Environ, p.Missing = splitArgs(raw), p.Missing&^WantEnviron
		}
	}
}
