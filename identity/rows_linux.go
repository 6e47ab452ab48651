package identity

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// pageSize turns field 24 of stat into bytes.
var pageSize = int64(os.Getpagesize())

// maxProcFile bounds what is read of one file of procfs. Arguments and
// environment end at a quarter of the stack limit, usually 2 MiB.
const maxProcFile = 16 << 20

// buffers are reused between reads, so that a look costs no garbage.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

// withFile reads a file of procfs whole and hands it to use, which must not
// keep it.
func withFile(path string, use func(text []byte) error) error {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	fd, err := openRetry(unix.AT_FDCWD, path, unix.O_RDONLY)
	if err != nil {
		return err
	}
	text, err := readAll(fd, (*buf)[:0])
	_ = unix.Close(fd)
	*buf = text[:0]
	if err != nil {
		return &os.PathError{Op: "read", Path: path, Err: err}
	}
	return use(text)
}

// readAll reads to the end of a descriptor, growing buf.
func readAll(fd int, buf []byte) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := unix.Read(fd, buf[len(buf):cap(buf)])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return buf, err
		case n == 0:
			return buf, nil
		}
		if buf = buf[:len(buf)+n]; len(buf) > maxProcFile {
			return buf, unix.EFBIG
		}
	}
}

func readStatus(dir string) (s statusFile, err error) {
	err = withFile(dir+"/status", func(text []byte) error {
		s, err = parseStatus(text)
		return err
	})
	return s, err
}

// readRow reads one process. dir ends with a slash.
func readRow(dir string, pid int, want Field) (p Process, err error) {
	err = withFile(dir+"stat", func(text []byte) error { return p.takeStat(text, pid) })
	if err == nil && want != 0 {
		addFields(&p, dir, want)
	}
	return p, err
}

// takeStat fills a row that is all zero from the text of stat.
func (p *Process) takeStat(text []byte, pid int) error {
	s, err := parseStat(text)
	if err == nil && s.pid != pid {
		err = errMalformed
	}
	if err == nil {
		s.fill(p, string(s.comm), startToken("linux", s.start))
	}
	return err
}

// fill writes what a stat line tells into a row that is all zero.
func (s *statLine) fill(p *Process, comm string, start Token) {
	p.PID, p.PPID, p.PGID, p.SID, p.TTY, p.TPGID = s.pid, s.ppid, s.pgid, s.sid, s.tty, s.tpgid
	p.Comm, p.State, p.Threads, p.Start = comm, s.state, s.threads, start
	p.RSS, p.Kernel, p.UID = s.resident(pageSize), s.flags&pfKthread != 0, -1
}

// addFields reads what was asked for beyond stat, and notes what it could not read.
func addFields(p *Process, dir string, want Field) {
	if p.State == 'Z' && p.Threads > 1 {
		dir = livingThread(dir, p.PID)
	}
	p.text(dir+"limits", want&WantStamp, func(b []byte) { // first: it may be about to end
		if n, ok := parseStamp(b); ok {
			p.Stamp = n
		} else {
			p.Missing |= WantStamp
		}
	})
	if want&(WantUser|WantSignals) != 0 {
		if s, err := readStatus(dir[:len(dir)-1]); err != nil {
			p.Missing |= want & (WantUser | WantSignals)
		} else {
			p.UID, p.SigIgn = s.uid, s.sigIgn
		}
	}
	p.text(dir+"cmdline", want&WantArgs, func(b []byte) { p.Args = arguments(b) })
	p.text(dir+"environ", want&WantEnviron, func(b []byte) { p.Environ = splitNul(b) })
	p.text(dir+"wchan", want&WantWchan, func(b []byte) { p.Wchan = parseWchan(b) })
	p.text(dir+"io", want&WantDisk, func(b []byte) {
		if n, ok := parseDiskRead(b); ok {
			p.DiskRead = n
		} else {
			p.Missing |= WantDisk
		}
	})
	if want&WantStarted != 0 {
		p.Started = startedAt(p.Start)
	}
	if want&WantCwd != 0 {
		cwd, err := os.Readlink(dir + "cwd")
		if p.Cwd = cwd; err != nil {
			p.Missing |= WantCwd
		}
	}
}

// livingThread is the folder of a thread that still has what a dead leader has
// given back: its memory, and with it arguments and environment.
func livingThread(dir string, leader int) string {
	fd, err := openRetry(unix.AT_FDCWD, dir+"task", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return dir
	}
	defer closeFD(fd)
	tids, _ := listNumbers(fd)
	for _, tid := range tids {
		thread := dir + "task/" + strconv.Itoa(tid) + "/"
		if row, err := readRow(thread, tid, 0); err == nil && tid != leader && row.State != 'Z' {
			return thread
		}
	}
	return dir
}

// startedAt turns ticks since boot into the wall clock of now. It moves with the
// clock, so it is for people only. Ticks are of 10 ms on every Linux that Go
// runs on (USER_HZ, times(2)).
func startedAt(start Token) time.Time {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return time.Time{}
	}
	age := time.Duration(up.Nano()) - time.Duration(tokenNumber(start))*10*time.Millisecond
	return time.Now().Add(-age).Round(0)
}

// text reads one file if it was asked for.
func (p *Process) text(path string, field Field, take func([]byte)) {
	if field == 0 {
		return
	}
	if err := withFile(path, func(b []byte) error { take(b); return nil }); err != nil {
		p.Missing |= field
	}
}

// parseWchan: "0" stands for a process that runs, and for one that the reader
// may not trace.
func parseWchan(b []byte) string {
	if s := string(b); s != "0" {
		return s
	}
	return ""
}
