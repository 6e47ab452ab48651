//go:build darwin || freebsd || openbsd

package identity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// local is the real kernel of macOS, FreeBSD or OpenBSD, by sysctl(3). None of
// them pins a process that is not a child, so every handle is unpinned.
type local struct {
	way   bareWay
	facts Facts
}

// Local is the host that the caller runs on. What cannot be seen is in its Facts.
func Local() (Host, error) {
	f := readFacts()
	return &local{facts: f, way: bareWay{sys: bsdKernel{}, facts: f, row: "8"}}, nil
}

// Facts describes the host.
func (l *local) Facts() Facts { return l.facts }

// Now is the wall clock.
func (l *local) Now() time.Time { return time.Now() }

// Verify looks at a recorded process.
func (l *local) Verify(ref Ref) (Handle, Finding) { return l.way.verify(ref) }

// Open records whatever process has the number now.
func (l *local) Open(pid int) (Handle, error) {
	if pid < 1 || pid > maxPID(runtime.GOOS) {
		return nil, fmt.Errorf("open pid %d: %w: not a pid", pid, ErrUnverifiable)
	}
	return l.way.open(pid, l.Now())
}

// Children cannot be told without a listing.
func (l *local) Children(pid int) ([]int, error) {
	return nil, fmt.Errorf("children of pid %d: %w: only a listing tells", pid, ErrUnsupported)
}

// Snapshot lists all processes by one sysctl.
func (l *local) Snapshot(ctx context.Context, want Field) (*Table, error) {
	t, err := snapshotBSD(want)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w: %w", ErrUnverifiable, err)
	}
	t.Hidden = l.facts.HidePID
	if !t.SawSelf {
		return t, fmt.Errorf("list processes: %w: the listing does not hold our own pid", ErrUnverifiable)
	}
	return t, ctx.Err()
}

func snapshotBSD(want Field) (*Table, error) {
	boot, raw, err := steady(sysctlAll)
	if err != nil {
		return nil, err
	}
	t := &Table{}
	err = layout.parseAll(raw, int64(os.Getpagesize()), func(p Process, start int64) {
		if p.PID == 0 {
			return // the kernel itself
		}
		finish(&p, start, boot, want)
		t.SawSelf = t.SawSelf || p.PID == os.Getpid()
		t.Procs = append(t.Procs, p)
	})
	return t, err
}

// steady makes a look between two equal readings of the boot time: FreeBSD adds
// it to every start time, and a step of the clock would shift it in between.
func steady(look func() ([]byte, error)) (boot int64, raw []byte, err error) {
	for range 5 {
		before, err := bootTime()
		if err != nil {
			return 0, nil, err
		}
		if raw, err = look(); err != nil {
			return 0, nil, err
		}
		if after, err := bootTime(); err == nil && after == before {
			return before, raw, nil
		}
	}
	return 0, nil, errors.New("the boot time does not keep still")
}

func bootTime() (int64, error) {
	b, err := unix.SysctlRaw("kern.boottime")
	if err != nil {
		return 0, fmt.Errorf("sysctl kern.boottime: %w", err)
	}
	return parseTimeval(b)
}

// finish adds what does not come with the row.
func finish(p *Process, start, boot int64, want Field) {
	if start != 0 {
		p.Start = startToken(layout.source, uint64(start-startOffset(boot)))
		p.Started = time.UnixMicro(start)
	}
	if layout.sid < 0 {
		p.SID, _ = unix.Getsid(p.PID)
	}
	p.Missing = want &^ (WantUser | WantSignals | WantStarted)
	if p.State != 'Z' {
		addArgs(p, want)
	}
}

// bsdKernel reads rows by sysctl.
type bsdKernel struct{}

func (bsdKernel) leaderRow(pid int, want Field) (Process, error) {
	boot, raw, err := steady(func() ([]byte, error) { return sysctlPID(pid) })
	if errors.Is(err, unix.ESRCH) || err == nil && len(raw) == 0 {
		return Process{}, fmt.Errorf("%w: sysctl knows no pid %d", ErrGone, pid)
	}
	if err != nil {
		return Process{}, fmt.Errorf("%w: %w", ErrUnverifiable, err)
	}
	p, start, err := layout.parse(raw, int64(os.Getpagesize()))
	if err != nil {
		return Process{}, fmt.Errorf("%w: %w", ErrUnverifiable, err)
	}
	if p.PID != pid { // FreeBSD finds a process by its thread's id, too
		return Process{}, fmt.Errorf("%w: the number is a thread of process %d", ErrGone, p.PID)
	}
	finish(&p, start, boot, want)
	return p, nil
}

func (bsdKernel) kill(pid int, sig syscall.Signal) error {
	return unix.Kill(pid, sig) //nolint:forbidigo // there is no pin to signal through
}

// closeFD closes a descriptor that was only waited on.
func closeFD(fd int) { _ = unix.Close(fd) }

// factsBSD is what the three have in common.
func factsBSD() Facts {
	f := Facts{OS: runtime.GOOS, InitPIDNS: true, UID: os.Geteuid()}
	var err error
	if f.Host, err = os.Hostname(); err != nil {
		f.Incomplete = append(f.Incomplete, "host name: "+err.Error())
	}
	return f
}

// bootedAt is the boot id of a system that has no better one.
func (f *Facts) bootedAt() {
	at, err := bootTime()
	if err != nil {
		f.Incomplete = append(f.Incomplete, "boot id: "+err.Error())
		return
	}
	f.Boot = weakBoot + strconv.FormatInt(at, 10)
}
