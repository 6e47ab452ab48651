//go:build !unix || solaris || aix

package flock

import (
	"io/fs"
	"os"
)

// Lock errors with ErrUnsupported: hob has no state folder on this system.
func Lock(*os.File, bool) error { return ErrUnsupported }

// Unlock errors with ErrUnsupported.
func Unlock(*os.File) error { return ErrUnsupported }

// Owner is -1: the system has no uids.
func Owner(fs.FileInfo) int { return -1 }

// Writable errors with ErrUnsupported.
func Writable(string) error { return ErrUnsupported }

// ErrQuota is what a write fails with when the user's quota is used up.
var ErrQuota = ErrUnsupported
