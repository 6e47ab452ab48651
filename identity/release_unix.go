//go:build unix

package identity

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// KernelRelease is the release of the running kernel, as uname -r shows it.
func KernelRelease() (string, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", fmt.Errorf("ask for the kernel's release: %w", err)
	}
	return unix.ByteSliceToString(name.Release[:]), nil
}
