//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"hob/identity"
	"hob/identity/cgrouptest"
	"hob/identity/porttest"
	"hob/tasks"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "keeper" { // of a verb that ran in the test itself
		os.Exit(run(os.Args[1:]))
	}
	testscript.Main(penned{m}, map[string]func(){
		"hob":    func() { os.Exit(run(os.Args[1:])) },
		"helper": helper,
	})
}

// penned are the tests, in which no cgroup may be left.
type penned struct{ m *testing.M }

func (p penned) Run() int { return cgrouptest.Run(p.m) }

// patience is how long a script waits for a condition.
const patience = 60 * time.Second

// TestScripts runs the verbs on a real tmux, each script with a state folder and
// a tmux server of its own. HOB_SCRIPTS=-u rewrites what they compare with.
func TestScripts(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("tmux is missing; install it")
	}
	testscript.Run(t, testscript.Params{
		Deadline:            time.Now().Add(15 * time.Minute), // of all scripts together: each wait has its own,
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("HOB_SCRIPTS") == "-u",
		Setup:               setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"state":    state,
			"gone":     gone,
			"lives":    lives,
			"clean":    clean,
			"signal":   signalTo,
			"port":     freePort,
			"subst":    subst,
			"waitlog":  waitLog,
			"waitline": waitLine,
			"tmux":     tmuxCmd,
			"pidof":    pidOf,

			"stranger":   stranger,
			"waitport":   waitPort,
			"touch":      touch,
			"report":     waitReport,
			"recorded":   waitRecorded,
			"waitsocket": waitSocket,
			"waitfile":   waitFile,
			"attached":   attached,
			"cursor":     cursor,
			"servedas":   servedAs,
			"waitnote":   waitNote,
			"readpid":    readPID,
			"start":      startOf,

			"waitshown":  waitShown,
			"killserver": killServer,
			"attachedto": attachedTo,
			"pidof1":     firstPID,
		},
	})
}

// setup gives a script folders with short paths: a socket's may have 100 bytes.
func setup(env *testscript.Env) error {
	short, err := os.MkdirTemp("", "hobt")
	if err != nil {
		return err
	}
	env.Setenv("HOB_HOME", filepath.Join(short, "home"))
	env.Setenv("XDG_RUNTIME_DIR", short)
	env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
	env.Setenv("SHORT", short)
	env.Setenv("TERM", "xterm")
	env.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector would let each hob sleep a second at its end
	hob, err := exec.LookPath("hob")
	if err != nil {
		return err
	}
	env.Setenv("BIN", filepath.Dir(hob)) // hob and helper, and nothing else
	env.Defer(func() {
		if err := tearDown(short); err != nil {
			env.T().Log(err)
		}
	})
	return nil
}

// tearDown ends what a script, a failed one above all, has left.
func tearDown(short string) error {
	runs := runIDs(short)
	for _, p := range ours(short) { // of a run whose records are gone
		runs = append(runs, runOf(p))
	}
	left := func() []identity.Process { return append(ours(short), serversOf(short)...) }
	for _, p := range serversOf(short) {
		_ = exec.Command("tmux", "-S", p.Args[slices.Index(p.Args, "-S")+1], "kill-server").Run() // its socket may be gone
	}
	deadline := time.Now().Add(patience)
	for len(left()) > 0 && time.Now().Before(deadline) {
		for _, p := range left() {
			runs = append(runs, runOf(p))
			kill(p.PID, syscall.SIGKILL)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if left := left(); len(left) > 0 {
		return fmt.Errorf("left behind: %v", left)
	}
	var errs []error
	for _, id := range runs {
		if id != "" {
			errs = append(errs, cgrouptest.Discard("hob-"+id+"-"))
		}
	}
	return errors.Join(append(errs, os.RemoveAll(short))...)
}

// serversOf are the tmux servers whose sockets a script has in its folder: hob's, and
// those that are a person's.
func serversOf(short string) []identity.Process {
	return slices.DeleteFunc(everyProcess(), func(p identity.Process) bool {
		at := slices.Index(p.Args, "-S") + 1
		return !strings.HasPrefix(p.Comm, "tmux: server") || at == 0 || at == len(p.Args) || !strings.HasPrefix(p.Args[at], short+"/")
	})
}

func everyProcess() []identity.Process {
	h, err := identity.Local()
	if err != nil {
		return nil
	}
	table, err := h.Snapshot(context.Background(), identity.WantArgs|identity.WantEnviron)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(table.Procs, func(p identity.Process) bool { return p.State == 'Z' })
}

// runIDs are those of the runs whose records a script has left.
func runIDs(short string) []string {
	var ids []string
	files, _ := filepath.Glob(filepath.Join(short, "home", "*", "*", "tasks", "*", "spec.json"))
	for _, file := range files {
		var spec tasks.Spec
		text, err := os.ReadFile(file)
		if err == nil && json.Unmarshal(text, &spec) == nil {
			ids = append(ids, spec.RunID)
		}
	}
	return ids
}

// runOf is the id of the run that a process belongs to, "" for a keeper.
func runOf(p identity.Process) string {
	for _, kv := range p.Environ {
		if id, ok := strings.CutPrefix(kv, "HOB_RUN_ID="); ok {
			return id
		}
	}
	return ""
}

// ours are the processes that belong to a script's state folder: keepers name it
// in their arguments, and what they start in its environment.
func ours(short string) []identity.Process {
	home := filepath.Join(short, "home")
	return slices.DeleteFunc(everyProcess(), func(p identity.Process) bool {
		keeper := len(p.Args) > 2 && p.Args[1] == "keeper" && strings.HasPrefix(p.Args[2], home)
		started := slices.Contains(p.Environ, "HOB_HOME="+home) && slices.ContainsFunc(p.Environ, func(kv string) bool {
			return strings.HasPrefix(kv, "HOB_RUN_ID=")
		})
		return p.State == 'Z' || !keeper && !started
	})
}

// kill signals a process that a script started, by its pid.
func kill(pid int, sig syscall.Signal) {
	h, err := identity.Local()
	if err != nil {
		return
	}
	if p, err := h.Open(pid); err == nil {
		_ = p.Signal(sig)
		_ = p.Close()
	}
}

func eventually(ts *testscript.TestScript, what string, done func() (bool, string)) {
	deadline := time.Now().Add(patience)
	for {
		ok, got := done()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("waited in vain for %s; it is %s", what, got)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func manager(ts *testscript.TestScript) *tasks.Manager {
	store, err := tasks.ViewStore(ts.Getenv("HOB_HOME"))
	ts.Check(err)
	h, err := identity.Local()
	ts.Check(err)
	return &tasks.Manager{Store: store, Host: h}
}

func status(ts *testscript.TestScript, name string) (tasks.Status, error) {
	m := manager(ts)
	sel, err := m.Select([]string{name})
	if err != nil {
		return tasks.Status{}, err
	}
	list, err := m.List(sel)
	if len(list) != 1 {
		return tasks.Status{}, fmt.Errorf("%s is %d tasks", name, len(list))
	}
	return list[0], err
}

// state NAME STATE waits until a task is in a state.
func state(ts *testscript.TestScript, _ bool, args []string) {
	want := tasks.State(args[1])
	eventually(ts, args[0]+" to be "+args[1], func() (bool, string) {
		s, err := status(ts, args[0])
		return s.State == want, fmt.Sprint(s.State, " ", s.Note, " ", err)
	})
}

// pidOf VAR NAME sets VAR to the pid of a task's command, VAR_KEEPER to its keeper's.
func pidOf(ts *testscript.TestScript, _ bool, args []string) {
	run, task, _ := strings.Cut(args[1], "/")
	k, err := manager(ts).Store.Run(run).Task(task).ReadKeeper()
	ts.Check(err)
	if k.Command != nil {
		ts.Setenv(args[0], strconv.Itoa(k.Command.PID))
	}
	ts.Setenv(args[0]+"_KEEPER", strconv.Itoa(k.Keeper.PID))
}

// start VAR PID sets VAR to the start token of a process.
func startOf(ts *testscript.TestScript, _ bool, args []string) {
	pid, err := strconv.Atoi(args[1])
	ts.Check(err)
	h, err := identity.Local()
	ts.Check(err)
	p, err := h.Open(pid)
	ts.Check(err)
	defer p.Close()
	ts.Setenv(args[0], string(p.Ref().Start))
}

// gone PID waits until a process has ended; lives PID wants it to be there.
func gone(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, "the end of "+args[0], func() (bool, string) { return !alive(ts, args[0]), "there" })
}

func lives(ts *testscript.TestScript, neg bool, args []string) {
	if alive(ts, args[0]) == neg {
		ts.Fatalf("process %s: alive is %t", args[0], neg)
	}
}

func alive(ts *testscript.TestScript, pid string) bool {
	n, err := strconv.Atoi(pid)
	ts.Check(err)
	h, err := identity.Local()
	ts.Check(err)
	p, err := h.Open(n)
	if err != nil {
		return false
	}
	defer p.Close()
	return p.Verify().Verdict == identity.Owned
}

// clean wants nothing of the script's tasks to be left: no process, no server.
func clean(ts *testscript.TestScript, _ bool, _ []string) {
	short := ts.Getenv("SHORT")
	eventually(ts, "nothing to be left", func() (bool, string) {
		var left []string
		for _, p := range ours(short) {
			left = append(left, fmt.Sprint(p.PID, p.Args))
		}
		return len(left) == 0, strings.Join(left, "; ")
	})
	eventually(ts, "the tmux servers to end", func() (bool, string) { return !listens(short), "listening" })
}

// listens reports whether a tmux server of the script runs.
func listens(short string) bool {
	sockets, _ := filepath.Glob(filepath.Join(short, "hob", "*.sock"))
	return slices.ContainsFunc(sockets, func(s string) bool {
		c, err := net.Dial("unix", s)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// signal NAME PID sends a signal to a process that the script started.
func signalTo(ts *testscript.TestScript, _ bool, args []string) {
	names := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT}
	pid, err := strconv.Atoi(args[1])
	ts.Check(err)
	kill(pid, names[args[0]])
}

// port VAR sets VAR to a free port.
func freePort(ts *testscript.TestScript, _ bool, args []string) {
	port, err := porttest.Free()
	ts.Check(err)
	ts.Setenv(args[0], strconv.Itoa(port))
}

// subst FILE… replaces $VAR in files by the script's variables.
func subst(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		path := ts.MkAbs(name)
		text := os.Expand(ts.ReadFile(path), func(v string) string {
			if v == "port" {
				return "${port}"
			}
			return ts.Getenv(v)
		})
		ts.Check(os.WriteFile(path, []byte(text), 0o600))
	}
}

// waitlog NAME TEXT waits until a task has written something.
func waitLog(ts *testscript.TestScript, _ bool, args []string) {
	run, task, _ := strings.Cut(args[0], "/")
	path := manager(ts).Store.Run(run).Task(task).LogPath()
	eventually(ts, strconv.Quote(args[1])+" in the log of "+args[0], func() (bool, string) {
		data, _ := os.ReadFile(path)
		return strings.Contains(string(data), args[1]), strconv.Quote(string(data))
	})
}

// waitline NAME TEXT waits until the keeper has written that its task said so last.
func waitLine(ts *testscript.TestScript, _ bool, args []string) {
	run, task, _ := strings.Cut(args[0], "/")
	dir := manager(ts).Store.Run(run).Task(task)
	eventually(ts, strconv.Quote(args[1])+" as the last line of "+args[0], func() (bool, string) {
		k, err := dir.ReadKeeper()
		return strings.Contains(k.LastLine, args[1]), fmt.Sprint(strconv.Quote(k.LastLine), " ", err)
	})
}

// tmux ARG… talks to the script's own server.
func tmuxCmd(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec("tmux", append([]string{"-S", socketOf(ts)}, args...)...)
	if (err != nil) != neg {
		ts.Fatalf("tmux %v: %v", args, err)
	}
}

// stranger VAR ARG… starts a process that hob has nothing to do with, and sets
// VAR to its pid. It ends with the script.
func stranger(ts *testscript.TestScript, _ bool, args []string) {
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	c := &exec.Cmd{Path: path, Args: args[1:], Dir: ts.Getenv("WORK")}
	ts.Check(c.Start())
	ts.Setenv(args[0], strconv.Itoa(c.Process.Pid))
	ts.Defer(func() {
		for _, kid := range childrenOf(c.Process.Pid) { // while it lives: whose they are is sure
			kill(kid, syscall.SIGKILL)
		}
		_ = c.Process.Kill()
		_ = c.Wait()
	})
}

func childrenOf(pid int) []int {
	h, err := identity.Local()
	if err != nil {
		return nil
	}
	kids, _ := h.Children(pid)
	return kids
}

// waitport PORT waits until somebody listens, or with ! until nobody does.
func waitPort(ts *testscript.TestScript, neg bool, args []string) {
	eventually(ts, fmt.Sprintf("a listener on %s (%t)", args[0], !neg), func() (bool, string) {
		c, err := net.Dial("tcp", "127.0.0.1:"+args[0])
		if err == nil {
			c.Close()
		}
		return (err == nil) == !neg, fmt.Sprint(err)
	})
}

func touch(ts *testscript.TestScript, _ bool, args []string) {
	for _, f := range args {
		ts.Check(os.WriteFile(ts.MkAbs(f), nil, 0o600))
	}
}

// report NAME REASON waits for a report of a task.
func waitReport(ts *testscript.TestScript, _ bool, args []string) {
	run, task, _ := strings.Cut(args[0], "/")
	eventually(ts, "a report of "+args[0], func() (bool, string) {
		r, err := manager(ts).Store.Run(run).Task(task).ReadReport()
		return err == nil && r.Reason == args[1], fmt.Sprint(r.Reason, " ", err)
	})
}

// recorded RUN/TASK STATE waits until task.json says so. The state that hob shows is
// ahead of it while a keeper still sees to what its command left behind, and writes
// that file once more.
func waitRecorded(ts *testscript.TestScript, _ bool, args []string) {
	run, task, _ := strings.Cut(args[0], "/")
	eventually(ts, args[0]+" to be recorded as "+args[1], func() (bool, string) {
		t, err := manager(ts).Store.Run(run).Task(task).ReadTask()
		return err == nil && string(t.State) == args[1], fmt.Sprint(t.State, " ", err)
	})
}

func waitFile(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, args[0], func() (bool, string) {
		_, err := os.Stat(ts.MkAbs(args[0]))
		return err == nil, fmt.Sprint(err)
	})
}

// socketOf is the script's tmux server.
func socketOf(ts *testscript.TestScript) string {
	sockets, _ := filepath.Glob(filepath.Join(ts.Getenv("SHORT"), "hob", "*.sock"))
	if len(sockets) != 1 {
		ts.Fatalf("%d tmux sockets", len(sockets))
	}
	return sockets[0]
}

// waitsocket waits until the script's tmux server listens, which somebody has made
// bind its socket anew.
func waitSocket(ts *testscript.TestScript, _ bool, _ []string) {
	eventually(ts, "the tmux server to listen", func() (bool, string) { return listens(ts.Getenv("SHORT")), "nobody listens" })
}

// attached SESSION WINDOW waits until a terminal shows that window.
func attached(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, "a client in "+strings.Join(args, ":"), func() (bool, string) {
		out, err := exec.Command("tmux", "-S", socketOf(ts), "list-clients", "-F", "#{session_name} #{window_name}").CombinedOutput()
		return strings.TrimSpace(string(out)) == strings.Join(args, " "), fmt.Sprint(string(out), err)
	})
}

// attachedto SOCKET SESSION WINDOW is attached for a tmux server of a person's.
func attachedTo(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, "a client in "+strings.Join(args[1:], ":"), func() (bool, string) {
		out, err := exec.Command("tmux", "-S", args[0], "list-clients", "-F", "#{session_name} #{window_name}").CombinedOutput()
		return strings.TrimSpace(string(out)) == strings.Join(args[1:], " "), fmt.Sprint(string(out), err)
	})
}

// pidof1 VAR sets VAR to the pid of the first task that `hob ps --json` has just shown.
func firstPID(ts *testscript.TestScript, _ bool, args []string) {
	var list []tasks.Status
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &list))
	if len(list) == 0 || list[0].PID == nil {
		ts.Fatalf("no task has a pid")
	}
	ts.Setenv(args[0], strconv.Itoa(*list[0].PID))
}

// cursor SESSION TASK waits until a terminal shows the session, with the cursor in
// that task's pane.
func cursor(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, "the cursor in "+strings.Join(args, ":"), func() (bool, string) {
		out, err := exec.Command("tmux", "-S", socketOf(ts), "list-clients", "-F", "#{session_name} #{@hob}").CombinedOutput()
		return strings.TrimSpace(string(out)) == strings.Join(args, " "), fmt.Sprint(string(out), err)
	})
}

// servedas FILE wants the script's tmux server to have been started by the first
// tmux command of a plan.
func servedAs(ts *testscript.TestScript, _ bool, args []string) {
	var plan []tasks.Planned
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &plan))
	out, err := exec.Command("tmux", "-S", socketOf(ts), "display-message", "-p", "#{pid}").Output()
	ts.Check(err)
	line, err := os.ReadFile("/proc/" + strings.TrimSpace(string(out)) + "/cmdline")
	ts.Check(err)
	got := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	if !slices.Equal(got, plan[0].Tmux) {
		ts.Fatalf("the server was started as\n%q\nand planned as\n%q", got, plan[0].Tmux)
	}
}

// waitnote NAME TEXT waits until a task's note has a text.
func waitNote(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, strconv.Quote(args[1])+" in the note of "+args[0], func() (bool, string) {
		s, err := status(ts, args[0])
		return strings.Contains(s.Note, args[1]), fmt.Sprint(s.State, " ", s.Note, " ", err)
	})
}

// readpid VAR FILE sets VAR to the pid in a file.
func readPID(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}

// killserver ends the script's tmux server by force.
func killServer(ts *testscript.TestScript, _ bool, _ []string) {
	out, err := exec.Command("tmux", "-S", socketOf(ts), "display-message", "-p", "#{pid}").Output()
	ts.Check(err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	ts.Check(err)
	kill(pid, syscall.SIGKILL)
}
