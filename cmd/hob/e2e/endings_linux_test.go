package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"hob/sweep"
	"hob/tasks"
)

// ending is one way for a session to end.
type ending struct {
	words  []string // more words for the command
	reason string   // that the report is to give
	bare   bool     // hob can make no cgroup
	later  bool     // nobody is left to sweep: the next `hob down` does, and reports
	named  bool     // it can only name what is left
	before func(*kitchen)
	act    func(*kitchen)
}

var endings = map[string]ending{
	"down":          {reason: "down", act: func(k *kitchen) { k.must("down", "m") }},
	"restart":       {reason: "restart", act: restart},
	"ctrl-c":        {reason: "exited", act: func(k *kitchen) { k.tmux("m", "send-keys", "-t", k.pane(), "C-c") }},
	"term":          {reason: "exited", act: func(k *kitchen) { k.signal(k.pin("made").Ref(), syscall.SIGTERM) }},
	"kill":          {reason: "exited", act: func(k *kitchen) { k.signal(k.pin("made").Ref(), syscall.SIGKILL) }},
	"kill-pane":     {reason: "hangup", act: func(k *kitchen) { k.tmux("m", "kill-pane", "-t", k.pane()) }},
	"kill-session":  {reason: "hangup", act: func(k *kitchen) { k.tmux("m", "kill-session", "-t", "=m") }},
	"kill-server":   {reason: "hangup", act: func(k *kitchen) { k.tmux("m", "kill-server") }},
	"server-killed": {reason: "hangup", act: func(k *kitchen) { k.signal(*k.run("m").Tmux.Server, syscall.SIGKILL) }},
	"hob-killed":    {reason: "down", words: []string{"hold"}, act: killHob},
	"keeper-killed": {reason: "down", later: true, act: killKeeper},
	"keeper-blind":  {reason: "down", later: true, named: true, words: []string{"later"}, before: blindKeeper, act: killBlind},
}

func init() {
	for bare, name := range map[string]string{"blind-bare": "keeper-blind", "killed-bare": "keeper-killed", "down-bare": "down", "kill-bare": "kill"} {
		e := endings[name]
		e.bare = true
		endings[bare] = e
	}
}

func (k *kitchen) pane() string {
	k.t.Helper()
	t, err := k.task("m/kinds").ReadTask()
	k.check(err)
	return t.Pane.Pane
}

// restart keeps the pins of the processes that it ends: those of the next start
// write files of the same names.
func restart(k *kitchen) {
	for name := range k.pins {
		k.check(os.Remove(k.d() + "/" + name))
	}
	k.must("restart", "m")
}

// killHob kills a hob that has asked the command to stop and waits for that.
func killHob(k *kitchen) {
	cmd := k.command("down", "m")
	k.check(cmd.Start())
	k.pin("told")
	k.check(cmd.Process.Kill())
	_ = cmd.Wait()
	k.check(os.WriteFile(k.d()+"/release", nil, 0o600))
}

// killKeeper kills the keeper once its rolling capture has all kinds.
func killKeeper(k *kitchen) {
	k.until("the rolling capture to have all", func() bool {
		c, err := k.task("m/kinds").ReadCapture()
		if errors.Is(err, tasks.ErrNoRecord) {
			return false // before its keeper's first look
		}
		k.check(err)
		for name, pin := range k.pins {
			has := func(m sweep.Member) bool { return m.Ref.PID == pin.Ref().PID }
			if name != "decoy" && !slices.ContainsFunc(c.Members, has) {
				return false
			}
		}
		return true
	})
	signalKeeper(syscall.SIGKILL)(k)
	k.hungUp()
}

// hungUp waits for those whom the end of a keeper itself ends.
func (k *kitchen) hungUp() {
	k.t.Helper()
	for _, name := range []string{"made", "plain", "orphan"} {
		k.until(name+" to be hung up on", func() bool { return !k.alive(name) })
	}
}

func signalKeeper(sig syscall.Signal) func(*kitchen) {
	return func(k *kitchen) {
		rec, err := k.task("m/kinds").ReadKeeper()
		k.check(err)
		k.signal(rec.Keeper, sig)
	}
}

// blindKeeper stops the keeper, every thread of it, and then has the kinds made.
// The tmux server is stopped before: it would resume a stopped pane.
func blindKeeper(k *kitchen) {
	k.signal(*k.run("m").Tmux.Server, syscall.SIGSTOP)
	signalKeeper(syscall.SIGSTOP)(k)
	rec, err := k.task("m/kinds").ReadKeeper()
	k.check(err)
	k.until("the keeper to be stopped", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", rec.Keeper.PID))
		k.check(err)
		return !slices.ContainsFunc(threads, func(path string) bool {
			stat, err := os.ReadFile(path)
			return err == nil && !strings.Contains(string(stat), ") T ")
		})
	})
	k.check(os.WriteFile(k.d()+"/go", nil, 0o600))
}

// killBlind kills the stopped keeper, and waits for what its end itself ends.
func killBlind(k *kitchen) {
	signalKeeper(syscall.SIGKILL)(k)
	k.signal(*k.run("m").Tmux.Server, syscall.SIGCONT)
	k.hungUp()
}

// report waits until the stop is over and gives its report.
func (e ending) report(k *kitchen) sweep.Report {
	k.t.Helper()
	verdict, code := sweep.Clean, 0
	if e.named {
		verdict, code = sweep.Unverified, 4
	}
	if e.later {
		if r := k.hob("down", "m"); r.code != code {
			k.t.Fatalf("hob down: %v", r)
		}
	}
	var rep sweep.Report
	k.until("the report", func() bool {
		r, ok := k.report("m/kinds")
		task, err := k.task("m/kinds").ReadTask()
		rep = r
		return ok && err == nil && task.State != tasks.Stopping
	})
	if rep.Reason != e.reason || rep.Verdict != verdict || rep.Host.Inspection != "full" {
		k.t.Errorf("reason %s, verdict %s, inspection %s %v", rep.Reason, rep.Verdict, rep.Host.Inspection, rep.Host.Notes)
	}
	return rep
}

// tally is the matrix as it turned out.
type tally struct {
	mu   sync.Mutex
	want cells
	got  map[string]map[string]string
}

func newTally(want cells) *tally {
	y := &tally{want: want, got: map[string]map[string]string{}}
	for _, kind := range want.kinds {
		y.got[kind] = map[string]string{}
	}
	return y
}

// take compares one cell, and reports whether the process lives.
func (y *tally) take(t *testing.T, k *kitchen, kind, ending string, rep sweep.Report) bool {
	t.Helper()
	alive := k.alive(kind)
	m, member := memberOf(rep, k.pin(kind))
	got := string(m.Fate)
	switch {
	case member && alive:
		got += ", lives"
	case !member && !alive:
		got = "gone"
	case lookalike(rep, k.pin(kind)):
		got = "named"
	case !member:
		got = "lost"
	}
	y.mu.Lock()
	y.got[kind][ending] = got
	y.mu.Unlock()
	want := y.want.fate[kind][ending]
	if ending == "keeper-blind" && !k.hasCgroup {
		want = y.want.fate[kind]["blind-bare"]
	}
	if got != want && (want != "gone" || got != "exited") { // which of them a slow keeper makes of it
		t.Errorf("%s: %s, want %s", kind, got, want)
	}
	return alive
}

// publish shows the table, and writes it to the file $HOB_MATRIX names.
func (y *tally) publish(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "| | %s |\n|---|%s\n", strings.Join(y.want.endings, " | "), strings.Repeat("---|", len(y.want.endings)))
	for _, kind := range y.want.kinds {
		fmt.Fprintf(&b, "| %s |", kind)
		for _, e := range y.want.endings {
			fmt.Fprintf(&b, " %s |", y.got[kind][e])
		}
		b.WriteString("\n")
	}
	t.Logf("\n%s", &b)
	if path := os.Getenv("HOB_MATRIX"); path != "" {
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Error(err)
		}
	}
}
