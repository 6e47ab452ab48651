//go:build unix

package recipes_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/recipes"
	"hob/recipes/pilot"
)

// TestMain lets the test program be hob, so that a rehearsed recipe's pilot can run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "pilot" {
		os.Exit(pilot.Run(os.Args[2:]))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // or each pilot under -race lives a second longer
	os.Exit(m.Run())
}

// patience is how long anything may take on a machine that others use too.
const patience = 60 * time.Second

// Every recipe of the gallery runs as a rehearsal: each task starts in its order,
// answers where and as the recipe says, and ends when it is asked to.
func TestGalleryRehearsed(t *testing.T) {
	if testing.Short() {
		t.Skip("starts every recipe of the gallery")
	}
	for _, name := range recipes.Names(nil) {
		t.Run(name, func(t *testing.T) { rehearse(t, name) })
	}
}

func rehearse(t *testing.T, name string) {
	r := loadRehearsed(t, name)
	ports := map[string]int{}
	for i := range r.Tasks {
		task := &r.Tasks[i]
		late := recipes.Late{Port: task.Port.Number, Ports: ports}
		if task.Port.Auto {
			late.Port = freePort(t)
		}
		ports[task.Name] = late.Port
		switch task.Kind {
		case "server":
			awaitReady(t, task, late, start(t, task, late))
		case "job":
			if code := start(t, task, late).wait(); code != 0 {
				t.Fatalf("%s ended with %d", task.Name, code)
			}
		}
	}
}

// portVars are the variables of a recipe that hold ports.
var portVars = regexp.MustCompile(`\b(\w*port): [0-9]+`)

// loadRehearsed loads a recipe with free ports in place of its own.
func loadRehearsed(t *testing.T, name string) *recipes.Recipe {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, err := recipes.Find(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := recipes.Show(file)
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]string{}
	vars, _, _ := strings.Cut(text, "servers:")
	for _, m := range portVars.FindAllStringSubmatch(vars, -1) {
		set[m[1]] = strconv.Itoa(freePort(t))
	}
	home := map[string]string{"HOME": t.TempDir()}
	r, err := recipes.Load(file, recipes.Options{Self: self, Rehearse: true, Set: set, Getenv: func(name string) string { return home[name] }})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// freePort is one of a few in a row that are free, for replicas count up.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if rowIsFree(port) {
			return port
		}
	}
	t.Fatal("no four free ports in a row")
	return 0
}

func rowIsFree(port int) bool {
	for i := range 4 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+i))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

// process is a task that runs.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  *os.File
	done chan struct{}
}

// start runs a task and sees to its end.
func start(t *testing.T, task *recipes.Task, late recipes.Late) *process {
	t.Helper()
	argv, env := task.BindLate(late)
	if i := slices.Index(argv, "--"); i > 0 { // what a failed test leaves must not stay for minutes
		argv = slices.Insert(slices.Clone(argv), i, "--orphan-limit", "20s")
	}
	out, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(argv[0], argv[1:]...), out: out, done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = t.TempDir(), out, out, append(os.Environ(), "SPT_NOENV=1")
	for _, v := range env {
		p.cmd.Env = append(p.cmd.Env, v.Name+"="+v.Value)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("%s: %v", task.Name, err)
	}
	go func() { _ = p.cmd.Wait(); close(p.done) }()
	t.Cleanup(p.stop)
	return p
}

func (p *process) wait() int {
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Errorf("%q does not end; its log:\n%s", p.cmd.Args, p.log())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		p.t.Errorf("%q does not end on TERM; its log:\n%s", p.cmd.Args, p.log())
	}
	p.out.Close()
}

func (p *process) log() string {
	text, _ := os.ReadFile(p.out.Name())
	return string(text)
}

// awaitReady waits until the server answers as its recipe says.
func awaitReady(t *testing.T, task *recipes.Task, late recipes.Late, p *process) {
	t.Helper()
	r := task.BindReadyLate(late)
	if r == nil {
		t.Fatalf("%s says nothing of readiness", task.Name)
	}
	base := fmt.Sprintf("http://127.0.0.1:%d", late.Port)
	deadline := time.Now().Add(patience)
	for !answers(r, base, task.Model) {
		select {
		case <-p.done:
			t.Fatalf("%s ended; its log:\n%s", task.Name, p.log())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not ready (%+v); its log:\n%s", task.Name, r, p.log())
		}
	}
}

func answers(r *recipes.Ready, base, model string) bool {
	switch {
	case r.HTTP != "":
		return status(http.Get(base+r.HTTP)) == http.StatusOK
	case r.Completion:
		body := fmt.Sprintf(`{"model": %q, "prompt": "hello", "max_tokens": 4}`, model)
		return status(http.Post(base+"/v1/completions", "application/json", bytes.NewBufferString(body))) == http.StatusOK
	case r.TCP:
		c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			return false
		}
		c.Close()
		return true
	}
	return false
}

func status(resp *http.Response, err error) int {
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}
