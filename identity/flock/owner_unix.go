//go:build unix && !solaris && !aix

package flock

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Owner is the uid that a file belongs to, -1 where the system has none.
func Owner(fi fs.FileInfo) int {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// Writable errors when files cannot be made in a folder, or it is not there.
func Writable(dir string) error {
	return os.NewSyscallError("access", unix.Access(dir, unix.W_OK|unix.X_OK))
}

// ErrQuota is what a write fails with when the user's quota is used up.
const ErrQuota = syscall.EDQUOT
