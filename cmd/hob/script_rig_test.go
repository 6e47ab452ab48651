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
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"hob/identity"
	"hob/identity/cgrouptest"
	"hob/tasks"
)

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

func childrenOf(pid int) []int {
	h, err := identity.Local()
	if err != nil {
		return nil
	}
	kids, _ := h.Children(pid)
	return kids
}

// socketOf is the script's tmux server.
func socketOf(ts *testscript.TestScript) string {
	sockets, _ := filepath.Glob(filepath.Join(ts.Getenv("SHORT"), "hob", "*.sock"))
	if len(sockets) != 1 {
		ts.Fatalf("%d tmux sockets", len(sockets))
	}
	return sockets[0]
}
