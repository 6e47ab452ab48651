package identity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Sockets lists the TCP sockets of the network namespace that pid is in.
func (l *local) Sockets(ctx context.Context, pid int) ([]Socket, error) {
	dir := "/proc/self/net/"
	if pid != 0 {
		dir = procPath(pid) + "/net/"
		if !l.facts.Procfs {
			return nil, fmt.Errorf("list sockets: %w: %w", ErrUnverifiable, errNoProcfs)
		}
	}
	out, err := readTCP(dir + "tcp")
	if err != nil {
		return nil, fmt.Errorf("list sockets: %w: %w", ErrUnverifiable, err)
	}
	six, err := readTCP(dir + "tcp6")
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // IPv6 may be off
		return nil, fmt.Errorf("list sockets: %w: %w", ErrUnverifiable, err)
	}
	return append(out, six...), ctx.Err()
}

func readTCP(path string) (out []Socket, err error) {
	err = withFile(path, func(text []byte) error {
		out, err = parseTCP(text)
		return err
	})
	return out, err
}

// Holders looks through the open files of processes for sockets.
func (l *local) Holders(ctx context.Context, inodes []uint64, among []int) (Holders, error) {
	out := Holders{ByInode: map[uint64][]int{}}
	if !l.facts.Procfs {
		return out, fmt.Errorf("look for holders: %w: %w", ErrUnverifiable, errNoProcfs)
	}
	wanted := map[string]uint64{}
	for _, n := range inodes {
		wanted["socket:["+strconv.FormatUint(n, 10)+"]"] = n
	}
	pids := among
	if among == nil {
		var err error
		if pids, err = listPids(); err != nil {
			return out, fmt.Errorf("look for holders: %w: %w", ErrUnverifiable, err)
		}
	}
	for _, pid := range pids {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if err := heldBy(pid, wanted, out.ByInode); err != nil && l.couldHold(pid, err) {
			out.Unreadable = append(out.Unreadable, pid)
		}
	}
	return out, nil
}

func listPids() ([]int, error) {
	dir, err := openRetry(unix.AT_FDCWD, "/proc", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer closeFD(dir)
	return listNumbers(dir)
}

// heldBy looks through one process's descriptors.
func heldBy(pid int, wanted map[string]uint64, found map[uint64][]int) error {
	dir, err := openRetry(unix.AT_FDCWD, procPath(pid)+"/fd", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer closeFD(dir)
	fds, err := listNumbers0(dir)
	if err != nil {
		return err
	}
	var buf [64]byte
	for _, fd := range fds {
		n, err := unix.Readlinkat(dir, fd, buf[:])
		if err != nil {
			if absent(err) {
				continue // closed meanwhile
			}
			return err
		}
		inode, ok := wanted[string(buf[:n])]
		if ok && !slices.Contains(found[inode], pid) {
			found[inode] = append(found[inode], pid)
		}
	}
	return nil
}

// listNumbers0 lists names with "0" among them, which is no pid but is a descriptor.
func listNumbers0(dir int) ([]string, error) {
	tids, err := listNumbers(dir)
	names := make([]string, 0, len(tids)+1)
	names = append(names, "0")
	for _, n := range tids {
		names = append(names, strconv.Itoa(n))
	}
	return names, err
}

// couldHold reports whether a process whose open files could not be read may
// hold a socket: not one that has ended, nor a kernel thread.
func (l *local) couldHold(pid int, err error) bool {
	if row, rowErr := readRow(procPath(pid)+"/", pid, 0); rowErr == nil {
		return !row.Kernel && !dead(row)
	}
	if !absent(err) && !errors.Is(err, os.ErrPermission) {
		return true
	}
	h, openErr := l.Open(pid)
	if openErr != nil {
		return !errors.Is(openErr, ErrGone)
	}
	defer h.Close()
	return h.Verify().Verdict != Gone
}
