package tasks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"hob/identity/cut"
	"hob/identity/flock"
)

// ErrNoLocks means that the file system of the state folder refuses locks.
var ErrNoLocks = errors.New("its file system refuses locks (flock)")

// Unlock gives a lock back. It may be called more than once.
type Unlock func()

// flockFile is replaced in tests by a file system that refuses locks.
var flockFile = flock.Lock

// lock waits for the lock on path until ctx is done. Whoever TellWaits names is told
// of a wait.
func lock(ctx context.Context, path string) (Unlock, error) {
	tell := tellOnce(ctx)
	for {
		unlock, err := lockOnce(ctx, path, tell)
		if !errors.Is(err, errMoved) {
			return unlock, err
		}
	}
}

// tryLock takes the lock on path if nobody has it.
func tryLock(path string) (Unlock, bool, error) {
	for {
		unlock, err := lockOnce(context.Background(), path, nil)
		switch {
		case errors.Is(err, errMoved):
		case errors.Is(err, flock.ErrHeld):
			return nil, false, nil
		default:
			return unlock, err == nil, err
		}
	}
}

// errMoved means that the file was renamed away (with its run, into the
// archive) while its lock was waited for: the lock protects nothing any more.
var errMoved = errors.New("lock file was moved")

// lockOnce locks the file that is at path now. Without tell it does not wait.
func lockOnce(ctx context.Context, path string, tell tellWait) (Unlock, error) {
	f, err := openFile(path, os.O_RDWR|os.O_CREATE)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("lock %s: %w", filepath.Dir(path), ErrNoRecord)
	}
	if err != nil {
		return nil, noLockFile(path, fmt.Errorf("lock: %w", err))
	}
	unlock, err := lockFile(ctx, f, path, tell)
	if err != nil {
		return nil, err
	}
	if !stillAt(f, path) {
		unlock()
		return nil, noLockFile(path, errMoved)
	}
	cut.Point("locked", filepath.Base(path))
	return unlock, nil
}

// stillAt reports whether path still names the open file, and that is one.
func stillAt(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil || !open.Mode().IsRegular() {
		return false
	}
	now, err := os.Lstat(path)
	return err == nil && os.SameFile(open, now)
}

// noLockFile is err, unless what stands at path is no file that could be locked at all:
// then whether somebody holds the lock cannot be told, which a RecordError says.
func noLockFile(path string, err error) error {
	bad := func(err error) error { return &RecordError{Path: path, Kind: Unusable, Err: err} }
	fi, statErr := os.Lstat(path)
	switch {
	case statErr == nil && !fi.Mode().IsRegular():
		return bad(fmt.Errorf("it is %s, and not a file to lock", kindOfFile(fi.Mode())))
	case errors.Is(err, fs.ErrPermission):
		return bad(err)
	}
	return err
}

// lockable is what is wrong with a lock file that will be needed, nil if it is not there.
func lockable(path string) error {
	if err := noLockFile(path, nil); err != nil {
		return err
	}
	f, err := openFile(path, os.O_RDWR)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return noLockFile(path, fmt.Errorf("lock: %w", err))
	}
	return f.Close()
}

// kindOfFile is what stands in the place of a file, in words.
func kindOfFile(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// lockFile locks f and closes it, by the Unlock or when it fails.
func lockFile(ctx context.Context, f *os.File, path string, tell tellWait) (Unlock, error) {
	unlock := Unlock(sync.OnceFunc(func() {
		_ = flock.Unlock(f) // the close gives it back too, but for a child between fork and exec
		_ = f.Close()
	}))
	err := flockFile(f, false)
	if errors.Is(err, flock.ErrHeld) && tell != nil {
		return waitLock(ctx, f, path, unlock, tell)
	}
	if err != nil {
		f.Close()
		return nil, lockError(path, err)
	}
	return unlock, nil
}

// waitLock waits in flock(2) itself, so it is woken by the release. When ctx
// ends first, the thread stays there and gives the lock back as it gets it.
func waitLock(ctx context.Context, f *os.File, path string, unlock Unlock, tell tellWait) (Unlock, error) {
	got := make(chan error)
	go func() {
		err := flockFile(f, true)
		select {
		case got <- err:
		case <-ctx.Done():
			unlock()
		}
	}()
	long := time.NewTimer(silentWait)
	defer long.Stop()
	for {
		select {
		case err := <-got:
			if err != nil {
				f.Close()
				return nil, lockError(path, err)
			}
			return unlock, nil
		case <-long.C:
			tell(f, path)
		case <-ctx.Done():
			return nil, fmt.Errorf("lock %s: another hob holds it: %w", path, context.Cause(ctx))
		}
	}
}

func lockError(path string, err error) error {
	if errors.Is(err, flock.ErrHeld) {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	return fmt.Errorf("lock %s: %w: %w", path, ErrNoLocks, err)
}
