package identity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// freezer is the file that stops and continues a cgroup (Linux 5.2).
const freezer = "cgroup.freeze"

// Freezing reads what was written last, by whomever. That a cgroup above it is frozen
// it does not say.
func (d *cgroupDir) Freezing() (bool, error) {
	text, err := d.read(freezer)
	return strings.TrimSpace(text) == "1", d.noFreezer(err)
}

// SetFrozen returns before anybody is frozen.
func (d *cgroupDir) SetFrozen(on bool) error {
	if d.freeze == 0 {
		fd, err := openRetry(d.fd, freezer, unix.O_WRONLY)
		if err != nil {
			return d.noFreezer(err)
		}
		d.freeze = fd
	}
	text := []byte("0")
	if on {
		text = []byte("1")
	}
	err := retry(func() error { _, err := unix.Pwrite(d.freeze, text, 0); return err })
	if errors.Is(err, unix.ENODEV) {
		return errRemoved
	}
	return err
}

// noFreezer tells a kernel without a freezer from a cgroup that was removed.
func (d *cgroupDir) noFreezer(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist) && d.there():
		return fmt.Errorf("%w: this kernel has no %s", ErrUnsupported, freezer)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: %w", fs.ErrPermission, err)
	}
	return err
}

// AwaitFrozen polls cgroup.events, which wakes who polls it when it changes.
func (d *cgroupDir) AwaitFrozen(ctx context.Context, deadline time.Time) (bool, error) {
	fd, err := openRetry(d.fd, "cgroup.events", unix.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer closeFD(fd)
	set := &waitSet{fds: []unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}}
	stop, err := set.wakeBy(ctx)
	if err != nil {
		return false, err
	}
	defer stop()
	for {
		text, err := readFrom(fd, make([]byte, 0, 128), true)
		if errors.Is(err, unix.ENODEV) {
			return false, errRemoved
		}
		if err != nil || ctx.Err() != nil || passed(deadline) || saysFrozen(text) {
			return err == nil && saysFrozen(text), err
		}
		if _, err = unix.Poll(set.fds, set.timeout(deadline)); err != nil && !errors.Is(err, unix.EINTR) {
			return false, fmt.Errorf("poll cgroup.events: %w", err)
		}
	}
}
