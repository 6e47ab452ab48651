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
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// local is the real kernel of Windows. A process handle pins: the number is not
// given away while one is open.
type local struct {
	*verifier
}

// Local is the host that the caller runs on.
func Local() (Host, error) {
	return &local{&verifier{sys: winKernel{}, facts: readFacts()}}, nil
}

// Facts describes the host.
func (l *local) Facts() Facts { return l.facts }

// Now is the wall clock.
func (l *local) Now() time.Time { return time.Now() }

// Verify looks at a recorded process.
func (l *local) Verify(ref Ref) (Handle, Finding) { return l.verify(ref) }

// Open pins whatever process has the number now.
func (l *local) Open(pid int) (Handle, error) { return l.open(pid, l.Now()) }

// Children cannot be told without a listing.
func (l *local) Children(pid int) ([]int, error) {
	return nil, fmt.Errorf("children of pid %d: %w: only a listing tells", pid, ErrUnsupported)
}

func readFacts() Facts {
	f := Facts{OS: runtime.GOOS, InitPIDNS: true, UID: -1, Pidfd: true}
	f.Host, _ = os.Hostname()
	f.Machine = registryText(`SOFTWARE\Microsoft\Cryptography`, "MachineGuid")
	f.Boot = bootCount()
	if f.Boot == "" {
		f.Incomplete = append(f.Incomplete, "boot id: the registry does not tell it")
	}
	return f
}

func registryText(path, name string) string {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.QUERY_VALUE|registry.WOW64_64KEY)
	if err != nil {
		return ""
	}
	defer func() { _ = k.Close() }()
	s, _, _ := k.GetStringValue(name)
	return s
}

// bootCount is the number that the memory manager counts boots with.
func bootCount() string {
	const path = `SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters`
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.QUERY_VALUE)
	if err != nil {
		return ""
	}
	defer func() { _ = k.Close() }()
	n, _, err := k.GetIntegerValue("BootId")
	if err != nil {
		return ""
	}
	return "boot:" + strconv.FormatUint(n, 10)
}

// Snapshot lists processes by a toolhelp snapshot.
func (l *local) Snapshot(ctx context.Context, want Field) (*Table, error) {
	t := &Table{}
	err := eachToolhelp(func(e *windows.ProcessEntry32) {
		if e.ProcessID == 0 {
			return // the idle process
		}
		p := rowOf(e, want)
		t.SawSelf = t.SawSelf || p.PID == os.Getpid()
		t.Procs = append(t.Procs, p)
	})
	if err != nil || !t.SawSelf {
		return t, fmt.Errorf("list processes: %w: %w", ErrUnverifiable, errors.Join(err, ctx.Err()))
	}
	return t, ctx.Err()
}

func eachToolhelp(each func(*windows.ProcessEntry32)) error {
	snap, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(snap) }()
	e := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(snap, &e); err == nil; err = windows.Process32Next(snap, &e) {
		each(&e)
	}
	if errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return nil
	}
	return err
}

func rowOf(e *windows.ProcessEntry32, want Field) Process {
	p := Process{
		PID: int(e.ProcessID), PPID: int(e.ParentProcessID), Threads: int(e.Threads), UID: -1, RSS: -1,
		Comm: windows.UTF16ToString(e.ExeFile[:]), State: 'S', Missing: want &^ WantStarted,
	}
	fd, err := (winKernel{}).pin(p.PID)
	if err != nil {
		p.Missing = want
		return p
	}
	defer winKernel{}.unpin(fd)
	_ = addTimes(windows.Handle(fd), &p)
	return p
}

func addTimes(h windows.Handle, p *Process) error {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(h, &created, &exited, &kernel, &user); err != nil {
		return err
	}
	p.Start = startToken("windows", uint64(created.HighDateTime)<<32|uint64(created.LowDateTime))
	p.Started = time.Unix(0, created.Nanoseconds())
	return nil
}

// winKernel is the pinner.
type winKernel struct{}

// pin opens the process, with the right to end it where that is given. The
// system rounds a number down to the next multiple of four, hence the check.
func (winKernel) pin(pid int) (int, error) {
	const look = windows.PROCESS_QUERY_LIMITED_INFORMATION | windows.SYNCHRONIZE
	h, err := windows.OpenProcess(look|windows.PROCESS_TERMINATE, false, uint32(pid))
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		h, err = windows.OpenProcess(look, false, uint32(pid))
	}
	switch {
	case errors.Is(err, windows.ERROR_INVALID_PARAMETER):
		return -1, syscall.ESRCH
	case errors.Is(err, windows.ERROR_ACCESS_DENIED):
		return -1, fmt.Errorf("open process: %w", syscall.EACCES)
	case err != nil:
		return -1, fmt.Errorf("open process: %w", err)
	}
	if id, err := windows.GetProcessId(h); err != nil || int(id) != pid {
		_ = windows.CloseHandle(h)
		return -1, syscall.ESRCH
	}
	return int(h), nil
}

func (winKernel) unpin(fd int) { _ = windows.CloseHandle(windows.Handle(fd)) }

func (winKernel) id(int) (*uint64, error) { return nil, nil }

func (winKernel) ended(fd int) (life, error) {
	ev, err := windows.WaitForSingleObject(windows.Handle(fd), 0)
	switch {
	case err != nil:
		return living, err
	case ev == windows.WAIT_OBJECT_0:
		return reaped, nil
	}
	return living, nil
}

// signal knows only the end. There is no way to ask a console program of
// another console to stop.
func (winKernel) signal(fd int, sig syscall.Signal) error {
	switch sig {
	case 0:
		return nil
	case syscall.SIGKILL:
		err := windows.TerminateProcess(windows.Handle(fd), 1)
		if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
			return os.ErrPermission
		}
		return err
	}
	return fmt.Errorf("%w: Windows has no such signal", ErrUnsupported)
}

func (k winKernel) row(pid int, want Field) (Process, error) {
	fd, err := k.pin(pid)
	if err != nil {
		return Process{}, err
	}
	defer k.unpin(fd)
	p := Process{PID: pid, UID: -1, RSS: -1, Threads: 1, State: 'S', Missing: want &^ WantStarted}
	if err := addTimes(windows.Handle(fd), &p); err != nil {
		return p, err
	}
	var basic windows.PROCESS_BASIC_INFORMATION
	err = windows.NtQueryInformationProcess(windows.Handle(fd), windows.ProcessBasicInformation, unsafe.Pointer(&basic), uint32(unsafe.Sizeof(basic)), nil)
	p.PPID = int(basic.InheritedFromUniqueProcessId)
	return p, err
}

func (winKernel) tgid(pid int) (int, error) { return pid, nil }

func (winKernel) pinnedUID(int, int) int { return -1 }

// lookAgain is how often processes beyond the first 63 are looked at: one wait
// takes 64 objects.
const lookAgain = 50 * time.Millisecond

// Wait blocks on the process handles and on an event that ctx sets.
func (l *local) Wait(ctx context.Context, hs []Handle, deadline time.Time) error {
	event, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		return fmt.Errorf("wait for processes: create event: %w", err)
	}
	set := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() { defer close(set); _ = windows.SetEvent(event) })
	defer func() {
		if !unhook() {
			<-set
		}
		_ = windows.CloseHandle(event)
	}()
	objects := []windows.Handle{event}
	for _, h := range hs {
		p, ok := h.(*pinned)
		if !ok {
			return fmt.Errorf("wait for processes: %w: a %T is not a handle of this host", ErrUnsupported, h)
		}
		fd, ok := p.use()
		if !ok {
			return fmt.Errorf("wait for processes: %w", errClosed)
		}
		defer p.done()
		objects = append(objects, windows.Handle(fd))
	}
	return waitObjects(ctx, hs, objects, deadline)
}

func waitObjects(ctx context.Context, hs []Handle, objects []windows.Handle, deadline time.Time) error {
	many := len(objects) > 64
	objects = objects[:min(64, len(objects))]
	for {
		ev, err := windows.WaitForMultipleObjects(objects, false, timeoutWin(many, deadline))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("wait for processes: %w", err)
		case ev != uint32(windows.WAIT_TIMEOUT), !deadline.IsZero() && !time.Now().Before(deadline):
			return nil
		}
		for _, h := range hs {
			if h.Verify().Verdict == Gone {
				return nil
			}
		}
	}
}

func timeoutWin(many bool, deadline time.Time) uint32 {
	left := time.Duration(-1)
	if !deadline.IsZero() {
		left = max(0, time.Until(deadline))
	}
	if many && (left < 0 || left > lookAgain) {
		left = lookAgain
	}
	if left < 0 {
		return windows.INFINITE
	}
	return uint32(min(int64(left+time.Millisecond-1)/int64(time.Millisecond), 1<<30))
}
