package tasks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"hob/identity"
	"hob/sweep"
)

func init() {
	roles["tainted"] = taintedRole
	roles["keeper"] = func(args []string) int {
		h, err := identity.Local()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 98
		}
		return RunKeeper(h, args[0], "test")
	}
}

// taintedRole becomes a keeper that has inherited what it must not hand on:
// blocked and ignored signals, and an open file.
func taintedRole([]string) int {
	signal.Ignore(syscall.SIGHUP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGUSR1, syscall.SIGQUIT, syscall.SIGINT, syscall.SIGCHLD, syscall.SIGPIPE)
	runtime.LockOSThread()
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil); err != nil {
		return 90
	}
	if _, err := unix.Open("/dev/null", unix.O_RDONLY, 0); err != nil { // not close-on-exec
		return 91
	}
	err := syscall.Exec(os.Args[0], os.Args, append(os.Environ(), roleEnv+"=keeper"))
	fmt.Fprintln(os.Stderr, err)
	return 92
}

// rig is one task with its keeper, the test binary in that role, on a pty of the test's.
type rig struct {
	t      *testing.T
	h      identity.Host
	run    *RunDir
	dir    *TaskDir
	spec   Spec
	cmd    *exec.Cmd
	pty    *os.File // the outer terminal's other end
	screen screen   // what the pane showed
	hold   chan struct{}
	role   string // of the keeper, "" for keeper
	ended  chan struct{}
	err    error
	refs   map[int]identity.Ref // who had the numbers that were read
}

// screen is what came out of the outer terminal.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func localHost(t *testing.T) identity.Host {
	t.Helper()
	h, err := identity.Local()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// newRig writes the records of a task that runs argv.
func newRig(t *testing.T, kind sweep.Kind, argv ...string) *rig {
	t.Helper()
	r, d := newTask(t)
	g := &rig{t: t, h: localHost(t), run: r, dir: d, ended: make(chan struct{}), refs: map[int]identity.Ref{}}
	t.Cleanup(g.endCgroup) // last: what the test leaves in there on purpose has ended by then
	id, err := randomHex() // in the name of its cgroup, too
	if err := errors.Join(err, r.Write(Run{Name: "chat", ID: id})); err != nil {
		t.Fatal(err)
	}
	g.spec = Spec{
		Run: "chat", Task: "llm", RunID: id, Nonce: "nonce-1", Kind: kind, Args: argv, Dir: t.TempDir(),
		Env: os.Environ(), Lifetime: Detached,
		Stop: sweep.StopPolicy{Signal: syscall.SIGTERM, Grace: patience, TermGrace: 2 * time.Second, Detached: "kill"},
	}
	return g
}

func (g *rig) sh(script string) *rig {
	g.spec.Args = []string{"/bin/sh", "-c", script}
	return g
}

// start writes the records and starts the keeper.
func (g *rig) start() *rig {
	g.t.Helper()
	task := Task{Run: "chat", Task: "llm", Kind: g.spec.Kind, State: Starting, Nonce: g.spec.Nonce, UpdatedAt: time.Now()}
	if err := errors.Join(g.dir.WriteSpec(g.spec), g.dir.WriteTask(task)); err != nil {
		g.t.Fatal(err)
	}
	return g.launch()
}

// launch starts the keeper over the records that are there.
func (g *rig) launch() *rig {
	g.t.Helper()
	g.cmd = exec.Command(os.Args[0], g.dir.SpecPath())
	g.cmd.Env = append(os.Environ(), roleEnv+"="+orElse(g.role, "keeper"), "TMUX=/tmp/hobs,1,0", "TMUX_PANE=%7", "TERM=screen")
	master, slave, err := pty.Open()
	if err != nil {
		g.t.Fatal(err)
	}
	defer slave.Close()
	g.pty = closable(g.t, master)
	g.resize(33, 101)
	g.cmd.Stdin, g.cmd.Stdout, g.cmd.Stderr = slave, slave, slave
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := g.cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	go func() {
		g.err = g.cmd.Wait()
		close(g.ended)
	}()
	if g.hold == nil {
		go io.Copy(&g.screen, g.pty)
	}
	g.t.Cleanup(g.end)
	return g
}

// closable gives a terminal's end back as a file whose Close interrupts a read;
// package pty leaves it in blocking mode, where Close waits for the read.
func closable(t *testing.T, f *os.File) *os.File {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Close(), unix.SetNonblock(fd, true)); err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "pty")
}

func (g *rig) resize(rows, cols uint16) {
	g.t.Helper()
	conn, err := g.pty.SyscallConn()
	if err != nil {
		g.t.Fatal(err)
	}
	set := func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	}
	if e := conn.Control(set); e != nil || err != nil {
		g.t.Fatal(e, err)
	}
}

// end hangs up, which ends keeper and tree, if the test has not.
func (g *rig) end() {
	g.pty.Close()
	select {
	case <-g.ended:
	case <-time.After(patience):
		g.t.Error("the keeper did not end with its terminal")
		_ = g.cmd.Process.Kill()
		<-g.ended
	}
	if g.t.Failed() || testing.Verbose() {
		events, _, _ := g.run.Events()
		for _, e := range events {
			g.t.Log(e.At.Format("05.000"), e.What)
		}
		screen := g.screen.String()
		g.t.Logf("screen: %q", screen[:min(len(screen), 1000)])
	}
}

// endCgroup removes what a keeper that was killed has left.
func (g *rig) endCgroup() {
	g.t.Helper()
	if k, err := g.dir.ReadKeeper(); err == nil && k.Cgroup != nil {
		g.until("its cgroup to be empty", func() bool { return g.h.Cgroups().Discard(*k.Cgroup) == nil })
	}
	if c, err := g.dir.ReadCapture(); err == nil && c.Cgroup != nil {
		g.until("its cgroup to be empty", func() bool { return g.h.Cgroups().Discard(*c.Cgroup) == nil })
	}
	at, err := g.h.Cgroups().Place("any")
	if err != nil {
		return // none can be made here
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(at.Path), "hob-"+g.spec.RunID+"-*"))
	if err != nil {
		g.t.Error(err)
	}
	for _, dir := range left { // of a keeper whose records the test has taken away
		g.until("a cgroup to be empty", func() bool { return os.Remove(dir) == nil })
	}
}

// code waits until the keeper has ended and returns its exit code.
func (g *rig) code() int {
	g.t.Helper()
	select {
	case <-g.ended:
	case <-time.After(patience):
		g.t.Fatal("the keeper does not end")
	}
	var exit *exec.ExitError
	if g.err != nil && !errors.As(g.err, &exit) {
		g.t.Fatal(g.err)
	}
	return g.cmd.ProcessState.ExitCode()
}

// until waits for a condition.
func (g *rig) until(what string, is func() bool) {
	g.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			g.t.Fatalf("waited in vain for: %s", what)
		}
	}
}

func (g *rig) keeper() Keeper {
	k, err := g.dir.ReadKeeper()
	if err != nil && !errors.Is(err, ErrNoRecord) {
		g.t.Fatal(err)
	}
	return k
}

// up waits until the command runs.
func (g *rig) up() *rig {
	g.t.Helper()
	g.until("the command is recorded", func() bool { return g.keeper().Command != nil })
	// What `up` does then. A command may have ended by now, and its keeper have said so.
	unlock, err := g.dir.Lock(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	defer unlock()
	task, err := g.dir.ReadTask()
	if err != nil {
		g.t.Fatal(err)
	}
	if task.State != Starting {
		return g
	}
	task.State = Up
	if err := g.dir.WriteTask(task); err != nil {
		g.t.Fatal(err)
	}
	return g
}

func (g *rig) log() string {
	data, err := os.ReadFile(g.dir.LogPath())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		g.t.Fatal(err)
	}
	return string(data)
}

func (g *rig) untilLog(text string) {
	g.t.Helper()
	g.until("the log shows "+text, func() bool { return strings.Contains(g.log(), text) })
}

func (g *rig) exit() Exit {
	g.t.Helper()
	e, err := g.dir.ReadExit()
	if err != nil {
		g.t.Fatal(err)
	}
	return e
}

func (g *rig) report() sweep.Report {
	g.t.Helper()
	r, err := g.dir.ReadReport()
	if err != nil {
		g.t.Fatal(err)
	}
	return r
}

func (g *rig) state() State {
	g.t.Helper()
	task, err := g.dir.ReadTask()
	if err != nil {
		g.t.Fatal(err)
	}
	return task.State
}

// signal signals the keeper, which is the test's own child, through its pin.
func (g *rig) signal(sig syscall.Signal) {
	g.t.Helper()
	g.signalPid(g.cmd.Process.Pid, sig)
}

func (g *rig) signalPid(pid int, sig syscall.Signal) {
	g.t.Helper()
	h, err := g.h.Open(pid)
	if err == nil {
		defer h.Close()
		err = h.Signal(sig)
	}
	if errors.Is(err, identity.ErrGone) && sig == syscall.SIGKILL {
		return // it has ended by itself, which is what was wanted
	}
	if err != nil {
		g.t.Fatal(err)
	}
}

// pidIn reads a pid that the command has written to a file in its folder. Whose it is
// is kept: when a thousand processes a second are started beside a test, a number is
// another's soon.
func (g *rig) pidIn(name string) int {
	g.t.Helper()
	pid := 0
	g.until("pid in "+name, func() bool {
		data, _ := os.ReadFile(filepath.Join(g.spec.Dir, name))
		_, err := fmt.Sscan(string(data), &pid)
		return err == nil
	})
	if h, err := g.h.Open(pid); err == nil {
		g.refs[pid] = h.Ref()
		_ = h.Close()
	}
	return pid
}

// lives reports whether a process lives whose pid was read, or that cannot have ended
// and been waited for.
func (g *rig) lives(pid int) bool {
	ref, known := g.refs[pid]
	if !known {
		h, err := g.h.Open(pid)
		if err != nil {
			return false
		}
		defer h.Close()
		ref = h.Ref()
	}
	h, f := g.h.Verify(ref)
	if h != nil {
		_ = h.Close()
	}
	return f.Verdict == identity.Owned
}

// member finds a process in a report.
func member(r sweep.Report, pid int) *sweep.ReportMember {
	for i := range r.Members {
		if r.Members[i].PID == pid {
			return &r.Members[i]
		}
	}
	return nil
}
