package identity

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// kinfo is where a BSD's struct kinfo_proc keeps what hob needs: byte offsets of
// the 64-bit layout, -1 for a field that the system does not have. One parser
// serves the three systems, and carries no build tag.
type kinfo struct {
	source string // of the start token
	size   int    // of the struct; a kernel that says otherwise is not understood

	pid, ppid, pgid, sid, uid int // int32
	tty                       int // uint32, all ones for none
	tpgid                     int // int32
	stat                      int // int8
	comm, commLen             int
	flags                     int    // uint32
	system                    uint32 // the bit of flags that marks a process of the kernel's
	threads                   int    // int32
	rss                       int    // pages, int32
	sigIgn                    int    // uint32
	sec, usec                 int    // int64 and int32
	valid                     int    // int32 that is 0 while the start is not filled in
	states                    string // letters by number
}

// The layouts, from <sys/sysctl.h> and <sys/proc.h> of xnu, <sys/user.h> of
// FreeBSD 12 and later, <sys/sysctl.h> of OpenBSD. kinfo_darwin.go and the tests
// hold them against x/sys' and gopsutil's generated structs.
var (
	darwinKinfo = kinfo{
		source: "darwin", size: 648,
		sec: 0, usec: 8, flags: 32, system: 0x200, stat: 36, pid: 40, sigIgn: 232, comm: 243, commLen: 17,
		uid: 392, ppid: 560, pgid: 564, tty: 572, tpgid: 576,
		sid: -1, threads: -1, rss: -1, valid: -1, states: "?IRSTZ",
	}
	freebsdKinfo = kinfo{
		source: "freebsd", size: 1088,
		pid: 72, ppid: 76, pgid: 80, tpgid: 84, sid: 88, sigIgn: 136, uid: 172, rss: 264, sec: 336, usec: 344,
		flags: 368, system: 0x4, stat: 388, comm: 447, commLen: 20, tty: 560, threads: 596,
		valid: -1, states: "?IRSTZWL",
	}
	openbsdKinfo = kinfo{
		source: "openbsd", size: 616,
		pid: 108, ppid: 112, sid: 116, pgid: 120, tpgid: 124, uid: 132, tty: 212, sigIgn: 296,
		stat: 304, comm: 312, commLen: 24, rss: 384, valid: 400, sec: 408, usec: 416,
		flags: 560, system: 0x00010000, threads: -1, states: "?IRSTZZR",
	}
)

// parse reads one struct. The start is in µs, as the kernel gives it: 0 when it
// is not filled in.
func (k *kinfo) parse(b []byte, pageSize int64) (p Process, start int64, err error) {
	if len(b) != k.size {
		return p, 0, fmt.Errorf("%w: a process row of %d bytes, not %d", errMalformed, len(b), k.size)
	}
	p = Process{
		PID: k.int(b, k.pid), PPID: k.int(b, k.ppid), PGID: k.int(b, k.pgid), SID: k.int(b, k.sid),
		UID: int(k.uint(b, k.uid)), TTY: k.ttyOf(b), TPGID: k.int(b, k.tpgid), Threads: max(0, k.int(b, k.threads)),
		SigIgn: uint64(k.uint(b, k.sigIgn)), Kernel: k.uint(b, k.flags)&k.system != 0,
		RSS: -1, State: k.state(b[k.stat]), Comm: cString(b[k.comm : k.comm+k.commLen]),
	}
	if k.rss >= 0 {
		p.RSS = int64(k.int(b, k.rss)) * pageSize
	}
	if p.PID < 0 || p.PPID < 0 {
		return p, 0, errMalformed
	}
	if k.valid < 0 || k.uint(b, k.valid) != 0 {
		start = int64(binary.NativeEndian.Uint64(b[k.sec:]))*1_000_000 + int64(k.uint(b, k.usec))
	}
	return p, start, nil
}

// parseAll reads an array of structs.
func (k *kinfo) parseAll(b []byte, pageSize int64, each func(Process, int64)) error {
	if len(b)%k.size != 0 {
		return fmt.Errorf("%w: a process table of %d bytes, not a multiple of %d", errMalformed, len(b), k.size)
	}
	for ; len(b) > 0; b = b[k.size:] {
		p, start, err := k.parse(b[:k.size], pageSize)
		if err != nil {
			return err
		}
		each(p, start)
	}
	return nil
}

func (k *kinfo) uint(b []byte, at int) uint32 {
	if at < 0 {
		return 0
	}
	return binary.NativeEndian.Uint32(b[at:])
}

func (k *kinfo) int(b []byte, at int) int { return int(int32(k.uint(b, at))) }

func (k *kinfo) ttyOf(b []byte) int {
	if dev := k.uint(b, k.tty); dev != 1<<32-1 {
		return int(dev)
	}
	return 0
}

func (k *kinfo) state(n byte) State {
	if int(n) < len(k.states) {
		return State(k.states[n])
	}
	return '?'
}

func cString(b []byte) string {
	text, _, _ := bytes.Cut(b, []byte{0})
	return string(text)
}

// parseProcargs2 parses sysctl kern.procargs2 of macOS: the number of arguments,
// the path of the executable, NULs, the arguments, and, for the caller's own
// processes, the environment.
func parseProcargs2(b []byte) (args, environ []string, err error) {
	if len(b) < 4 {
		return nil, nil, errMalformed
	}
	n := int(int32(binary.NativeEndian.Uint32(b)))
	_, rest, ok := bytes.Cut(b[4:], []byte{0})
	if !ok || n < 0 || n > len(b) {
		return nil, nil, errMalformed
	}
	rest = bytes.TrimLeft(rest, "\x00")
	for len(args) < n {
		arg, after, ok := bytes.Cut(rest, []byte{0})
		if !ok {
			return nil, nil, errMalformed
		}
		args, rest = append(args, string(arg)), after
	}
	for {
		entry, after, ok := bytes.Cut(rest, []byte{0})
		if !ok || len(entry) == 0 {
			return args, environ, nil
		}
		environ, rest = append(environ, string(entry)), after
	}
}

// parseTimeval parses struct timeval of a 64-bit BSD (kern.boottime), in µs.
func parseTimeval(b []byte) (int64, error) {
	if len(b) < 16 {
		return 0, errMalformed
	}
	sec := int64(binary.NativeEndian.Uint64(b))
	usec := int64(int32(binary.NativeEndian.Uint32(b[8:])))
	if sec < 0 || sec > 1<<40 || usec < 0 || usec >= 1_000_000 {
		return 0, errMalformed
	}
	return sec*1_000_000 + usec, nil
}

// weakBoot marks a boot id that is only the time of the boot: a step of the
// wall clock moves it, so that a difference does not prove a reboot.
const weakBoot = "boottime:"

func (r Ref) weakBoot() bool { return strings.HasPrefix(r.Boot, weakBoot) }
