// Package flock locks whole files with flock(2), says whose a file is, and whether a folder takes any.
//
// flock, and not fcntl(F_SETLK): an flock lock belongs to the open file, dies
// with its holder however that ends, and is not lost when some other part of
// the program opens and closes the same file.
package flock

import "errors"

// Errors of Lock, to be matched with errors.Is.
var (
	ErrHeld        = errors.New("locked by another process")
	ErrUnsupported = errors.New("file locks are not supported on this system")
)
