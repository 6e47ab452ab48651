package pilot

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hob/identity/porttest"
)

// TestMain lets the test program be hob, so that servers under test start their
// children by running it again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "pilot" {
		os.Exit(Run(os.Args[2:]))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // or each process under -race lives a second longer than it should
	os.Exit(m.Run())
}

const patience = 30 * time.Second

// running is a pilot that a test started.
type running struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	done chan struct{}

	mu  sync.Mutex
	log strings.Builder
}

// startPilot runs `hob pilot serve` on a free port. What is left of its tree is
// ended with the test.
func startPilot(t *testing.T, args ...string) *running {
	t.Helper()
	port := freePort(t)
	r := &running{t: t, url: "http://127.0.0.1:" + port, done: make(chan struct{})}
	r.cmd = exec.Command(os.Args[0], append([]string{"pilot", "serve", "--orphan-limit", "20s", "--port", port}, args...)...)
	read, write, err := os.Pipe() // a pipe of our own: Wait must not wait for those who outlive
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Stderr = write
	r.cmd.Stdout = write
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	go r.readLog(read)
	go func() {
		defer close(r.done)
		_ = r.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-r.done:
		case <-time.After(patience):
			_ = r.cmd.Process.Kill()
			t.Errorf("the pilot did not end on TERM; its log:\n%s", r.text())
		}
	})
	return r
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := porttest.Free()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

func (r *running) readLog(f *os.File) {
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		r.mu.Lock()
		r.log.WriteString(lines.Text() + "\n")
		r.mu.Unlock()
	}
}

func (r *running) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// until waits for a condition.
func (r *running) until(what string, ok func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	r.t.Fatalf("waited in vain for: %s; the log:\n%s", what, r.text())
}

func (r *running) untilLog(line string) {
	r.t.Helper()
	r.until("the line "+line, func() bool { return strings.Contains(r.text(), line) })
}

// term asks the server to end and gives its exit code.
func (r *running) term() int {
	r.t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		r.t.Fatal(err)
	}
	return r.exit()
}

func (r *running) exit() int {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(patience):
		r.t.Fatalf("the server does not end; its log:\n%s", r.text())
	}
	return r.cmd.ProcessState.ExitCode()
}

// process is one that a test looks at, by way of procfs.
type process struct {
	pid, parent, session int
	title                string
	start                string // tells it from a later one of its number
}

// tree is all that lives below pid.
func tree(t *testing.T, pid int) (below []process) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Fatal("looking at the tree needs procfs")
	}
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range children {
		list, _ := os.ReadFile(file) // a thread that has ended has no children
		for field := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				if p, ok := look(child); ok {
					below = append(append(below, p), tree(t, child)...)
				}
			}
		}
	}
	return below
}

// look reads a living process.
func look(pid int) (process, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if fields[0] == "Z" {
		return process{}, false
	}
	title, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	p := process{pid: pid, title: strings.TrimSpace(strings.ReplaceAll(string(title), "\x00", " "))}
	p.parent, _ = strconv.Atoi(fields[1])
	p.session, _ = strconv.Atoi(fields[3])
	p.start = fields[19]
	return p, true
}

func alive(p process) bool { now, ok := look(p.pid); return ok && now.start == p.start }
