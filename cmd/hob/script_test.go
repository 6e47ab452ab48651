//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
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
			"waitsaid":   waitSaid,
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
		whose.Store(ts.Getenv("SHORT")+" "+ts.Getenv(args[0]), *k.Command)
	}
	ts.Setenv(args[0]+"_KEEPER", strconv.Itoa(k.Keeper.PID))
	whose.Store(ts.Getenv("SHORT")+" "+ts.Getenv(args[0]+"_KEEPER"), k.Keeper)
}

// whose are the processes whose pids the scripts have read, each under its script's
// folder and pid: when other tests start a thousand a second, a number is another's
// soon.
var whose sync.Map

// setPID sets a variable to the pid of whoever has it now.
func setPID(ts *testscript.TestScript, name, pid string) {
	ts.Setenv(name, pid)
	n, err := strconv.Atoi(pid)
	ts.Check(err)
	h, err := identity.Local()
	ts.Check(err)
	if p, err := h.Open(n); err == nil {
		whose.Store(ts.Getenv("SHORT")+" "+pid, p.Ref())
		_ = p.Close()
	}
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
	if ref, ok := whose.Load(ts.Getenv("SHORT") + " " + pid); ok {
		p, f := h.Verify(ref.(identity.Ref))
		if p != nil {
			_ = p.Close()
		}
		return f.Verdict == identity.Owned
	}
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
	setPID(ts, args[0], strconv.Itoa(c.Process.Pid))
	ts.Defer(func() {
		for _, kid := range childrenOf(c.Process.Pid) { // while it lives: whose they are is sure
			kill(kid, syscall.SIGKILL)
		}
		_ = c.Process.Kill()
		_ = c.Wait()
	})
}

func touch(ts *testscript.TestScript, _ bool, args []string) {
	for _, f := range args {
		ts.Check(os.WriteFile(ts.MkAbs(f), nil, 0o600))
	}
}

// pidof1 VAR sets VAR to the pid of the first task that `hob ps --json` has just shown.
func firstPID(ts *testscript.TestScript, _ bool, args []string) {
	var list []tasks.Status
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &list))
	if len(list) == 0 || list[0].PID == nil {
		ts.Fatalf("no task has a pid")
	}
	setPID(ts, args[0], strconv.Itoa(*list[0].PID))
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

// readpid VAR FILE sets VAR to the pid in a file, once it is there: a shell makes the
// file before it writes.
func readPID(ts *testscript.TestScript, _ bool, args []string) {
	var pid string
	eventually(ts, "a pid in "+args[1], func() (bool, string) {
		text, _ := os.ReadFile(ts.MkAbs(args[1]))
		pid = strings.TrimSpace(string(text))
		_, err := strconv.Atoi(pid)
		return err == nil, fmt.Sprintf("it holds %q", text)
	})
	setPID(ts, args[0], pid)
}

// killserver ends the script's tmux server by force.
func killServer(ts *testscript.TestScript, _ bool, _ []string) {
	out, err := exec.Command("tmux", "-S", socketOf(ts), "display-message", "-p", "#{pid}").Output()
	ts.Check(err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	ts.Check(err)
	kill(pid, syscall.SIGKILL)
}
