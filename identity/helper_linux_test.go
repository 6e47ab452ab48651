package identity

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The tests run themselves again as other processes: as subjects to look at, and
// as observers that look from another namespace, user or sandbox.
const (
	helperEnv = "HOB_IDENTITY_HELPER"
	refsEnv   = "HOB_IDENTITY_REFS"
)

// bg is for calls that need no context of their own.
var bg = context.Background()

// patience bounds every wait for a condition.
const patience = 30 * time.Second

// leftOut collects what a run without root did not test.
var leftOut struct {
	sync.Mutex
	tests []string
}

func init() {
	if os.Getenv(helperEnv) != "" {
		runtime.LockOSThread() // main stays on the first thread: the dead-leader subject ends it
	}
}

func TestMain(m *testing.M) {
	if name := os.Getenv(helperEnv); name != "" {
		runHelper(name)
	}
	code := m.Run()
	if len(leftOut.tests) > 0 {
		fmt.Printf("left out without root: %s\n", strings.Join(leftOut.tests, ", "))
	}
	if left := ownChildren(); len(left) > 0 {
		fmt.Printf("FAIL: processes left behind: %v\n", left)
		code = max(code, 1)
	}
	os.Exit(code)
}

func ownChildren() []int {
	h, _ := Local()
	kids, _ := h.Children(os.Getpid())
	return kids
}

// needRoot leaves a test out, loudly, where only root can make its scene.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	leftOut.Lock()
	leftOut.tests = append(leftOut.tests, t.Name())
	leftOut.Unlock()
	t.Skip("left out: only root can make this scene")
}

// tb is what checks need of *testing.T, and what an observer has too.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// observer looks from elsewhere; what it finds wrong goes to its output.
type observer struct {
	Host
	refs   map[string]Ref
	failed bool
}

func (o *observer) Helper() {}
func (o *observer) Errorf(format string, args ...any) {
	o.failed = true
	fmt.Printf(format+"\n", args...)
}
func (o *observer) Fatalf(format string, args ...any) {
	fmt.Printf(format+"\n", args...)
	os.Exit(1)
}

// helpers are the other processes by name: subjects and observers.
var (
	subjects  = map[string]func(){}
	observers = map[string]func(*observer){}
)

func runHelper(name string) {
	if f, ok := subjects[name]; ok {
		f()
		os.Exit(0)
	}
	f, ok := observers[name]
	if !ok {
		fmt.Printf("no helper %q\n", name)
		os.Exit(2)
	}
	o := &observer{refs: map[string]Ref{}}
	if err := json.Unmarshal([]byte(os.Getenv(refsEnv)), &o.refs); err != nil {
		o.Fatalf("refs: %v", err)
	}
	o.look()
	f(o)
	if o.failed {
		os.Exit(1)
	}
	os.Exit(0)
}

// look (again) takes the host as it is now: after a mount, or a filter.
func (o *observer) look() {
	h, err := Local()
	if err != nil {
		o.Fatalf("local: %v", err)
	}
	o.Host = h
}

// must ends an observer whose scene could not be made.
func (o *observer) must(what string, err error) {
	if err != nil {
		o.Fatalf("%s: %v", what, err)
	}
}

// self is a command that runs this test binary as a helper.
func self(name string, wrap ...string) *exec.Cmd {
	argv := append(wrap, "/proc/self/exe")
	if len(wrap) > 0 {
		argv[len(argv)-1], _ = os.Executable()
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), helperEnv+"="+name, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// observe runs an observer and reports what it found wrong.
func observe(t *testing.T, name string, refs map[string]Ref, attr *syscall.SysProcAttr, wrap ...string) {
	t.Helper()
	cmd := self(name, wrap...)
	text, err := json.Marshal(refs)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, refsEnv+"="+string(text))
	cmd.SysProcAttr = attr
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = patience
	if err := cmd.Run(); err != nil {
		t.Fatalf("observer %s: %v\n%s", name, err, &out)
	}
	if out.Len() > 0 {
		t.Logf("%s", &out)
	}
}

// subject is another process to look at. Its standard input ends with the test.
type subject struct {
	*exec.Cmd
	pid   int
	lines *bufio.Scanner
	stdin io.WriteCloser
}

// start runs a subject of ours, or any command, and ends it with the test.
func start(t testing.TB, cmd *exec.Cmd) *subject {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &subject{cmd, cmd.Process.Pid, bufio.NewScanner(out), in}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = in.Close(); _ = cmd.Wait() })
	return s
}

// line waits for the next line that a subject prints.
func (s *subject) line(t testing.TB) string {
	t.Helper()
	if !s.lines.Scan() {
		t.Fatalf("the subject printed nothing: %v", s.lines.Err())
	}
	return s.lines.Text()
}

// refOf records a process, as it would come back from a file.
func refOf(t testing.TB, host Host, pid int) Ref {
	t.Helper()
	h, err := host.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	return stored(t, h.Ref())
}

// stored is a Ref after a way through its file.
func stored(t testing.TB, r Ref) Ref {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return ParseRef(b)
}

// byToken is a Ref as a kernel without pidfs would have it.
func byToken(r Ref) Ref { r.PIDFS = nil; return r }

// expect verifies and compares. It closes the handle.
func expect(t tb, host Host, what string, ref Ref, verdict Verdict, row string) Finding {
	t.Helper()
	h, f := host.Verify(ref)
	if f.Verdict != verdict || f.Row != row || (h != nil) != (verdict == Owned) {
		t.Errorf("%s: got %+v, want %s by row %s", what, f, verdict, row)
	}
	if h != nil {
		_ = h.Close()
	}
	return f
}

// eventually waits for a condition.
func eventually(t tb, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never came true: %s", what)
		}
	}
}

// lives reports whether a process of our own is there and no zombie, by another
// way than the code under test.
func lives(pid int) bool {
	text, err := os.ReadFile(procPath(pid) + "/stat")
	if err != nil {
		return false
	}
	s, err := parseStat(text)
	return err == nil && (s.state != 'Z' || s.threads > 1)
}

// private gives a helper a mount namespace of its own (its parent has cloned
// it), so that nothing that it mounts is seen outside.
func (o *observer) private() {
	o.must("make mounts private", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
}

// mountProc puts a fresh procfs on /proc, and looks again.
func (o *observer) mountProc(options string) {
	o.must("mount procfs", unix.Mount("proc", "/proc", "proc", 0, options))
	o.look()
}
