package identity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Snapshot lists all processes in one pass over /proc by its descriptor. A
// process that is born or ends during the pass may or may not be in it.
func (l *local) Snapshot(ctx context.Context, want Field) (*Table, error) {
	if !l.facts.Procfs {
		return nil, fmt.Errorf("list processes: %w: %w", ErrUnverifiable, errNoProcfs)
	}
	s := scan{kernel: l.kernel, want: want, table: &Table{Procs: make([]Process, 0, l.lastCount.Load()+64)}}
	if err := s.run(ctx); err != nil {
		return nil, fmt.Errorf("list processes: %w: %w", ErrUnverifiable, err)
	}
	l.lastCount.Store(int64(len(s.table.Procs)))
	s.table.Hidden = procHidesOthers()
	if !s.table.SawSelf {
		return s.table, fmt.Errorf("list processes: %w: the listing does not hold our own pid", ErrUnverifiable)
	}
	return s.table, nil
}

// scan is one pass. Its buffers serve all rows.
type scan struct {
	kernel linuxKernel
	want   Field
	table  *Table
	dir    int
	self   int
	name   [24]byte
	stat   [1024]byte // the first 24 fields of stat need less than 600
	texts  arena
}

func (s *scan) run(ctx context.Context) error {
	s.self = os.Getpid()
	buf := make([]byte, 32<<10)
	if s.want&WantStamp != 0 {
		// Whoever asks for stamps wants to see those that do not live long: what is
		// listed is looked at before it can have ended.
		buf = buf[:oneName]
	}
	return eachPID(ctx, buf, func(dir, pid int) {
		s.dir = dir
		s.row(pid)
	})
}

// eachPID calls f with the numbers that /proc lists, and with its descriptor.
func eachPID(ctx context.Context, buf []byte, f func(dir, pid int)) error {
	dir, err := openRetry(unix.AT_FDCWD, "/proc", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer closeFD(dir)
	for ctx.Err() == nil {
		n, err := unix.Getdents(dir, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return err
		}
		if err := eachDirent(buf[:n], func(pid int) { f(dir, pid) }); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// row reads one process. One that has ended since it was listed is no row; one
// that is there and cannot be read is named. Its stat file stays open for as long as
// its other files are read: it is of one process, whoever gets the number.
func (s *scan) row(pid int) {
	fd, err := s.openStat(pid)
	var line statLine
	if err == nil {
		defer closeFD(fd)
		if line, err = s.readStat(fd); errors.Is(err, errMalformed) {
			line, err = s.readStat(fd)
		}
	}
	switch {
	case err == nil && line.pid == pid:
		s.add(&line, fd)
	case err == nil:
		s.table.Unreadable = append(s.table.Unreadable, Unreadable{pid, errMalformed})
	case !absent(err):
		s.table.Unreadable = append(s.table.Unreadable, Unreadable{pid, err})
	}
}

func (s *scan) add(line *statLine, stat int) {
	if line.pid == s.self {
		s.table.SawSelf = true
	}
	s.table.Procs = append(s.table.Procs, Process{})
	p := &s.table.Procs[len(s.table.Procs)-1] // a row is large: it is written in place
	line.fill(p, s.texts.bytes(line.comm), s.texts.token(line.start))
	if s.want == 0 {
		return
	}
	want := s.want
	if p.Kernel {
		want &^= WantArgs | WantEnviron | WantStamp // it has no memory of its own, and is nobody's
	}
	if want == 0 {
		return
	}
	if want&WantStamp != 0 { // first: it may be about to end
		if stamp, ok := askStamp(p.PID); ok {
			p.Stamp, want = stamp, want&^WantStamp
		}
	}
	addFields(p, procPath(p.PID)+"/", want)
	if s.want&WantPidfs != 0 {
		s.kernel.addPidfs(p)
	}
	if !s.settle(p, stat) {
		if p.Stamp != 0 {
			s.table.Passing = append(s.table.Passing, *p)
		}
		s.table.Procs = s.table.Procs[:len(s.table.Procs)-1]
	}
}

// settle reads the stat line once more, after the other files. It is false when
// the process is gone by now: its number may have changed hands before one of the
// others was read, and then the row would be of two processes. Of one that has begun
// to end nothing is missing: it has given its memory back, and its environment with it.
func (s *scan) settle(p *Process, stat int) bool {
	line, err := s.readStat(stat)
	if err != nil {
		return !absent(err)
	}
	p.State, p.Threads = line.state, line.threads
	if line.flags&pfExiting != 0 && line.threads <= 1 {
		p.Missing &^= WantArgs | WantEnviron
	}
	return true
}

func tokenNumber(t Token) uint64 {
	n, _ := strconv.ParseUint(string(t[len("linux:"):]), 10, 64)
	return n
}

// openStat opens "<pid>/stat" relative to the directory. It makes the system
// calls itself: the wrappers of x/sys copy every path to the heap.
func (s *scan) openStat(pid int) (int, error) {
	name := append(strconv.AppendInt(s.name[:0], int64(pid), 10), "/stat\x00"...)
	fd, errno := sysOpenat(s.dir, &name[0])
	if errno != 0 {
		return -1, errno
	}
	return fd, nil
}

// readStat reads an open stat file.
func (s *scan) readStat(fd int) (statLine, error) {
	for {
		n, err := unix.Pread(fd, s.stat[:], 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return statLine{}, err
		}
		return parseStat(s.stat[:n])
	}
}

func sysOpenat(dir int, path *byte) (int, unix.Errno) {
	for {
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(path)), unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
		if errno != unix.EINTR {
			return int(fd), errno
		}
	}
}
