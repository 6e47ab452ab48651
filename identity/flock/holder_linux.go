package flock

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Holder is the pid of the process that holds the lock on f. It must have the file
// open: one that has handed the lock on to a child and ended leaves a number in the
// kernel's list that may be another process's by now.
func Holder(f *os.File) (int, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return 0, os.NewSyscallError("fstat", err)
	}
	list, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0, err
	}
	for _, pid := range takers(list, st.Ino) {
		if opens(pid, st) {
			return pid, nil
		}
	}
	return 0, ErrUnknown
}

// opens reports whether a process is seen to have the file open. Device numbers in the
// kernel's list are not those of stat(2) on every file system.
func opens(pid int, file unix.Stat_t) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		var st unix.Stat_t
		if unix.Stat(filepath.Join(dir, e.Name()), &st) == nil && st.Dev == file.Dev && st.Ino == file.Ino {
			return true
		}
	}
	return false
}
