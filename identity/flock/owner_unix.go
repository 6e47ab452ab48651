//go:build unix && !solaris && !aix

package flock

import (
	"io/fs"
	"syscall"
)

// Owner is the uid that a file belongs to, -1 where the system has none.
func Owner(fi fs.FileInfo) int {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// ErrQuota is what a write fails with when the user's quota is used up.
const ErrQuota = syscall.EDQUOT
