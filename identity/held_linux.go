package identity

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// held reads one process from files that stay open as long as its Handle: a tree is
// looked at every second, and several times in a stop, and an open file of procfs is
// read again in a third of the time that it takes to open, read and close it (the
// list of children in a tenth). An open one is of the process that had the number
// when it was opened, for ever: once that has been reaped it shows nothing, whoever
// has the number then.
type held struct {
	kernel linuxKernel
	pid    int

	mu                            sync.Mutex // over the opening of files; reads are by position
	stat, cmdline, task, children heldFile

	told atomic.Int64 // how many threads the last row showed that no list of children has used; 0: none
}

// heldFile is a descriptor; nothing is read from one that is not open.
type heldFile struct {
	fd   int
	open bool
}

// Files are held only of what the limit of open files has beyond this, and only a
// quarter of that: pins are for every process of a tree, and more important.
const (
	heldBeyond = 1024
	heldMost   = 4096
)

var (
	heldFiles atomic.Int64
	heldLimit = sync.OnceValue(func() int64 {
		var lim unix.Rlimit
		if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) != nil || lim.Cur <= heldBeyond {
			return 0
		}
		return int64(min((lim.Cur-heldBeyond)/4, heldMost))
	})
)

func (k linuxKernel) hold(pid int) rowReader { return &held{kernel: k, pid: pid} }

// row reads what changes in a life from files that are held, the rest as ever.
func (h *held) row(want Field) (p Process, err error) {
	if !h.kernel.facts.Procfs {
		return p, errNoProcfs
	}
	if err = h.read(&h.stat, "stat", func(text []byte) error { return p.takeStat(text, h.pid) }); err != nil {
		return p, err
	}
	h.told.Store(int64(p.Threads))
	if want&WantArgs != 0 && p.State != 'Z' {
		want &^= WantArgs
		if h.read(&h.cmdline, "cmdline", func(b []byte) error { p.Args = arguments(b); return nil }) != nil {
			p.Missing |= WantArgs
		}
	}
	if want != 0 {
		addFields(&p, procPath(h.pid)+"/", want)
	}
	return p, nil
}

// listChildren reads one file where there is one thread, and all of them else.
func (h *held) listChildren() ([]int, error) {
	if !h.kernel.facts.Procfs || !h.kernel.countsThreads() {
		return nil, ErrUnsupported
	}
	threads, err := h.threads()
	if err != nil {
		return nil, err
	}
	if threads != 1 {
		return untilWhole(func() ([]int, bool, error) { return childrenOnce(h.pid) })
	}
	var pids []int
	err = h.read(&h.children, "task/"+strconv.Itoa(h.pid)+"/children", func(text []byte) error {
		pids, err = parsePids(text, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	return ascending(pids), nil
}

// threads is how many there are: as the row said that was read for this look, and else
// each is a link of the folder.
func (h *held) threads() (int, error) {
	if n := h.told.Swap(0); n > 0 {
		return int(n), nil
	}
	fd, kept, err := h.descriptor(&h.task, "task", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return 0, err
	}
	if !kept {
		defer closeFD(fd)
	}
	return linkedThreads(fd)
}

func linkedThreads(fd int) (int, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstat(fd, &st) })
	return int(st.Nlink) - 2, err
}

// read reads a file, which is held from now on if it may be.
func (h *held) read(f *heldFile, name string, use func([]byte) error) error {
	fd, kept, err := h.descriptor(f, name, unix.O_RDONLY)
	if err != nil {
		return err
	}
	if !kept {
		defer closeFD(fd)
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	text, err := readFrom(fd, (*buf)[:0], f == &h.children)
	*buf = text[:0]
	if err != nil {
		return fmt.Errorf("read %s of pid %d: %w", name, h.pid, err)
	}
	return use(text)
}

// readFrom is readAll from the beginning, wherever the descriptor stands. A file of
// one record comes whole, as far as there is room; one that is a list comes in parts.
func readFrom(fd int, buf []byte, list bool) ([]byte, error) {
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n := 0
		err := retry(func() (err error) { n, err = unix.Pread(fd, buf[len(buf):cap(buf)], int64(len(buf))); return err })
		if err != nil || n == 0 {
			return buf, err
		}
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > maxProcFile:
			return buf, unix.EFBIG
		case !list && len(buf) < cap(buf):
			return buf, nil
		}
	}
}

// descriptor is an open one of the file; one that is not kept is the caller's to close.
func (h *held) descriptor(f *heldFile, name string, flags int) (fd int, kept bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.open {
		return f.fd, true, nil
	}
	fd, err = openRetry(unix.AT_FDCWD, procPath(h.pid)+"/"+name, flags)
	if err != nil {
		return -1, false, err
	}
	if heldFiles.Add(1) > heldLimit() {
		heldFiles.Add(-1)
		return fd, false, nil
	}
	*f = heldFile{fd: fd, open: true}
	return fd, true, nil
}

// close gives back what is held. Nobody reads any more.
func (h *held) close() {
	for _, f := range []*heldFile{&h.stat, &h.cmdline, &h.task, &h.children} {
		if f.open {
			closeFD(f.fd)
			heldFiles.Add(-1)
			f.open = false
		}
	}
}

// threadsAreLinks reports whether the folder of a process's threads counts them in
// its links, as Linux does: tried on ourselves, who have several.
func threadsAreLinks() bool {
	fd, err := openRetry(unix.AT_FDCWD, "/proc/self/task", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	defer closeFD(fd)
	for range 10 { // one may be born in between
		tids, err := listNumbers(fd)
		linked, linkErr := linkedThreads(fd)
		if err == nil && linkErr == nil && len(tids) == linked {
			return true
		}
		if _, err := unix.Seek(fd, 0, 0); err != nil {
			return false
		}
	}
	return false
}
