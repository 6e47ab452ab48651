package identity

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// linuxKernel is the real pinner and the real bareSys.
type linuxKernel struct {
	facts         *Facts
	countsThreads func() bool // a folder of threads says how many there are, and there are children files
}

func (linuxKernel) pin(pid int) (int, error) { return unix.PidfdOpen(pid, 0) }

func (linuxKernel) unpin(fd int) { _ = unix.Close(fd) }

// id checks the filesystem first, until it is known: before Linux 6.9 all pidfds are
// one anonymous inode, and a bare comparison would call every process the recorded
// one. A 32-bit kernel cuts the inode to half, so there it is no identity either.
func (k linuxKernel) id(fd int) (*uint64, error) {
	if bits.UintSize == 32 {
		return nil, nil
	}
	if k.facts == nil || !k.facts.Pidfs {
		var fs unix.Statfs_t
		if err := retry(func() error { return unix.Fstatfs(fd, &fs) }); err != nil {
			return nil, fmt.Errorf("fstatfs of a pidfd: %w", err)
		}
		if int64(fs.Type) != unix.PID_FS_MAGIC { //nolint:unconvert // 32 bits on some systems
			return nil, nil
		}
	}
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return nil, fmt.Errorf("fstat of a pidfd: %w", err)
	}
	ino := st.Ino
	return &ino, nil
}

// ended polls a pidfd: readable once every thread has exited, and hung up once
// reaped (Linux ≥ 6.9). An older kernel does not say hung up; there signal 0
// through the pidfd tells a zombie from one that has been reaped.
func (linuxKernel) ended(fd int) (life, error) {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	err := retry(func() error { _, err := unix.Poll(p, 0); return err })
	switch {
	case err != nil:
		return living, fmt.Errorf("poll of a pidfd: %w", err)
	case p[0].Revents&unix.POLLNVAL != 0:
		return living, fmt.Errorf("poll of a pidfd: %w", unix.EBADF)
	case p[0].Revents == 0:
		return living, nil
	case p[0].Revents&unix.POLLHUP != 0:
		return reaped, nil
	}
	if errors.Is(unix.PidfdSendSignal(fd, 0, nil, 0), unix.ESRCH) {
		return reaped, nil
	}
	return zombie, nil
}

func (linuxKernel) signal(fd int, sig syscall.Signal) error {
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// pinnedUID asks the pidfd (PIDFD_GET_INFO, Linux ≥ 6.13), which works under
// hidepid too, else the status file.
func (k linuxKernel) pinnedUID(fd, pid int) int {
	var info unix.PidfdInfo
	info.Mask = 1 << 1 // PIDFD_INFO_CREDS
	if err := unix.IoctlPidfdInfo(fd, &info); err == nil && info.Mask&(1<<1) != 0 {
		return int(info.Ruid)
	}
	if k.facts.Procfs {
		if s, err := readStatus(procPath(pid)); err == nil {
			return s.uid
		}
	}
	return -1
}

func (k linuxKernel) tgid(pid int) (int, error) {
	if !k.facts.Procfs {
		return 0, errNoProcfs
	}
	s, err := readStatus(procPath(pid))
	return s.tgid, err
}

func (k linuxKernel) row(pid int, want Field) (Process, error) {
	if !k.facts.Procfs {
		return Process{}, errNoProcfs
	}
	p, err := readRow(procPath(pid)+"/", pid, want)
	if err == nil && want&WantPidfs != 0 {
		k.addPidfs(&p)
	}
	return p, err
}

// leaderRow reads through one descriptor of /proc/PID, which stands for one
// process: nothing can be reused between the files.
func (k linuxKernel) leaderRow(pid int, want Field) (Process, error) {
	if !k.facts.Procfs {
		return Process{}, fmt.Errorf("%w: %w", ErrUnverifiable, errNoProcfs)
	}
	fd, err := openRetry(unix.AT_FDCWD, procPath(pid), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return Process{}, k.bareError(pid, err)
	}
	defer closeFD(fd)
	base := "/proc/self/fd/" + strconv.Itoa(fd)
	s, err := readStatus(base)
	if err != nil {
		return Process{}, k.bareError(pid, err)
	}
	if s.tgid != pid {
		return Process{}, fmt.Errorf("%w: pid %d is a thread of process %d", ErrGone, pid, s.tgid)
	}
	p, err := readRow(base+"/", pid, want)
	if err != nil {
		return Process{}, k.bareError(pid, err)
	}
	return p, nil
}

// bareError tells absence from not being shown: under hidepid procfs has no
// entry for a process that kill(2) knows.
func (k linuxKernel) bareError(pid int, err error) error {
	if !absent(err) {
		return fmt.Errorf("%w: %w", ErrUnverifiable, err)
	}
	sigErr := unix.Kill(pid, 0) //nolint:forbidigo // signal 0 is a question
	if errors.Is(sigErr, unix.ESRCH) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return fmt.Errorf("%w: %w", ErrUnverifiable, hidden(err))
}

// kill is for the unpinned way alone (bare.go), which verifies before and after.
func (linuxKernel) kill(pid int, sig syscall.Signal) error {
	return unix.Kill(pid, sig) //nolint:forbidigo // row 8: there is no pin to signal through
}

func (k linuxKernel) addPidfs(p *Process) {
	p.Missing |= WantPidfs
	fd, err := k.pin(p.PID)
	if err != nil {
		return
	}
	defer k.unpin(fd)
	if id, err := k.id(fd); err == nil && id != nil {
		p.PIDFS = id
		p.Missing &^= WantPidfs
	}
}

// errNoProcfs: rows are read from procfs, and the one on /proc (if any) is not
// of our pid namespace, so its numbers are other processes'.
var errNoProcfs = errors.New("/proc shows no procfs of this pid namespace")

func procPath(pid int) string { return "/proc/" + strconv.Itoa(pid) }

// retry repeats a system call that a signal has interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// closeFD closes a descriptor that was only read from: there is nothing to lose.
func closeFD(fd int) { _ = unix.Close(fd) }

func openRetry(dir int, path string, flags int) (fd int, err error) {
	err = retry(func() error { fd, err = unix.Openat(dir, path, flags|unix.O_CLOEXEC, 0); return err })
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}
