package tasks

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/sweep"
)

func TestRestartPolicy(t *testing.T) {
	script := `echo x >>starts; n=$(wc -l <starts); [ $n -lt 3 ] && exit 1; echo started $n times; while :; do sleep 0.1; done`
	g := newRig(t, sweep.Server).sh(script)
	g.spec.Restart = Restart{Policy: "on-failure", Max: 3, Backoff: 10 * time.Millisecond}
	g.start().up()
	g.untilLog("started 3 times")
	g.until("two restarts are recorded", func() bool { k := g.keeper(); return k.Restarts == 2 && k.Ready })
	if s := g.state(); s != Up {
		t.Errorf("state %s", s)
	}
	if _, err := g.dir.ReadExit(); !errors.Is(err, ErrNoRecord) {
		t.Errorf("exit.json of the life before is still there: %v", err)
	}
	// A stop is never followed by a restart.
	g.signal(syscall.SIGTERM)
	g.code()
	if data, _ := os.ReadFile(filepath.Join(g.spec.Dir, "starts")); bytes.Count(data, []byte("x")) != 3 {
		t.Errorf("it was started again after the stop")
	}
	if s := g.state(); s != Stopped {
		t.Errorf("state %s", s)
	}
}

// TestCrashLoopEnds: a command that goes on ending is given up, and the task has failed.
func TestCrashLoopEnds(t *testing.T) {
	g := newRig(t, sweep.Server).sh(`echo x >>starts; exit 4`)
	g.spec.Restart = Restart{Policy: "always", Max: 2, Backoff: 10 * time.Millisecond}
	g.start().up()
	if code := g.code(); code != 4 {
		t.Errorf("exit code %d", code)
	}
	if data, _ := os.ReadFile(filepath.Join(g.spec.Dir, "starts")); bytes.Count(data, []byte("x")) != 3 {
		t.Errorf("starts: %q", data)
	}
	if s := g.state(); s != Failed {
		t.Errorf("state %s", s)
	}
	if text := g.screen.String(); !strings.Contains(text, "hob: exit code 4, restart 2 of 2 in") {
		t.Errorf("the pane says %q", text)
	}
	if k := g.keeper(); k.Restarts != 2 || !strings.Contains(k.ReadyNote, "3 times in a row") {
		t.Errorf("keeper.json %+v", k)
	}
}

// TestStopDuringTheBackoff: a keeper that waits to start again ends when a stop begins.
func TestStopDuringTheBackoff(t *testing.T) {
	g := newRig(t, sweep.Server).sh(`exit 1`)
	g.spec.Restart = Restart{Policy: "always", Max: 2, Backoff: time.Hour}
	g.start().up()
	g.until("the restart is planned", func() bool { return strings.Contains(g.keeper().ReadyNote, "restart 1 of 2") })
	unlock, err := g.dir.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	task, err := g.dir.ReadTask()
	if err != nil {
		t.Fatal(err)
	}
	task.State, task.UpdatedAt = Stopping, time.Now()
	if err := g.dir.WriteTask(task); err != nil {
		t.Fatal(err)
	}
	g.code()
	unlock()
	if s := g.state(); s != Stopping {
		t.Errorf("the keeper wrote %s beside the one that holds the lock", s)
	}
}

// TestCyclesLeaveNothing: starts and stops leave no process, file or terminal
// behind.
func TestCyclesLeaveNothing(t *testing.T) {
	t.Parallel()
	times := 100
	if testing.Short() {
		times = 10
	}
	g := newRig(t, sweep.Server, "sleep", "300")
	count := func() (ptys int, files string) {
		list, err := os.ReadDir("/dev/pts")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		err = filepath.WalkDir(g.run.store.Home, func(path string, _ fs.DirEntry, err error) error {
			names = append(names, path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return len(list), strings.Join(names, "\n")
	}
	var files string
	for i := range times {
		g.spec.Nonce = fmt.Sprint("cycle ", i)
		g.ended = make(chan struct{})
		task := Task{Run: "chat", Task: "llm", Kind: sweep.Server, State: Starting, Nonce: g.spec.Nonce}
		if err := errors.Join(g.dir.WriteSpec(g.spec), g.dir.WriteTask(task)); err != nil {
			t.Fatal(err)
		}
		g.cycle()
		if i == 5 { // the log has rotated as often as it will
			_, files = count()
		}
	}
	if _, now := count(); now != files {
		t.Errorf("files before\n%s\nand after\n%s", files, now)
	}
	table, err := g.h.Snapshot(t.Context(), identity.WantEnviron)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range table.Procs {
		for _, kv := range p.Environ {
			if kv == "HOB_HOME="+g.run.store.Home {
				t.Errorf("pid %d is left: %q", p.PID, p.Args)
			}
		}
	}
}

// cycle is one start and stop, without the rig's cleanup.
func (g *rig) cycle() {
	g.t.Helper()
	g.launch()
	g.until("up", func() bool { k := g.keeper(); return k.Nonce == g.spec.Nonce && k.Command != nil })
	g.signal(syscall.SIGTERM)
	g.code()
	g.pty.Close()
}

// TestRestartsLeakNothing inside the keeper.
func TestRestartsLeakNothing(t *testing.T) {
	t.Parallel()
	g := newRig(t, sweep.Server).sh(`(sleep 300 &) ; exit 1`)
	g.spec.Stop.Grace = 0
	g.spec.Restart = Restart{Policy: "always", Max: 1000, Backoff: time.Millisecond}
	g.start().up()
	fds := func() int {
		list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", g.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	// The fewest of a time: what a look at the host takes for a moment comes and goes.
	first := fds()
	g.until("some restarts", func() bool { first = min(first, fds()); return g.keeper().Restarts >= 3 })
	later := fds()
	g.until("more restarts", func() bool { later = min(later, fds()); return g.keeper().Restarts >= 12 })
	if later > first+4 {
		t.Errorf("descriptors: %d at first, %d later", first, later)
	}
}
