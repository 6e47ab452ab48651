package tasks

import (
	"bytes"
	"encoding/json"
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

func TestKeeperRunsACommandToItsEnd(t *testing.T) {
	g := newRig(t, sweep.Job).sh(`echo first; sleep 0.3; echo last; exit 7`).start()
	g.up()
	if code := g.code(); code != 7 {
		t.Errorf("exit code %d", code)
	}
	if got, want := g.log(), "first\r\nlast\r\n"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
	if e := g.exit(); e.Code == nil || *e.Code != 7 || e.Nonce != "nonce-1" {
		t.Errorf("exit.json %+v", e)
	}
	if k := g.keeper(); !k.Empty || k.LastLine != "last" || k.Pane != "%7" || k.Command == nil {
		t.Errorf("keeper.json %+v", k)
	}
	if s := g.state(); s != Failed {
		t.Errorf("state %s", s)
	}
	if r := g.report(); r.Verdict != sweep.Clean || r.Reason != "exited" {
		t.Errorf("report %+v", r)
	}
}

func TestKeeperRecordsASignal(t *testing.T) {
	g := newRig(t, sweep.Server).sh(`kill -SEGV $$`).start()
	if code := g.code(); code != 128+int(syscall.SIGSEGV) {
		t.Errorf("exit code %d", code)
	}
	if e := g.exit(); e.Code != nil || e.Signal != "SEGV" {
		t.Errorf("exit.json %+v", e)
	}
}

// TestInstantExits: a command that has ended before anybody can look loses
// neither its status nor its output nor its place in the records (faults 28, 29).
func TestInstantExits(t *testing.T) {
	t.Parallel()
	times := 200
	if testing.Short() {
		times = 20
	}
	for i := range times {
		want := i % 5
		text := fmt.Sprintf("only line %d", i)
		g := newRig(t, sweep.Job, "/bin/sh", "-c", fmt.Sprintf("printf '%s'; exit %d", text, want)).start()
		if code := g.code(); code != want {
			t.Fatalf("round %d: exit code %d", i, code)
		}
		k := g.keeper()
		if e := g.exit(); e.Code == nil || *e.Code != want || g.log() != text || !k.Empty || k.Command == nil || k.Command.Start == "" {
			t.Fatalf("round %d: %+v, log %q, keeper %+v", i, e, g.log(), k)
		}
		g.until("the pane shows it", func() bool { return strings.Contains(g.screen.String(), text) })
	}
}

// TestLogIsCompleteThroughRotation (fault 29).
func TestLogIsCompleteThroughRotation(t *testing.T) {
	g := newRig(t, sweep.Job).sh(`i=0; while [ $i -lt 20000 ]; do echo "line $i of the output"; i=$((i+1)); done; printf end`)
	g.spec.Log = LogPolicy{MaxBytes: 64 << 10, Keep: 20}
	g.start().code()
	var all strings.Builder
	for n := 20; n >= 0; n-- {
		data, err := os.ReadFile((&taskLog{path: g.dir.LogPath()}).numbered(n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		all.Write(data)
	}
	var want strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&want, "line %d of the output\r\n", i)
	}
	want.WriteString("end")
	if all.String() != want.String() {
		t.Errorf("%d bytes of %d are there", all.Len(), want.Len())
	}
	if _, err := os.Stat(g.dir.LogPath() + ".2"); err != nil {
		t.Errorf("it was not rotated: %v", err)
	}
}

// TestStoppedTerminalDoesNotFreezeTheCommand: nobody reads the pane, and 60 MB
// get into the log all the same.
func TestStoppedTerminalDoesNotFreezeTheCommand(t *testing.T) {
	t.Parallel()
	const size = 60_000_000
	g := newRig(t, sweep.Job).sh(fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x; echo; echo done`, size))
	g.spec.Log = LogPolicy{MaxBytes: 2 * size, Keep: 1}
	g.hold = make(chan struct{})
	g.start()
	if code := g.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	fi, err := os.Stat(g.dir.LogPath())
	if err != nil || fi.Size() != size+int64(len("\r\ndone\r\n")) {
		t.Errorf("the log has %d bytes, %v", fi.Size(), err)
	}
}

func TestCtrlCPassesThrough(t *testing.T) {
	g := newRig(t, sweep.Server).sh(`trap 'echo interrupted; exit 3' INT; echo armed; while :; do sleep 0.1; done`).start()
	g.untilLog("armed")
	if _, err := g.pty.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	if code := g.code(); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(g.log(), "interrupted") {
		t.Errorf("log %q", g.log())
	}
}

func TestWindowSize(t *testing.T) {
	g := newRig(t, sweep.Server).sh(`trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done`).start()
	g.untilLog("33 101")
	g.resize(44, 55)
	g.untilLog("44 55")
}

// stragglers is a command whose descendants leave it in several ways.
const stragglers = `
(sleep 300 & echo $! >plain)
setsid sh -c 'trap "" HUP TERM; echo $$ >deaf; exec sleep 300' &
nohup sh -c 'echo $$ >nohup; exec sleep 300' >/dev/null 2>&1 &
(setsid sh -c '(sleep 300 & echo $! >daemon)' &)
while [ ! -s plain ] || [ ! -s deaf ] || [ ! -s nohup ] || [ ! -s daemon ]; do sleep 0.02; done
echo all there
`

func (g *rig) stragglers() []int {
	g.t.Helper()
	g.untilLog("all there")
	return []int{g.pidIn("plain"), g.pidIn("deaf"), g.pidIn("nohup"), g.pidIn("daemon")}
}

func (g *rig) allEnded(pids []int) {
	g.t.Helper()
	for _, pid := range pids {
		if g.lives(pid) {
			g.t.Errorf("pid %d lives", pid)
		}
	}
}

// TestHangupStopsEverything: kill-session, kill-server and a crash of tmux all
// look like this.
func TestHangupStopsEverything(t *testing.T) {
	t.Parallel()
	g := newRig(t, sweep.Server).sh(`trap 'echo bye; exit 0' TERM;` + stragglers + `while :; do sleep 0.1; done`).start().up()
	pids := g.stragglers()
	g.pty.Close()
	g.code()
	g.allEnded(pids)
	r := g.report()
	if r.Reason != "hangup" || r.Verdict != sweep.Clean {
		t.Errorf("report %+v", r)
	}
	for _, pid := range pids {
		if member(r, pid) == nil {
			t.Errorf("pid %d is not in the report", pid)
		}
	}
	if s := g.state(); s != Stopped {
		t.Errorf("state %s", s)
	}
	if !strings.HasSuffix(g.log(), "bye\r\n") {
		t.Errorf("log %q", g.log())
	}
}

func TestTermStops(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stop   *StopRequest
		reason string
	}{
		{nil, "terminated"},
		{&StopRequest{Nonce: "nonce-1", Reason: "down"}, "down"},
		{&StopRequest{Nonce: "an earlier start's", Reason: "down"}, "terminated"},
	} {
		g := newRig(t, sweep.Server).sh(`trap 'exit 0' TERM;` + stragglers + `while :; do sleep 0.1; done`)
		g.spec.Stop.Grace, g.spec.Stop.TermGrace = 500*time.Millisecond, 500*time.Millisecond
		g.start().up()
		pids := g.stragglers()
		if c.stop != nil {
			if err := g.dir.WriteStop(*c.stop); err != nil {
				t.Fatal(err)
			}
		}
		g.signal(syscall.SIGTERM)
		if code := g.code(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		g.allEnded(pids)
		if r := g.report(); r.Reason != c.reason || r.Verdict != sweep.Clean {
			t.Errorf("report %+v, want reason %s", r, c.reason)
		}
		if s := g.state(); s != Stopped {
			t.Errorf("state %s", s)
		}
	}
}

// TestSurvivorsOfAServerEndAfterTheGrace: the server is killed hard; what it
// leaves has the grace to end by itself, and is then ended (fault 12).
func TestSurvivorsOfAServerEndAfterTheGrace(t *testing.T) {
	t.Parallel()
	g := newRig(t, sweep.Server).sh(stragglers + `while :; do sleep 0.1; done`)
	g.spec.Stop.Grace = 2 * time.Second
	g.start().up()
	pids := g.stragglers()
	g.signalPid(g.keeper().Command.PID, syscall.SIGKILL)
	g.until("exit.json", func() bool { _, err := g.dir.ReadExit(); return err == nil })
	if !g.lives(pids[2]) {
		t.Error("they were not given the grace")
	}
	if code := g.code(); code != 128+int(syscall.SIGKILL) {
		t.Errorf("exit code %d", code)
	}
	g.allEnded(pids)
	r := g.report()
	if r.Reason != "exited" || r.Verdict != sweep.Clean {
		t.Errorf("report %+v", r)
	}
	if m := member(r, pids[1]); m == nil || m.Fate != sweep.Killed {
		t.Errorf("the deaf one: %+v", m)
	}
	if s := g.state(); s != Failed {
		t.Errorf("state %s", s)
	}
}

func TestLeftoversOfAJobEndAtOnce(t *testing.T) {
	t.Parallel()
	g := newRig(t, sweep.Job).sh(stragglers + `exit 0`)
	g.spec.Stop.Grace = time.Hour
	g.start().up()
	pids := g.stragglers()
	if code := g.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	g.allEnded(pids)
	if s := g.state(); s != Completed {
		t.Errorf("state %s", s)
	}
}

// TestLeftoversOfAShellAreKept, and named.
func TestLeftoversOfAShellAreKept(t *testing.T) {
	g := newRig(t, sweep.Shell).sh(`setsid sh -c 'echo $$ >left; exec sleep 300' & while [ ! -s left ]; do sleep 0.02; done; exit 0`)
	g.spec.Stop.Detached = "report"
	g.start().up()
	pid := g.pidIn("left")
	t.Cleanup(func() { g.signalPid(pid, syscall.SIGKILL) })
	g.code()
	if !g.lives(pid) {
		t.Error("what a person left was ended")
	}
	r := g.report()
	if m := member(r, pid); m == nil || m.Fate != sweep.Spared || r.Verdict != sweep.Clean {
		t.Errorf("report %+v", r)
	}
	if s := g.state(); s != Exited {
		t.Errorf("state %s", s)
	}
}

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
	// A stop is never followed by a restart (fault 43).
	g.signal(syscall.SIGTERM)
	g.code()
	if data, _ := os.ReadFile(filepath.Join(g.spec.Dir, "starts")); bytes.Count(data, []byte("x")) != 3 {
		t.Errorf("it was started again after the stop")
	}
	if s := g.state(); s != Stopped {
		t.Errorf("state %s", s)
	}
}

// TestCrashLoopEnds, in failed (fault 43).
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

func TestWrongRecordsStartNothing(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(g *rig)
		code    int
	}{
		"another nonce": {func(g *rig) { g.task(Task{State: Starting, Nonce: "other"}) }, keeperRefused},
		"no nonce":      {func(g *rig) { g.spec.Nonce = ""; g.task(Task{State: Starting}) }, keeperRefused},
		"already up":    {func(g *rig) { g.task(Task{State: Up, Nonce: "nonce-1"}) }, keeperRefused},
		"stopped":       {func(g *rig) { g.task(Task{State: Stopped, Nonce: "nonce-1"}) }, keeperRefused},
		"a second keeper": {func(g *rig) {
			g.task(Task{State: Starting, Nonce: "nonce-1"})
			_ = g.dir.WriteKeeper(Keeper{Nonce: "nonce-1"})
		}, keeperRefused},
		"no task.json": {func(g *rig) {}, keeperUnverified},
		"torn task.json": {func(g *rig) {
			_ = os.WriteFile(g.dir.file("task.json"), []byte("{"), 0o600)
		}, keeperUnverified},
		"contained without owner": {func(g *rig) {
			g.spec.Lifetime = Contained
			g.task(Task{State: Starting, Nonce: "nonce-1"})
		}, keeperRefused},
		"owner not proven": {func(g *rig) {
			g.spec.Lifetime = Contained
			ref := testRef(os.Getpid())
			g.spec.Owner = &ref
			g.task(Task{State: Starting, Nonce: "nonce-1"})
		}, keeperRefused},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, sweep.Server).sh(`echo x >started; sleep 300`)
			c.prepare(g)
			if err := g.dir.WriteSpec(g.spec); err != nil {
				t.Fatal(err)
			}
			g.launch()
			if code := g.code(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if _, err := os.Stat(filepath.Join(g.spec.Dir, "started")); err == nil {
				t.Error("the command was started")
			}
			g.until("the pane says why", func() bool { return strings.Contains(g.screen.String(), "hob: ") })
		})
	}
}

func (g *rig) task(t Task) {
	g.t.Helper()
	t.Run, t.Task, t.Kind = "chat", "llm", g.spec.Kind
	if err := g.dir.WriteTask(t); err != nil {
		g.t.Fatal(err)
	}
}

func TestFailedStarts(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"plain": 0o600, "noshebang": 0o700, "badinterp": 0o700} {
		text := map[string]string{"plain": "x", "noshebang": "echo", "badinterp": "#!/no/such/interpreter\n"}[name]
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		dir  string
		code int
		says string
	}{
		{[]string{"no-such-command-of-hob"}, "", 127, "not found in PATH"},
		{[]string{"./nothing"}, "", 127, "nothing"},
		{[]string{filepath.Join(dir, "plain")}, "", 126, "not executable"},
		{[]string{dir}, "", 126, "is a folder"},
		{[]string{filepath.Join(dir, "noshebang")}, "", 126, "no #! line"},
		{[]string{filepath.Join(dir, "badinterp")}, "", 126, "interpreter"},
		{[]string{"true"}, "/no/such/folder", 126, "/no/such/folder"},
		{[]string{}, "", 127, "empty"},
	} {
		g := newRig(t, sweep.Server, c.args...)
		if c.dir != "" {
			g.spec.Dir = c.dir
		}
		g.start()
		if code := g.code(); code != c.code {
			t.Errorf("%q: exit code %d, want %d", c.args, code, c.code)
		}
		e := g.exit()
		if e.Code == nil || *e.Code != c.code || !strings.Contains(e.Error, c.says) {
			t.Errorf("%q: exit.json %+v does not say %q", c.args, e, c.says)
		}
		if !strings.Contains(g.log(), c.says) {
			t.Errorf("%q: the log says %q", c.args, g.log())
		}
		g.until("the pane says "+c.says, func() bool { return strings.Contains(g.screen.String(), c.says) })
		if k := g.keeper(); k.Command != nil || !k.Empty {
			t.Errorf("%q: keeper.json %+v", c.args, k)
		}
	}
}

// TestSecretsStandOnlyInTheSpec (fault 49).
func TestSecretsStandOnlyInTheSpec(t *testing.T) {
	t.Parallel()
	const secret = "hf_tHiSiStHeSeCrEt"
	g := newRig(t, sweep.Server).sh(stragglers + `test -n "$TOKEN" && echo has it; while :; do sleep 0.1; done`)
	g.spec.Env = append(g.spec.Env, "TOKEN="+secret)
	g.start().up()
	g.stragglers()
	g.untilLog("has it")
	for _, file := range []string{"cmdline", "environ"} {
		if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", g.cmd.Process.Pid, file)); err != nil || strings.Contains(string(data), secret) {
			t.Errorf("the keeper's %s: %q, %v", file, data, err)
		}
	}
	g.signal(syscall.SIGTERM)
	g.code()
	err := filepath.WalkDir(g.run.store.Home, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), secret) != (filepath.Base(path) == "spec.json") {
			t.Errorf("%s holds the secret, or lacks it", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestCaptureOutlivesTheKeeper: a keeper that is killed by force has written
// down what is to be looked for (fault 18).
func TestCaptureOutlivesTheKeeper(t *testing.T) {
	g := newRig(t, sweep.Server).sh(stragglers + `while :; do sleep 0.1; done`).start().up()
	pids := g.stragglers()
	captured := func() map[int]bool {
		c, err := g.dir.ReadCapture()
		if err != nil {
			t.Fatal(err)
		}
		got := map[int]bool{}
		for _, m := range c.Members {
			got[m.Ref.PID] = true
		}
		return got
	}
	g.until("all are captured", func() bool {
		got := captured()
		for _, pid := range append(pids, g.keeper().Command.PID) {
			if !got[pid] {
				return false
			}
		}
		return true
	})
	command := g.keeper().Command.PID
	t.Cleanup(func() {
		for _, pid := range append(pids, command) {
			if g.lives(pid) {
				g.signalPid(pid, syscall.SIGKILL)
			}
		}
	})
	_ = g.cmd.Process.Kill()
	g.code()
	if !g.lives(pids[1]) {
		t.Error("the deaf one did not outlive the keeper: this test shows nothing")
	}
	if got := captured(); !got[pids[1]] || !got[pids[3]] {
		t.Errorf("captured: %v", got)
	}
}

// TestOwnerEnds: a contained task stops with the hob that it belongs to.
func TestOwnerEnds(t *testing.T) {
	t.Parallel()
	owner := command(t, "hold-stdin")
	stdin, err := owner.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	g := newRig(t, sweep.Server).sh(`trap 'exit 0' TERM;` + stragglers + `while :; do sleep 0.1; done`)
	h, err := g.h.Open(owner.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	ref := h.Ref()
	h.Close()
	g.spec.Lifetime, g.spec.Owner = Contained, &ref
	g.start().up()
	pids := g.stragglers()
	stdin.Close()
	_ = owner.Wait()
	g.code()
	g.allEnded(pids)
	if r := g.report(); r.Reason != "owner" || r.Verdict != sweep.Clean {
		t.Errorf("report %+v", r)
	}
}

func init() {
	roles["hold-stdin"] = func([]string) int {
		os.Stdin.Read(make([]byte, 1))
		return 0
	}
}

// TestStopOfAKilledHobIsFinished: while another hob holds the lock the keeper
// signals nothing; when that is killed in the middle, the keeper goes on.
func TestStopOfAKilledHobIsFinished(t *testing.T) {
	t.Parallel()
	g := newRig(t, sweep.Server).sh(`trap 'echo told; exit 0' TERM;` + stragglers + `while :; do sleep 0.1; done`).start().up()
	pids := g.stragglers()
	holder := command(t, "hold", g.dir.SpecPath())
	stdin, _ := holder.StdinPipe()
	stdout, _ := holder.StdoutPipe()
	ends, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	holder.ExtraFiles = []*os.File{ends}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	ends.Close()
	defer stdin.Close()
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	task, err := g.dir.ReadTask()
	if err != nil {
		t.Fatal(err)
	}
	task.State, task.Reason, task.UpdatedAt = Stopping, "down", time.Now()
	if err := g.dir.WriteTask(task); err != nil {
		t.Fatal(err)
	}
	g.signal(syscall.SIGTERM) // also one who is told to stop leaves it to the holder
	g.until("the keeper was told", func() bool {
		events, _, _ := g.run.Events()
		return strings.Contains(fmt.Sprint(events), "asked to stop")
	})
	if strings.Contains(g.log(), "told") || !g.lives(pids[0]) {
		t.Error("the keeper signalled beside the lock's holder")
	}
	_ = holder.Process.Kill()
	_ = holder.Wait()
	g.code()
	g.allEnded(pids)
	if r := g.report(); r.Verdict != sweep.Clean || !strings.Contains(g.log(), "told") {
		t.Errorf("report %+v, log %q", r, g.log())
	}
	if s := g.state(); s != Stopped {
		t.Errorf("state %s", s)
	}
}

// TestOutputAfterAllWasClosed: a command that closes its terminal and opens it
// again later loses nothing in between.
func TestOutputAfterAllWasClosed(t *testing.T) {
	g := newRig(t, sweep.Job).sh(`echo before; tty >name; exec <&- >&- 2>&-; sleep 0.5; echo after >$(cat name)`)
	g.start().code()
	if got, want := g.log(), "before\r\nafter\r\n"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
}

// TestCommandStartsClean: whatever the keeper was started with, the command has
// default signals, no blocked ones, no descriptor but its terminal, and that
// one blocking.
func TestCommandStartsClean(t *testing.T) {
	// Not by a shell: dash empties its signal mask and resets what it likes.
	g := newRig(t, sweep.Job, "grep", "-E", "Sig(Blk|Ign)|flags", "/proc/self/status", "/proc/self/fdinfo/0")
	g.role = "tainted"
	g.start().code()
	for _, want := range []string{"SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000", "flags:\t0100002"} { // O_RDWR, O_LARGEFILE
		if !strings.Contains(g.log(), want) {
			t.Errorf("no %q in %s", want, g.log())
		}
	}
	g = newRig(t, sweep.Job, "ls", "-l", "/proc/self/fd")
	g.role = "tainted"
	g.start().code()
	// The fourth is the one that ls reads the folder with.
	if log := g.log(); strings.Count(log, " -> ") != 4 || strings.Count(log, "-> /dev/pts/") != 3 {
		t.Errorf("descriptors: %s", log)
	}
}

func TestEnvironmentOfTheCommand(t *testing.T) {
	s := Spec{Run: "chat", Task: "llm", RunID: "id", Kind: sweep.Server, Dir: "/d", Env: []string{
		"A=1", "A=2", "TMUX=/user,1,2", "TMUX_PANE=%0", "TERM=xterm-kitty", "PWD=/x", "OLDPWD=/y", "HOB_RUN=old", "PATH=/bin", "junk",
	}}
	getenv := func(name string) string {
		return map[string]string{"TMUX": "/hob,1,2", "TMUX_PANE": "%7", "TERM": "tmux-256color"}[name]
	}
	want := "A=2 PATH=/bin HOB_RUN=chat HOB_TASK=llm HOB_RUN_ID=id HOB_HOME=/home SPT_NOENV=1 PWD=/d TERM=tmux-256color"
	if got := strings.Join(environment(s, "/home", getenv), " "); got != want {
		t.Errorf("server:\n%s\nwant\n%s", got, want)
	}
	s.Kind = sweep.Shell
	if got := strings.Join(environment(s, "/home", getenv), " "); got != want+" TMUX=/hob,1,2 TMUX_PANE=%7" {
		t.Errorf("shell:\n%s", got)
	}
	if got := strings.Join(environment(s, "/home", func(string) string { return "" }), " "); !strings.HasSuffix(got, "TERM=screen") {
		t.Errorf("outside tmux:\n%s", got)
	}
}

// TestMemoryOfTheTree is measured, and null once there is nothing to measure.
func TestMemoryOfTheTree(t *testing.T) {
	g := newRig(t, sweep.Server).sh(`while :; do sleep 0.1; done`).start().up()
	g.until("memory is measured", func() bool { k := g.keeper(); return k.MemoryBytes != nil && *k.MemoryBytes > 100<<10 })
	g.signal(syscall.SIGTERM)
	g.code()
	data, err := os.ReadFile(g.dir.file("keeper.json"))
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]any
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	if v, ok := raw["gpu_bytes"]; !ok || v != nil {
		t.Errorf("gpu_bytes is %v", v)
	}
}

// TestCyclesLeaveNothing: starts and stops leave no process, file or terminal
// behind (fault 45).
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
	most := 0
	g.until("some restarts", func() bool { most = max(most, fds()); return g.keeper().Restarts >= 3 })
	later := 0
	g.until("more restarts", func() bool { later = max(later, fds()); return g.keeper().Restarts >= 12 })
	if later > most+4 {
		t.Errorf("descriptors: %d at first, %d later", most, later)
	}
}

// TestQuietJobCompletes: exit 0 without a word of output is completed (fault 40).
func TestQuietJobCompletes(t *testing.T) {
	g := newRig(t, sweep.Job, "true").start()
	g.until("the command is recorded", func() bool { return g.keeper().Command != nil })
	g.code()
	if s := g.state(); s != Completed || g.log() != "" {
		t.Errorf("state %s, log %q", s, g.log())
	}
}
