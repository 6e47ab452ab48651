package flock

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
)

// ErrUnknown means that who holds a lock cannot be told.
var ErrUnknown = errors.New("who holds it cannot be told")

// takers takes the kernel's list of locks (proc_locks(5)) apart: the pids that have
// taken flock locks on files of this inode number, which other file systems have too.
// Those that wait for one stand below it, behind an arrow.
func takers(list []byte, inode uint64) (pids []int) {
	for line := range bytes.Lines(list) {
		f := bytes.Fields(line)
		if len(f) < 6 || string(f[1]) != "FLOCK" {
			continue
		}
		at := bytes.LastIndexByte(f[5], ':') // MAJOR:MINOR:INODE
		number, err := strconv.ParseUint(string(f[5][at+1:]), 10, 64)
		pid, pidErr := strconv.Atoi(string(f[4]))
		if err == nil && pidErr == nil && at > 0 && number == inode && pid > 0 && !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}
