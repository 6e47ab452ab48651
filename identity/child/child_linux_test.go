package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hob/identity"
)

// roleEnv has the test binary be a parent of its own: the tests of a Reaper
// must not reap what package testing or another test started.
const roleEnv = "HOB_CHILD_TEST"

func TestMain(m *testing.M) {
	if name := os.Getenv(roleEnv); name != "" {
		os.Unsetenv(roleEnv)
		if err := roles[name](); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var roles = map[string]func() error{
	"instant": instant, "orphans": orphans, "failed": failed, "pinned": pinned, "masked": masked, "stamped": stamped, "punctual": punctuality,
}

func TestReaper(t *testing.T) {
	for name := range roles {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), roleEnv+"="+name)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// events collects what a Reaper reports.
type events struct {
	mu    sync.Mutex
	ended []Exit
	empty int
	more  chan struct{}
}

func run(r *Reaper) *events {
	e := &events{more: make(chan struct{}, 1)}
	go r.Run(func(ended []Exit, empty bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.ended = append(e.ended, ended...)
		if empty {
			e.empty++
		}
		select {
		case e.more <- struct{}{}:
		default:
		}
	})
	return e
}

func (e *events) until(is func() bool) error {
	end := time.After(30 * time.Second)
	for {
		e.mu.Lock()
		done := is()
		e.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-e.more:
		case <-end:
			return errors.New("waited in vain")
		}
	}
}

func sh(script string) Command {
	return Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ(), Dir: "/", Files: []uintptr{0, 1, 2}}
}

// instant: children that end at once can still be read while record runs, and
// no status is lost.
func instant() error {
	h, err := identity.Local()
	if err != nil {
		return err
	}
	r := NewReaper()
	e := run(r)
	want := map[int]int{}
	for i := range 300 {
		c := Command{Path: "/bin/sh", Args: []string{"sh", "-c", "exit " + strconv.Itoa(i%7)}, Dir: "/", Files: []uintptr{0, 1, 2}}
		pid, err := r.Start(c, func(pid, pidfd int) error {
			time.Sleep(2 * time.Millisecond) // by now it has ended
			pin, err := Pin(h, pid, pidfd)
			if err != nil {
				return err
			}
			defer pin.Close()
			if ref := pin.Ref(); ref.PID != pid || ref.Start == "" {
				return errors.New("an incomplete Ref")
			}
			return nil
		})
		if err != nil {
			return err
		}
		want[pid] = i % 7
	}
	if err := e.until(func() bool { return len(e.ended) == 300 }); err != nil {
		return err
	}
	for _, x := range e.ended {
		if want[x.PID] != x.Code || x.Signal != 0 {
			return errors.New("a wrong status")
		}
	}
	if !r.Empty() || e.empty == 0 {
		return errors.New("not empty")
	}
	return nil
}

// orphans: what the tree leaves behind is adopted, and reaped with its status.
func orphans() error {
	if err := Subreap(); err != nil {
		return err
	}
	r := NewReaper()
	e := run(r)
	if _, err := r.Start(sh(`(setsid sh -c 'sleep 0.2; exit 9' &) ; kill -KILL $$`), func(_, fd int) error { closePidfd(fd); return nil }); err != nil {
		return err
	}
	if err := e.until(func() bool { return e.empty > 0 }); err != nil {
		return err
	}
	if len(e.ended) < 2 || e.empty != 1 {
		return errors.New("the orphan was not adopted")
	}
	killed := slices.ContainsFunc(e.ended, func(x Exit) bool { return x.Signal == syscall.SIGKILL })
	nine := slices.ContainsFunc(e.ended, func(x Exit) bool { return x.Code == 9 })
	if !killed || !nine {
		return errors.New("a status is missing")
	}
	return nil
}

// failed: a program that cannot be executed leaves no child and no descriptor.
func failed() error {
	r := NewReaper()
	run(r)
	before, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for range 20 {
		c := Command{Path: "/no/such/program", Args: []string{"x"}, Dir: "/", Files: []uintptr{0, 1, 2}}
		if pid, err := r.Start(c, nil); pid != 0 || !errors.Is(err, syscall.ENOENT) {
			return errors.New("it was started")
		}
	}
	after, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	if len(after) > len(before)+2 || !r.Empty() {
		return errors.New("something is left")
	}
	return nil
}

// pinned: the Handle of Pin is of the child, and signals it.
func pinned() error {
	h, err := identity.Local()
	if err != nil {
		return err
	}
	r := NewReaper()
	e := run(r)
	var pin identity.Handle
	pid, err := r.Start(Command{Path: "/bin/sleep", Args: []string{"sleep", "300"}, Dir: "/", Files: []uintptr{0, 1, 2}}, func(pid, fd int) (err error) {
		pin, err = Pin(h, pid, fd)
		return err
	})
	if err != nil {
		return err
	}
	defer pin.Close()
	row, err := pin.Read(identity.WantArgs)
	if err != nil || strings.Join(row.Args, " ") != "sleep 300" || row.PGID != pid {
		return errors.Join(err, errors.New("not the child, or not in a group of its own"))
	}
	if err := pin.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return e.until(func() bool { return len(e.ended) == 1 && e.ended[0].Signal == syscall.SIGTERM && e.ended[0].PID == pid })
}

// masked: a command gets an empty signal mask, whatever the thread that starts
// it has, and that thread keeps its own.
func masked() error {
	r := NewReaper()
	e := run(r)
	runtime.LockOSThread()
	all := unix.Sigset_t{}
	all.Val[0] = 1<<(syscall.SIGUSR1-1) | 1<<(syscall.SIGHUP-1)
	var now unix.Sigset_t
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil); err != nil {
		return err
	}
	// grep itself, for dash empties its mask.
	c := Command{Path: "/bin/grep", Args: []string{"grep", "-q", "SigBlk:.0000000000000000$", "/proc/self/status"}, Dir: "/", Files: []uintptr{0, 1, 2}}
	if _, err := r.Start(c, func(_, fd int) error { closePidfd(fd); return nil }); err != nil {
		return err
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, nil, &now); err != nil {
		return err
	}
	if now.Val[0] != all.Val[0] {
		return errors.New("the thread's own mask was changed")
	}
	return e.until(func() bool { return len(e.ended) == 1 && e.ended[0].Code == 0 })
}

// stamped: a daemon that has forked twice, left the session, cleared its environment
// and, where it may, changed its user still has the number; a second stamp, as of a
// keeper below a keeper, is another one.
func stamped() error {
	h, err := identity.Local()
	if err != nil {
		return err
	}
	outer, err := Stamp(1<<30 + 7)
	if err != nil {
		return err
	}
	inner, err := Stamp(1<<30 + 7)
	if err != nil {
		return err
	}
	if outer != 1<<30+7 || inner >= outer || inner <= outer-nest-2 {
		return fmt.Errorf("the stamps are %d and %d", outer, inner)
	}
	if err := Subreap(); err != nil {
		return err
	}
	setpriv := ""
	if os.Getuid() == 0 {
		setpriv = "setpriv --reuid 65534 --clear-groups"
	}
	r := NewReaper()
	e := run(r)
	if _, err := r.Start(sh("(env -i setsid "+setpriv+" sleep 311 &)"), func(_, fd int) error { closePidfd(fd); return nil }); err != nil {
		return err
	}
	if err := e.until(func() bool { return len(e.ended) > 0 }); err != nil {
		return err
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		table, err := h.Snapshot(context.Background(), identity.WantArgs|identity.WantStamp)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(table.Procs, func(p identity.Process) bool {
			return p.PPID == os.Getpid() && slices.Equal(p.Args, []string{"sleep", "311"})
		})
		if i < 0 {
			continue
		}
		p := table.Procs[i]
		pin, err := h.Open(p.PID)
		if err != nil {
			return err
		}
		defer pin.Close()
		if err := pin.Signal(syscall.SIGKILL); err != nil {
			return err
		}
		if p.Stamp != inner || p.Missing != 0 {
			return fmt.Errorf("the daemon's stamp is %d, missing %b, want %d", p.Stamp, p.Missing, inner)
		}
		return e.until(func() bool { return e.empty > 0 })
	}
	return errors.New("the daemon was not seen")
}

// What goes on beside the question for the caller's limits makes files, and starts
// the tmux server: their umask is the caller's all the while.
func TestCallerLimitsLeaveTheUmask(t *testing.T) {
	old := unix.Umask(0o022)
	defer unix.Umask(old)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no shell is asked: it is about what is done before that
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20000 {
			CallerLimits(ctx)
		}
	}()
	dir := t.TempDir()
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		default:
		}
		path := filepath.Join(dir, "f")
		fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_EXCL|unix.O_CLOEXEC, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		err = errors.Join(unix.Fstat(fd, &st), unix.Close(fd), unix.Unlink(path))
		if err != nil || st.Mode&0o777 != 0o644 {
			t.Fatalf("file %d: mode %o, %v", n, st.Mode&0o777, err)
		}
	}
}

// punctuality: what is started patiently has timers that may be late, and so has what
// it starts; a command of a Reaper has not, and the thread is as it was.
func punctuality() error {
	r := NewReaper()
	e := run(r)
	var late, own int
	before, err := slack()
	if err != nil {
		return err
	}
	c := Command{Path: "/bin/grep", Args: []string{"grep", "-qx", strconv.Itoa(ordinarySlack), "/proc/self/timerslack_ns"}, Dir: "/", Files: []uintptr{0, 1, 2}}
	Patiently(func() {
		out, catErr := exec.Command("cat", "/proc/self/timerslack_ns").Output()
		late, _ = strconv.Atoi(strings.TrimSpace(string(out)))
		_, startErr := r.Start(c, func(_, fd int) error { closePidfd(fd); return nil })
		own, err = slack()
		err = errors.Join(catErr, startErr, err)
	})
	if err != nil || late != patientSlack || own != patientSlack {
		return fmt.Errorf("started patiently: a slack of %d; of the thread: %d, %w", late, own, err)
	}
	if now, err := slack(); now != before {
		return fmt.Errorf("afterwards the thread has a slack of %d and not of %d, %w", now, before, err)
	}
	return e.until(func() bool { return len(e.ended) == 1 && e.ended[0].Code == 0 })
}
