package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/identity/porttest"
	"hob/sweep"
)

// stranger starts a process that is not of the task: a child of the test.
func (k *real) stranger(name string, cmd *exec.Cmd, env ...string) *exec.Cmd {
	k.t.Helper()
	cmd.Env = append(append(os.Environ(), "D="+k.dir, helperEnv+"=idle"), env...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	k.t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	k.ref(name)
	return cmd
}

func (k *real) lookalike(r sweep.Report, name string) sweep.Lookalike {
	k.t.Helper()
	for _, l := range r.Lookalikes {
		if l.PID == k.ref(name).PID {
			return l
		}
	}
	k.t.Errorf("%s is not named: %s", name, k.story(r))
	return sweep.Lookalike{}
}

// TestStrangersAreNamedAndNotTouched: a copied command line, a copied marker,
// both, and the task's port.
func TestStrangersAreNamedAndNotTouched(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	k := startHelper(t, sweep.Server, "idle", "main")
	main := k.ref("main")
	live := k.args(main)
	k.target.Ports = []int{port}
	mark := []string{"HOB_RUN_ID=" + k.marker, "HOB_RUN=r", "HOB_TASK=t"}
	k.stranger("argv", &exec.Cmd{Path: os.Args[0], Args: live}, "ALIAS=argv")
	k.stranger("marked", exec.Command(os.Args[0], "marked"), mark...)
	k.stranger("both", &exec.Cmd{Path: os.Args[0], Args: live}, append(mark, "ALIAS=both")...)
	k.stranger("listener", exec.Command(os.Args[0], "listener", fmt.Sprint(port)), helperEnv+"=listen")
	k.stranger("sibling", exec.Command(os.Args[0], "sibling"), "HOB_RUN_ID="+k.marker, "HOB_TASK=other")

	r := k.stop(sweep.Capture{}, sweep.Options{})
	k.stopped(r, "main")
	for name, why := range map[string][]string{
		"argv": {"command"}, "marked": {"marker"}, "both": {"marker", "command"}, "listener": {fmt.Sprintf("port %d", port)},
	} {
		l := k.lookalike(r, name)
		if !slices.Equal(l.Why, why) || l.Start != k.ref(name).Start || l.StartedAt == nil || l.User == "" {
			t.Errorf("%s: %+v", name, l)
		}
		if !k.alive(name) {
			t.Errorf("%s is dead", name)
		}
	}
	if !k.alive("sibling") || slices.ContainsFunc(r.Lookalikes, func(l sweep.Lookalike) bool { return l.PID == k.ref("sibling").PID }) {
		t.Error("another task of the run is no look-alike of this one")
	}
	if want := k.ref("listener").PID; len(r.Ports) != 1 || r.Ports[0].State != "held" || r.Ports[0].PID == nil || *r.Ports[0].PID != want {
		t.Errorf("ports: %+v", r.Ports)
	}
}

func (k *real) touch(name string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.dir, name), nil, 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// args is the live command line of a process.
func (k *real) args(ref identity.Ref) []string {
	k.t.Helper()
	h, f := k.h.Verify(ref)
	if h == nil {
		k.t.Fatal(f.Reason)
	}
	defer h.Close()
	p, err := h.Read(identity.WantArgs)
	if err != nil {
		k.t.Fatal(err)
	}
	return p.Args
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := porttest.Free()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestATmuxServerInTheTreeIsABoundary: it and all below it belong to somebody,
// also when they were captured before.
func TestATmuxServerInTheTreeIsABoundary(t *testing.T) {
	for _, kind := range []sweep.Kind{sweep.Server, sweep.Shell} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "sw")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			sock := filepath.Join(dir, "s")
			t.Cleanup(func() { _ = exec.Command("tmux", "-S", sock, "kill-server").Run() })
			k := startFirst(t, kind, `env -u TMUX tmux -S `+sock+` -f /dev/null new-session -d "`+sleeper("inside")+`"
tmux -S `+sock+` new-window -d "setsid -f `+sleeper("daemon")+`; sleep 300"
tmux -S `+sock+` display-message -p '#{pid}' >"$D/tmux"`, "inside", "daemon", "tmux")
			k.target.Stop.Detached = "kill"
			r := k.stop(k.observe(sweep.Capture{}), sweep.Options{})
			wantFate, wantVerdict := sweep.Survived, sweep.Survivors
			if kind == sweep.Shell {
				wantFate, wantVerdict = sweep.Spared, sweep.Clean
			}
			for _, name := range []string{"tmux", "inside", "daemon"} {
				if m := k.member(r, name); m.Fate != wantFate || len(m.Signals) > 0 || !k.alive(name) {
					t.Errorf("%s: %+v", name, m)
				}
			}
			if r.Verdict != wantVerdict || k.alive("command") || !k.alive("keeper") || k.panes != 1 {
				t.Errorf("%s", k.story(r))
			}
		})
	}
}

func TestAnotherHobsKeeperIsABoundary(t *testing.T) {
	t.Parallel()
	k := startFirst(t, sweep.Job, `cat >"$D/hob" <<'X'
#!/bin/sh
echo $$ >"$D/other"
sh $D/sleep.sh below &
wait
X
chmod +x "$D/hob"; "$D/hob" keeper /x/spec.json &`, "other", "below")
	r := k.stop(sweep.Capture{}, sweep.Options{})
	for _, name := range []string{"other", "below"} {
		if m := k.member(r, name); m.Fate != sweep.Survived || len(m.Signals) > 0 || !k.alive(name) {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if r.Verdict != sweep.Survivors {
		t.Error(k.story(r))
	}
}

func TestWhatAPersonDetachedInAShellIsKept(t *testing.T) {
	t.Parallel()
	k := startFirst(t, sweep.Shell, `(setsid -f `+sleeper("kept")+`); (`+sleeper("ended")+` &); `+sleeper("agent")+` &`, "kept", "ended", "agent")
	k.target.Stop.Detached = "report"
	r := k.stop(k.observe(sweep.Capture{}), sweep.Options{})
	if m := k.member(r, "kept"); m.Fate != sweep.Spared || !k.alive("kept") || k.alive("ended") || k.alive("agent") || r.Verdict != sweep.Clean {
		t.Error(k.story(r))
	}
}

func TestStopSpare(t *testing.T) {
	t.Parallel()
	k := startFirst(t, sweep.Server, sleeper("plain")+` &
sh -c 'echo $$ >"$D/spared"; exec bash -c "sh $D/sleep.sh below & exec -a /opt/ssh-agent sleep 300"' &`, "plain", "spared", "below")
	k.until("the agent to have its name", func() bool { return k.args(k.ref("spared"))[0] == "/opt/ssh-agent" })
	k.target.Stop.Spare = []string{"ssh-agent"}
	r := k.stop(sweep.Capture{}, sweep.Options{})
	for _, name := range []string{"spared", "below"} {
		if m := k.member(r, name); m.Fate != sweep.Spared || !k.alive(name) {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if k.alive("plain") || r.Verdict != sweep.Clean {
		t.Error(k.story(r))
	}
}

// TestTheTreeOfAKilledKeeper: the rolling capture has most of it; what is in a
// kernel session of the tree is found by an anchor; what left both is named, by the
// keeper's stamp, whatever it did to its environment. While it lives nothing is
// clean; when it has ended, everything is.
func TestTheTreeOfAKilledKeeper(t *testing.T) {
	t.Parallel()
	k := startFirst(t, sweep.Server, `setsid sh -c 'echo $$ >"$D/leader"; while [ ! -e "$D/go" ]; do sleep 0.02; done; (`+deaf("late")+` &);
(setsid -f `+sleeper("lost")+`); (env -i D="$D" setsid -f `+sleeper("cleared")+`); exec sleep 300' &`, "leader")
	prev := k.observe(sweep.Capture{})
	k.kill("keeper")
	k.touch("go")
	for _, name := range []string{"late", "lost", "cleared"} {
		k.ref(name)
	}
	r := k.stop(prev, sweep.Options{})
	if m := k.member(r, "late"); m.Fate != sweep.Killed || !slices.Contains(m.Evidence, sweep.Session) {
		t.Errorf("late: %+v", m)
	}
	for name, why := range map[string][]string{"lost": {"marker", "command", "stamp"}, "cleared": {"command", "stamp"}} {
		if l := k.lookalike(r, name); !slices.Equal(l.Why, why) || !k.alive(name) {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if r.Verdict != sweep.Unverified || !k.notes(r, "2 processes bear its stamp") {
		t.Error(k.story(r))
	}
	k.kill("lost", "cleared")
	r = k.stop(k.saved[len(k.saved)-1], sweep.Options{})
	k.stopped(r, "leader", "late", "main")
	if !k.notes(r, "was ended by another hand") {
		t.Errorf("nothing says that the keeper was gone: %q", r.Host.Notes)
	}
}

// TestAKilledKeeperWithoutAStamp, as that of an older hob: nobody can tell what left.
func TestAKilledKeeperWithoutAStamp(t *testing.T) {
	t.Parallel()
	k := startFirst(t, sweep.Server, sleeper("x")+` &`, "x")
	prev := k.observe(sweep.Capture{})
	k.kill("keeper")
	k.target.Stamp = 0
	r := k.stop(prev, sweep.Options{})
	if r.Verdict != sweep.Unverified || k.alive("x") || !k.notes(r, "had not stamped its tree") {
		t.Error(k.story(r))
	}
}

// notes reports whether a note of the report has these words.
func (k *real) notes(r sweep.Report, words string) bool {
	return slices.ContainsFunc(r.Host.Notes, func(n string) bool { return strings.Contains(n, words) })
}

// TestWhenTheCommandHasEnded is the keeper's own stop, reason "exited".
func TestWhenTheCommandHasEnded(t *testing.T) {
	table := []struct {
		kind  sweep.Kind
		grace time.Duration
		fate  sweep.Fate
	}{
		{sweep.Server, 300 * time.Millisecond, sweep.Terminated},
		{sweep.Job, time.Hour, sweep.Terminated},
		{sweep.Shell, 0, sweep.Spared},
	}
	for _, row := range table {
		t.Run(string(row.kind), func(t *testing.T) {
			t.Parallel()
			k := startReal(t, row.kind, "sh", "-c", sleeper("x")+` & while [ ! -e "$D/go" ]; do sleep 0.02; done`)
			k.ref("x")
			k.ref("command")
			k.touch("go")
			k.until("the command to end", func() bool { return !k.alive("command") })
			k.target.Stop.Grace = row.grace
			r := k.stop(sweep.Capture{}, sweep.Options{From: sweep.StepTerm, InKeeper: true, Reason: "exited"})
			if m := k.member(r, "x"); m.Fate != row.fate || k.alive("x") != (row.fate == sweep.Spared) {
				t.Errorf("x: %+v", m)
			}
			if r.Verdict != sweep.Clean || r.Took() < row.grace && row.kind == sweep.Server || k.panes != 0 {
				t.Error(k.story(r))
			}
		})
	}
}

// TestSweep: survivors of a capture are ended, others' processes are not; of a
// living task nothing is.
func TestSweep(t *testing.T) {
	t.Parallel()
	k := startFirst(t, sweep.Server, sleeper("x")+` & (setsid -f `+deaf("y")+`)`, "x", "y")
	prev := k.observe(sweep.Capture{})
	r, err := sweep.Sweep(context.Background(), k.h, k.target, prev, k, true, sweep.Options{Reason: "sweep"})
	if err != nil || len(r.Members) != 0 || r.Verdict != sweep.Clean || !k.alive("x") || len(k.saved) > 0 {
		t.Fatalf("of a living task: %v\n%s", err, k.story(r))
	}
	var b strings.Builder
	if err := r.Text(&b, sweep.TextOptions{}); err != nil {
		t.Error(err)
	}
	if text := b.String(); !strings.Contains(text, "  lives  ") || strings.Contains(text, "captured") {
		t.Errorf("of a living task: %s", text)
	}
	k.kill("keeper", "command")
	r, err = sweep.Sweep(context.Background(), k.h, k.target, prev, k, false, sweep.Options{Reason: "sweep", DryRun: true})
	if m := k.member(r, "x"); err != nil || m.Fate != "" || m.Note == "" || !k.alive("x") || len(k.saved) > 0 {
		t.Fatalf("dry run: %v\n%s", err, k.story(r))
	}
	r, err = sweep.Sweep(context.Background(), k.h, k.target, prev, k, false, sweep.Options{Reason: "sweep"})
	if err != nil || k.member(r, "x").Fate != sweep.Terminated || k.member(r, "y").Fate != sweep.Killed || r.Verdict != sweep.Clean {
		t.Fatalf("%v\n%s", err, k.story(r))
	}
	saves := len(k.saved)
	again, err := sweep.Sweep(context.Background(), k.h, k.target, k.saved[saves-1], k, false, sweep.Options{Reason: "sweep"})
	if err != nil || again.Verdict != sweep.Clean || k.member(again, "y").Fate != sweep.Killed || len(k.saved) != saves {
		t.Errorf("again: %v, %d saves\n%s", err, len(k.saved)-saves, k.story(again))
	}
}

func (k *real) kill(names ...string) {
	k.t.Helper()
	for _, name := range names {
		h, f := k.h.Verify(k.ref(name))
		if h == nil {
			k.t.Fatal(name, f.Reason)
		}
		if err := h.Signal(syscall.SIGKILL); err != nil {
			k.t.Fatal(err)
		}
		_ = h.Close()
		k.until(name+" to end", func() bool { return !k.alive(name) })
	}
}

func TestDryRunTouchesNothing(t *testing.T) {
	t.Parallel()
	k := startFirst(t, sweep.Server, sleeper("x")+" &", "x")
	r := k.stop(sweep.Capture{}, sweep.Options{DryRun: true})
	if m := k.member(r, "x"); m.Fate != "" || m.Note != "would be ended" || !k.alive("x") || len(k.saved) > 0 || k.panes > 0 {
		t.Error(k.story(r))
	}
	if m := k.member(r, "command"); m.Note != "would be asked to end by TERM, and get 2s for it" {
		t.Errorf("the command: %+v", m)
	}
	if !r.DryRun || r.Verdict != sweep.Clean || len(r.Advice()) > 0 {
		t.Errorf("it says %s, and advises %q", r.Verdict, r.Advice())
	}
}

// TestAFullDiskDoesNotKeepAServerAlive: the stop goes on from memory and says so.
func TestAFullDiskDoesNotKeepAServerAlive(t *testing.T) {
	t.Parallel()
	k := startFirst(t, sweep.Server, "")
	k.onSave = func(sweep.Capture) error { return syscall.ENOSPC }
	r, err := sweep.Stop(context.Background(), k.h, k.target, sweep.Capture{}, k, sweep.Options{})
	if !errors.Is(err, sweep.ErrNotSaved) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	k.stopped(r, "main")
}

// TestAStopThatWasCutIsFinished: cut at each write of the capture, before and
// after it reached the disk; the next stop goes on and asks nobody twice.
func TestAStopThatWasCutIsFinished(t *testing.T) {
	for cut := range 4 {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			t.Parallel()
			k := startFirst(t, sweep.Server, `trap 'echo asked >>"$D/asks"' TERM; (setsid -f `+deaf("x")+`); `+sleeper("y")+` &`, "x", "y")
			k.target.Stop.Grace, k.target.Stop.TermGrace = 200*time.Millisecond, 200*time.Millisecond
			first, stop := context.WithCancel(context.Background())
			k.onSave = func(sweep.Capture) error {
				if len(k.saved) > cut {
					stop()
				}
				return nil
			}
			if _, err := sweep.Stop(first, k.h, k.target, sweep.Capture{}, k, sweep.Options{}); !errors.Is(err, context.Canceled) {
				t.Fatalf("was not cut: %v", err)
			}
			k.onSave = nil
			r := k.stop(k.saved[len(k.saved)-1], sweep.Options{})
			if m := k.member(r, "command"); !slices.Equal(m.Signals, []string{"TERM", "KILL"}) {
				t.Errorf("command: %+v", m)
			}
			k.member(r, "x")
			k.stopped(r, "x", "y", "main")
		})
	}
}
