package tasks

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/sweep"
)

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
		g.spec.Stop.TermGrace = 500 * time.Millisecond // for the deaf one
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
// leaves has the grace to end by itself, and is then ended.
func TestSurvivorsOfAServerEndAfterTheGrace(t *testing.T) {
	t.Parallel()
	g := newRig(t, sweep.Server).sh(stragglers + `while :; do sleep 0.1; done`)
	g.spec.Stop.Grace = 2 * time.Second
	g.start().up()
	pids := g.stragglers()
	g.signalPid(g.keeper().Command.PID, syscall.SIGKILL)
	g.until("exit.json", func() bool { _, err := g.dir.ReadExit(); return err == nil })
	g.until("the pane says so", func() bool {
		return strings.Contains(g.screen.String(), "hob: ended by KILL; what it left behind has 2s")
	})
	if code := g.code(); code != 128+int(syscall.SIGKILL) {
		t.Errorf("exit code %d", code)
	}
	g.allEnded(pids)
	r := g.report()
	if r.Reason != "exited" || r.Verdict != sweep.Clean {
		t.Errorf("report %+v", r)
	}
	if got := r.StartedAt.Sub(g.exit().At); got < g.spec.Stop.Grace {
		t.Errorf("they were given %v", got)
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

// TestCaptureOutlivesTheKeeper: a keeper that is killed by force has written
// down what is to be looked for.
func TestCaptureOutlivesTheKeeper(t *testing.T) {
	g := newRig(t, sweep.Server).sh(stragglers + `while :; do sleep 0.1; done`).start().up()
	pids := g.stragglers()
	captured := func() map[int]bool {
		c, err := g.dir.ReadCapture()
		if err != nil && !errors.Is(err, ErrNoRecord) { // before the first look
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

// TestDisownedKeeperEndsBesideWhatItLeaves: its records are another start's by now,
// so what its own stop left alone is not in the capture on disk. It must not wait for
// that: nobody would know of it (a nested tmux server can outlive its pane for days).
func TestDisownedKeeperEndsBesideWhatItLeaves(t *testing.T) {
	g := newRig(t, sweep.Shell).sh(`setsid sh -c 'echo $$ >left; exec sleep 300' & while [ ! -s left ]; do sleep 0.02; done; exec cat`)
	g.spec.Stop.Spare = []string{"sleep"}
	g.start().up()
	pid := g.pidIn("left")
	t.Cleanup(func() { g.signalPid(pid, syscall.SIGKILL) })
	task, err := g.dir.ReadTask()
	if err != nil {
		t.Fatal(err)
	}
	task.Nonce, task.State = "another start", Ready
	if err := g.dir.WriteTask(task); err != nil {
		t.Fatal(err)
	}
	g.signal(syscall.SIGTERM)
	g.code()
	if !g.lives(pid) {
		t.Error("what was to be left alone was ended")
	}
}
