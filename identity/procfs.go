package identity

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
)

// Parsers of procfs text (proc(5)). They carry no build tag, so that they are
// tested on every system.

// errMalformed means that a kernel's text was not as documented: torn, cut, or
// from something that only looks like procfs.
var errMalformed = errors.New("malformed")

// Flags of include/linux/sched.h, in field 9 of stat.
const (
	pfExiting = 0x00000004
	pfKthread = 0x00200000
)

// statLine is what hob needs of /proc/PID/stat.
type statLine struct {
	pid, ppid, pgid, sid, tty, tpgid, threads int
	comm                                      []byte // aliases the parsed text
	state                                     State
	flags, start                              uint64
	rss                                       int64 // pages
}

// parseStat parses /proc/PID/stat up to field 24. The name in field 2 may hold
// spaces, newlines and parentheses, so it ends at the *last* one.
func parseStat(text []byte) (s statLine, err error) {
	open := bytes.IndexByte(text, '(')
	end := bytes.LastIndexByte(text, ')')
	if open < 2 || end < open || end+4 > len(text) || text[open-1] != ' ' || text[end+1] != ' ' {
		return s, errMalformed
	}
	pid, ok := decimal(text[:open-1])
	if !ok || pid < 1 || text[end+3] != ' ' {
		return s, errMalformed
	}
	s.pid, s.comm, s.state = int(pid), text[open+1:end], State(text[end+2])
	return s, s.numbers(text[end+4:])
}

// resident is the bytes resident; -1 when the kernel has not counted them yet.
// Since Linux 6.2 the count stands in counters of each processor (commit
// f1a7941243c1), and of a process that has just begun it can be 0, which that of
// no process that lives is.
func (s *statLine) resident(pageSize int64) int64 {
	if s.rss == 0 && s.flags&pfKthread == 0 && s.state != 'Z' && s.state != 'X' {
		return -1
	}
	return s.rss * pageSize
}

// numbers takes the fields after the state letter: 4 (ppid) to 24 (rss).
func (s *statLine) numbers(text []byte) error {
	const vsize = 19 // the one field here that may pass 63 bits
	var f [21]int64
	for i := range f {
		n, rest, ok := nextNumber(text)
		if !ok && (i != vsize || len(rest) == 0) {
			return errMalformed
		}
		f[i], text = n, rest
	}
	s.ppid, s.pgid, s.sid, s.tty, s.tpgid = int(f[0]), int(f[1]), int(f[2]), int(int32(f[3])), int(int32(f[4]))
	s.flags, s.threads, s.start, s.rss = uint64(f[5]), int(f[16]), uint64(f[18]), f[20]
	if f[0] < 0 || f[16] < 0 || f[18] < 0 {
		return errMalformed
	}
	return nil
}

// nextNumber takes a number and the space or newline that must end it: one
// without an end may have been cut. A number past 63 bits is not ok, and is
// skipped. It is written out because a snapshot spends its own time here.
func nextNumber(text []byte) (n int64, rest []byte, ok bool) {
	i, neg := 0, false
	if len(text) > 0 && text[0] == '-' {
		i, neg = 1, true
	}
	first := i
	for ; i < len(text) && text[i]-'0' <= 9; i++ {
		n = n*10 + int64(text[i]-'0')
	}
	if i == first || i == len(text) || text[i] != ' ' && text[i] != '\n' {
		return 0, nil, false
	}
	if neg {
		n = -n
	}
	return n, text[i+1:], i-first <= 18 // 19 digits may overflow
}

// decimal is strconv.ParseInt for a byte slice, without an allocation.
func decimal(b []byte) (n int64, ok bool) {
	neg := len(b) > 1 && b[0] == '-'
	if neg {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if neg {
		n = -n
	}
	return n, true
}

// statusFile is what hob needs of /proc/PID/status.
type statusFile struct {
	tgid   int
	uid    int // real
	nspid  int // how many numbers NSpid has: one when procfs is of the process's own pid namespace
	sigIgn uint64
	capEff uint64
	gids   []int
}

// parseStatus parses /proc/PID/status. Names in its first line are escaped by
// the kernel, so lines can be trusted to be lines.
func parseStatus(text []byte) (s statusFile, err error) {
	s.tgid, s.uid = -1, -1
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		key, value, ok := bytes.Cut(line, []byte(":"))
		if ok {
			s.field(string(key), bytes.TrimSpace(value))
		}
	}
	if s.tgid < 1 || s.uid < 0 {
		return s, errMalformed
	}
	return s, nil
}

func (s *statusFile) field(key string, value []byte) {
	switch key {
	case "Tgid":
		s.tgid = firstInt(value)
	case "Uid":
		s.uid = firstInt(value)
	case "NSpid":
		s.nspid = len(bytes.Fields(value))
	case "SigIgn":
		s.sigIgn, _ = strconv.ParseUint(string(value), 16, 64)
	case "CapEff":
		s.capEff, _ = strconv.ParseUint(string(value), 16, 64)
	case "Groups":
		for g := range bytes.FieldsSeq(value) {
			s.gids = append(s.gids, firstInt(g))
		}
	}
}

// firstInt is the first number of a line, -1 when there is none that an int
// of 32 bits holds (uids go up to 2³²-2).
func firstInt(b []byte) int {
	f := bytes.Fields(b)
	if len(f) == 0 {
		return -1
	}
	n, ok := decimal(f[0])
	if !ok || n < 0 || n > 1<<32-1 || uint64(n) > uint64(^uint(0)>>1) {
		return -1
	}
	return int(n)
}

// parsePids parses a list of pids as in /proc/PID/task/TID/children.
func parsePids(text []byte, into []int) ([]int, error) {
	for f := range bytes.FieldsSeq(text) {
		n, ok := decimal(f)
		if !ok || n < 1 || n > 1<<31-1 {
			return into, errMalformed
		}
		into = append(into, int(n))
	}
	return into, nil
}

// arguments are those of cmdline. A process that gave itself a title, as vLLM's
// do by setproctitle, leaves the rest of its old command line as NULs, which are
// no arguments: empty ones at the end are dropped, but for a single one, which
// may have been given.
func arguments(text []byte) []string {
	args := splitNul(text)
	kept := len(args)
	for kept > 1 && args[kept-1] == "" {
		kept--
	}
	if len(args)-kept > 1 {
		args = args[:kept]
	}
	return args
}

// splitNul splits the NUL-ended texts of cmdline and environ.
func splitNul(text []byte) []string {
	text = bytes.TrimSuffix(text, []byte{0})
	if len(text) == 0 {
		return nil
	}
	return strings.Split(string(text), "\x00")
}

// parseDiskRead finds what a process has had read from disk in its io file
// (proc_pid_io(5)); reads that the page cache answered are not in it.
func parseDiskRead(text []byte) (int64, bool) {
	for line := range bytes.Lines(text) {
		if v, ok := bytes.CutPrefix(line, []byte("read_bytes: ")); ok {
			return decimal(bytes.TrimSpace(v))
		}
	}
	return 0, false
}

// parseStamp finds the hard limit of file locks in /proc/PID/limits, 0 when it is
// unlimited. A process that has just ended shows an empty file.
func parseStamp(text []byte) (uint64, bool) {
	for line := range bytes.Lines(text) {
		limits, ok := bytes.CutPrefix(line, []byte("Max file locks "))
		if !ok {
			continue
		}
		f := bytes.Fields(limits)
		if len(f) < 2 {
			return 0, false
		}
		if string(f[1]) == "unlimited" {
			return 0, true
		}
		n, err := strconv.ParseUint(string(f[1]), 10, 64)
		return n, err == nil
	}
	return 0, false
}

// eachDirent calls f with every all-digit name in a buffer of linux_dirent64
// (getdents64(2)): the pids of /proc, the threads of /proc/PID/task.
func eachDirent(buf []byte, f func(n int)) error {
	const header = 19 // d_ino, d_off, d_reclen, d_type
	for len(buf) > 0 {
		if len(buf) < header {
			return errMalformed
		}
		length := int(binary.NativeEndian.Uint16(buf[16:18]))
		if length < header || length > len(buf) {
			return errMalformed
		}
		name := buf[header:length]
		if i := bytes.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		if n, ok := decimal(name); ok && n > 0 && n <= 1<<31-1 {
			f(int(n))
		}
		buf = buf[length:]
	}
	return nil
}

// mountOptions finds hidepid= and gid= among the options of a procfs.
func mountOptions(super string) (hidepid string, gid int) {
	for opt := range strings.SplitSeq(super, ",") {
		key, value, _ := strings.Cut(opt, "=")
		switch key {
		case "hidepid":
			hidepid = value
		case "gid":
			gid, _ = strconv.Atoi(value)
		}
	}
	return hidepid, gid
}
