package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/identity/cgrouptest"
	"hob/sweep"
	"hob/tasks"
)

// patience is how long a test waits for a condition; it is never reached where
// all is well.
const patience = 60 * time.Second

// hobs are the programs under test: as people build it, and one that can be cut.
var hobs struct{ dir, plain string }

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", "6") // the graces of a stop are waited for, and need no processor
	}
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	if dir := os.Getenv(soakInner); dir != "" {
		hobs.dir, hobs.plain = dir, filepath.Join(dir, "hob")
		return m.Run()
	}
	dir, err := os.MkdirTemp("/tmp", "hobb")
	if err == nil {
		hobs.dir, hobs.plain = dir, filepath.Join(dir, "hob")
		err = errors.Join(readSources(), os.Chmod(dir, 0o755), build(hobs.plain)) // other users start it too
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	return cgrouptest.Run(m)
}

// readSources opens every source file of hob: the go command then knows that a
// result is of these, and does not show a cached one when they have changed.
func readSources() error {
	return filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && filepath.Ext(path) == ".go" {
			_, err = os.ReadFile(path)
		}
		return err
	})
}

// build makes a hob, with the build tags given.
func build(path string, tags ...string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-tags", strings.Join(tags, ","), "-o", path, "hob/cmd/hob")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", path, err, out)
	}
	return nil
}

// kitchen is a state folder with a tmux server of its own, and what a test knows
// of the processes in it. Its folder's path stands in the arguments or the
// environment of every process that it starts: that is their mark.
type kitchen struct {
	t    *testing.T
	dir  string // short: a socket's path may have 100 bytes
	bin  string
	env  []string
	home string              // the state folder
	user *syscall.Credential // who runs hob; nil for whoever runs the test
	host identity.Host
	pins map[string]identity.Handle // of the processes that have written a file of their name
	last []func()                   // done when all processes have ended

	strange map[int]bool    // pids of the strangers
	looks   map[proc]bool   // look-alikes that a report has named by the marker
	loose   bool            // what is only named may be left
	bare    bool            // hob runs where no cgroup can be made
	pen     *cgrouptest.Pen // hob and all that it starts are in it; nil where none can be made

	hasCgroup bool                       // it can make one
	truth     map[string]identity.Handle // of processes that a person has started
}

// open makes a kitchen. What is left of it at the end of the test is a failure,
// and is ended.
func open(t *testing.T) *kitchen {
	t.Helper()
	host, err := identity.Local()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "hobm")
	if err != nil {
		t.Fatal(err)
	}
	k := &kitchen{t: t, dir: dir, bin: hobs.plain, host: host, pins: map[string]identity.Handle{},
		strange: map[int]bool{}, looks: map[proc]bool{}, truth: map[string]identity.Handle{}}
	t.Cleanup(k.close)
	k.pen, err = cgrouptest.New(filepath.Base(dir))
	k.check(err)
	k.check(os.Chmod(dir, 0o755))
	k.check(os.Mkdir(k.d(), 0o777))
	k.check(os.Chmod(k.d(), 0o777)) // a child that has changed its user writes here
	k.check(os.Mkdir(k.path("rt"), 0o700))
	k.home = k.path("home")
	k.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TERM=xterm", "LANG=C.UTF-8", "D=" + k.d(),
		"HOB_HOME=" + k.home, "XDG_RUNTIME_DIR=" + k.path("rt")}
	return k
}

func (k *kitchen) path(name string) string { return filepath.Join(k.dir, name) }

// d is the folder where processes write their pids to files of their name.
func (k *kitchen) d() string { return k.path("d") }

func (k *kitchen) check(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

// testdata copies a file to the kitchen, so that its path is a mark too.
func (k *kitchen) testdata(name string) string {
	k.t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	k.check(err)
	k.check(os.WriteFile(k.path(name), text, 0o644))
	return k.path(name)
}

// until waits for a condition.
func (k *kitchen) until(what string, done func() bool) {
	k.t.Helper()
	deadline := time.Now().Add(patience)
	for !done() {
		if time.Now().After(deadline) {
			k.t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// result is what a hob came to.
type result struct {
	code     int
	out, err string
}

func (r result) String() string { return fmt.Sprintf("exit %d\n%s%s", r.code, r.out, r.err) }

// command is a hob that is about to be run. One that hangs is killed.
func (k *kitchen) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	k.t.Cleanup(cancel)
	argv := append([]string{k.bin}, args...)
	if k.bare {
		argv = append(slices.Clone(withoutCgroups), argv...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = k.dir, k.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: k.user}
	k.penned(cmd)
	return cmd
}

// penned has a command start in the kitchen's cgroup.
func (k *kitchen) penned(cmd *exec.Cmd) {
	if k.pen == nil {
		return
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, k.pen.FD()
}

// hob runs a hob to its end.
func (k *kitchen) hob(args ...string) result {
	k.t.Helper()
	return run(k.t, k.command(args...))
}

func run(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	r := result{cmd.ProcessState.ExitCode(), out.String(), stderr.String()}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.code = 128 + int(ws.Signal())
	}
	return r
}

// must runs a hob that is to succeed.
func (k *kitchen) must(args ...string) result {
	k.t.Helper()
	r := k.hob(args...)
	if r.code != 0 {
		k.t.Fatalf("hob %v: %v", args, r)
	}
	return r
}

// recipe writes hob.yaml. @D stands for the folder of the pids, @K for the test's.
func (k *kitchen) recipe(text string) {
	k.t.Helper()
	text = strings.NewReplacer("@D", k.d(), "@K", k.dir).Replace(text)
	k.check(os.WriteFile(k.path("hob.yaml"), []byte(text), 0o644))
}

// task is the folder of a task's records.
func (k *kitchen) task(name string) *tasks.TaskDir {
	k.t.Helper()
	run, task, _ := strings.Cut(name, "/")
	return k.store().Run(run).Task(task)
}

func (k *kitchen) run(name string) tasks.Run {
	k.t.Helper()
	r, err := k.store().Run(name).Read()
	k.check(err)
	return r
}

func (k *kitchen) store() *tasks.Store {
	k.t.Helper()
	s, err := tasks.ViewStore(k.home)
	k.check(err)
	return s
}

// states are what `hob ps` says of all tasks.
func (k *kitchen) states() map[string]tasks.State {
	k.t.Helper()
	r := k.must("ps", "--json")
	var list []struct {
		Run, Task string
		State     tasks.State
	}
	if err := json.Unmarshal([]byte(r.out), &list); err != nil {
		k.t.Fatalf("hob ps: %v: %v", err, r)
	}
	all := map[string]tasks.State{}
	for _, s := range list {
		all[s.Run+"/"+s.Task] = s.State
	}
	return all
}

func (k *kitchen) stateOf(name string) tasks.State {
	k.t.Helper()
	return k.states()[name]
}

// reports reads what hob prints with --json.
func (k *kitchen) reports(r result) []sweep.Report {
	k.t.Helper()
	var list []sweep.Report
	if err := json.Unmarshal([]byte(r.out), &list); err != nil {
		k.t.Fatalf("no report: %v: %v", err, r)
	}
	return list
}

// report is a task's last one, as `hob report` gives it.
func (k *kitchen) report(name string) (sweep.Report, bool) {
	k.t.Helper()
	r := k.hob("report", "--json", name)
	if r.code != 0 {
		return sweep.Report{}, false
	}
	list := k.reports(r)
	if len(list) != 1 {
		return sweep.Report{}, false
	}
	return list[0], true
}

// tmux runs a command of the run's server.
func (k *kitchen) tmux(run string, args ...string) {
	k.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", k.run(run).Tmux.Socket}, args...)...)
	cmd.Env = k.env
	if out, err := cmd.CombinedOutput(); err != nil {
		k.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
}

// story is what the events of all runs say, for a test that has failed.
func (k *kitchen) story() string {
	var b strings.Builder
	events, _ := filepath.Glob(k.path("home/*/*/events.jsonl"))
	reports, _ := filepath.Glob(k.path("home/*/*/tasks/*/report.json"))
	for _, path := range slices.Concat(events, reports) {
		text, _ := os.ReadFile(path)
		fmt.Fprintf(&b, "%s\n%s\n", path, text)
	}
	for _, p := range k.marked() {
		fmt.Fprintf(&b, "alive: %s\n", line(p))
	}
	return b.String()
}
