package identity

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Children reads the children of every thread: threads own children too.
func (l *local) Children(pid int) ([]int, error) {
	if !l.facts.Procfs {
		return nil, fmt.Errorf("children of pid %d: %w: %w", pid, ErrUnverifiable, errNoProcfs)
	}
	if !l.hasChildren() {
		return nil, fmt.Errorf("children of pid %d: %w: the kernel has no children files", pid, ErrUnsupported)
	}
	pids, err := untilWhole(func() ([]int, bool, error) { return childrenOnce(pid) })
	if err != nil {
		return nil, l.childrenError(pid, err)
	}
	return pids, nil
}

// errThreadsEnd: a look at all threads never was one.
var errThreadsEnd = errors.New("its threads end faster than they can be read")

// untilWhole repeats a look that lost a thread under way.
func untilWhole(once func() (pids []int, lost bool, err error)) ([]int, error) {
	for range 10 {
		pids, lost, err := once()
		if err != nil {
			return nil, err
		}
		if !lost {
			return ascending(pids), nil
		}
	}
	return nil, errThreadsEnd
}

func ascending(pids []int) []int {
	slices.Sort(pids)
	return slices.Compact(pids)
}

// childrenOnce reads /proc/PID/task/*/children. lost reports that a thread
// ended between the listing and the read: its children went to another thread,
// which may have been read already.
func childrenOnce(pid int) (pids []int, lost bool, err error) {
	dir, err := openRetry(unix.AT_FDCWD, procPath(pid)+"/task", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, false, err
	}
	defer closeFD(dir)
	tids, err := listNumbers(dir)
	if err != nil {
		return nil, false, err
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for _, tid := range tids {
		text, err := readAt(dir, strconv.Itoa(tid)+"/children", (*buf)[:0])
		*buf = text[:0]
		if absent(err) {
			lost = true
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if pids, err = parsePids(text, pids); err != nil {
			return nil, false, err
		}
	}
	return pids, lost, nil
}

// childrenError words a failed look: a kernel without CONFIG_PROC_CHILDREN, a
// process that is gone, or one that procfs does not show.
func (l *local) childrenError(pid int, err error) error {
	if !absent(err) {
		return fmt.Errorf("children of pid %d: %w: %w", pid, ErrUnverifiable, err)
	}
	h, openErr := l.Open(pid)
	if errors.Is(openErr, ErrGone) {
		return fmt.Errorf("children of pid %d: %w", pid, ErrGone)
	}
	if openErr == nil {
		_ = h.Close()
	}
	return fmt.Errorf("children of pid %d: %w: %w", pid, ErrUnverifiable, hidden(err))
}

// Count asks for the links of /proc: one for each process, and a few for its folders.
func (l *local) Count() (int, bool) {
	var st unix.Stat_t
	if !l.facts.Procfs || unix.Stat("/proc", &st) != nil {
		return 0, false
	}
	return int(st.Nlink), true
}

// listNumbers lists the all-digit names of a directory.
func listNumbers(dir int) ([]int, error) {
	var out []int
	buf := make([]byte, 4096)
	for {
		n, err := unix.Getdents(dir, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return out, err
		}
		if err := eachDirent(buf[:n], func(n int) { out = append(out, n) }); err != nil {
			return out, err
		}
	}
}

// readAt reads a whole file below a directory.
func readAt(dir int, path string, buf []byte) ([]byte, error) {
	fd, err := openRetry(dir, path, unix.O_RDONLY)
	if err != nil {
		return buf, err
	}
	defer closeFD(fd)
	return readAll(fd, buf)
}

// namespaceID is the kernel's unique id of a namespace (NS_GET_ID, Linux 6.18).
func namespaceID(fd int) (uint64, error) { return unix.IoctlGetUint64(fd, unix.NS_GET_ID) }

// childrenFile reports whether the kernel has children files at all
// (CONFIG_PROC_CHILDREN).
func childrenFile() bool {
	var st unix.Stat_t
	return unix.Stat("/proc/thread-self/children", &st) == nil
}
