package sweep_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/sweep"
)

const patience = 30 * time.Second

// real is a task of real processes under a test keeper.
type real struct {
	t      testing.TB
	dir    string
	h      identity.Host
	keeper *exec.Cmd
	target sweep.Target
	refs   map[string]identity.Ref
	marker string

	mu     sync.Mutex
	saved  []sweep.Capture
	panes  int
	told   []string
	onSave func(sweep.Capture) error
}

// stamps counts the keepers: each has a stamp of its own, as those of real ones differ.
var stamps atomic.Uint64

// startReal starts a command under a keeper.
func startReal(t testing.TB, kind sweep.Kind, args ...string) *real {
	t.Helper()
	h, err := identity.Local()
	if err != nil {
		t.Fatal(err)
	}
	k := &real{t: t, dir: t.TempDir(), h: h, refs: map[string]identity.Ref{},
		marker: fmt.Sprintf("marker-%d-%d", os.Getpid(), time.Now().UnixNano())}
	k.keeper = exec.Command(os.Args[0], args...)
	stamp := 1<<30 + stamps.Add(1)
	k.keeper.Env = append(os.Environ(), helperEnv+"=keeper", "D="+k.dir, "MARKER="+k.marker, fmt.Sprint("STAMP=", stamp))
	var words bytes.Buffer
	k.keeper.Stderr = &words
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.keeper.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = k.keeper.Wait(); close(ended) }()
	t.Cleanup(func() {
		k.clean()
		<-ended
		if t.Failed() && words.Len() > 0 {
			t.Logf("the task said: %s", words.String())
		}
	})
	keeper, command := k.ref("keeper"), k.ref("command")
	k.target = sweep.Target{Run: "r", Task: "t", Kind: kind, Marker: k.marker, Args: args, Keeper: &keeper, Command: &command, Stamp: stamp,
		Stop: sweep.StopPolicy{Signal: syscall.SIGTERM, Grace: 2 * time.Second, TermGrace: time.Second, Detached: "kill"}}
	return k
}

// startHelper starts a helper role as the command.
func startHelper(t testing.TB, kind sweep.Kind, role string, args ...string) *real {
	t.Helper()
	script := fmt.Sprintf("%s=%s exec %s %s", helperEnv, role, os.Args[0], strings.Join(args, " "))
	return startReal(t, kind, "sh", "-c", script)
}

// clean ends what a failed test left, through identity, and then the keeper.
func (k *real) clean() {
	for range 100 {
		left := k.descendants(k.keeper.Process.Pid)
		if len(left) == 0 {
			break
		}
		for _, pid := range left {
			if h, err := k.h.Open(pid); err == nil {
				_ = h.Signal(syscall.SIGKILL)
				_ = h.Close()
			}
		}
	}
	_ = k.keeper.Process.Kill()
	for _, ref := range k.refs {
		if h, _ := k.h.Verify(ref); h != nil {
			_ = h.Signal(syscall.SIGKILL)
			_ = h.Close()
		}
	}
}

func (k *real) descendants(pid int) []int {
	kids, _ := k.h.Children(pid)
	all := kids
	for _, kid := range kids {
		all = append(all, k.descendants(kid)...)
	}
	return all
}

// ref waits for a process of this name to have written its pid, and pins down
// who it is.
func (k *real) ref(name string) identity.Ref {
	k.t.Helper()
	if ref, ok := k.refs[name]; ok {
		return ref
	}
	var pid int
	k.until(name+" to start", func() bool {
		text, err := os.ReadFile(filepath.Join(k.dir, name))
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err == nil
	})
	h, err := k.h.Open(pid)
	if err != nil {
		k.t.Fatalf("%s (%d): %v", name, pid, err)
	}
	defer h.Close()
	k.refs[name] = h.Ref()
	return h.Ref()
}

// until waits for a condition of the real world, with a deadline.
func (k *real) until(what string, ok func() bool) {
	k.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			k.t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

func (k *real) alive(name string) bool {
	k.t.Helper()
	h, f := k.h.Verify(k.ref(name))
	if h != nil {
		_ = h.Close()
	}
	return f.Verdict == identity.Owned
}

// The Effects.

func (k *real) SaveCapture(c sweep.Capture) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	c.Members = append([]sweep.Member(nil), c.Members...)
	k.saved = append(k.saved, c)
	if k.onSave != nil {
		return k.onSave(c)
	}
	return nil
}

func (k *real) ClosePane(context.Context) error { k.panes++; return nil }

func (k *real) KeeperDone() bool {
	_, err := os.Stat(filepath.Join(k.dir, "empty"))
	return err == nil
}

func (k *real) KeeperLeft() bool { return false }

func (k *real) Note(format string, args ...any) {
	k.told = append(k.told, fmt.Sprintf(format, args...))
}

func (k *real) observe(prev sweep.Capture) sweep.Capture {
	k.t.Helper()
	c, _, err := sweep.Observe(context.Background(), k.h, k.target, prev)
	if err != nil {
		k.t.Fatal(err)
	}
	return c
}

func (k *real) stop(prev sweep.Capture, o sweep.Options) sweep.Report {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if o.Reason == "" {
		o.Reason = "down"
	}
	r, err := sweep.Stop(ctx, k.h, k.target, prev, k, o)
	if err != nil {
		k.t.Errorf("stop: %v", err)
	}
	return r
}

// member finds a process in a report by the name it gave itself.
func (k *real) member(r sweep.Report, name string) sweep.ReportMember {
	k.t.Helper()
	pid := k.ref(name).PID
	for _, m := range r.Members {
		if m.PID == pid {
			return m
		}
	}
	k.t.Errorf("%s (%d) is not in the report: %s", name, pid, k.story(r))
	return sweep.ReportMember{}
}

func (k *real) story(r sweep.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, %s\n", r.Verdict, r.Host.Inspection, r.Took().Round(time.Millisecond))
	for _, m := range r.Members {
		fmt.Fprintf(&b, "  %d<-%d %q %v %v %s %s\n", m.PID, m.Parent, m.Args, m.Evidence, m.Signals, m.Fate, m.Note)
	}
	for _, l := range r.Lookalikes {
		fmt.Fprintf(&b, "  like %d %q %v %s\n", l.PID, l.Args, l.Why, l.Note)
	}
	fmt.Fprintf(&b, "  ports %v notes %q\n  %s", r.Ports, r.Host.Notes, strings.Join(k.told, "\n  "))
	return b.String()
}

// scripts are in the folder $D of every task.
var scripts = map[string]string{
	"sleep.sh": `echo $$ >"$D/$1"; exec sleep 300`,
	"deaf.sh":  `trap "" HUP TERM; echo $$ >"$D/$1"; exec sleep 300`,
}

// sleeper is a shell command that becomes a named process; deaf is one that
// ignores HUP and TERM.
func sleeper(name string) string { return `sh $D/sleep.sh ` + name }
func deaf(name string) string    { return `sh $D/deaf.sh ` + name }

func TestStopEndsEveryKindOfChild(t *testing.T) {
	clear := func(name string) string {
		return `env -i D="$D" setsid ` + deaf(name)
	}
	kinds := []struct {
		name   string
		script string // starts the process x
		fate   sweep.Fate
	}{
		{"plain", sleeper("x") + ` &`, sweep.Terminated},
		{"own group", `bash -mc 'sh $D/sleep.sh x & exec sleep 300' 2>/dev/null &`, sweep.Terminated},
		{"nohup", `nohup ` + sleeper("x") + ` >/dev/null 2>&1 &`, sweep.Terminated},
		{"setsid", `setsid ` + sleeper("x") + ` &`, sweep.Terminated},
		{"deaf", deaf("x") + ` &`, sweep.Killed},
		{"setsid and deaf", `setsid ` + deaf("x") + ` &`, sweep.Killed},
		{"double fork", `(` + sleeper("x") + ` &)`, sweep.Terminated},
		{"daemon", `(setsid -f ` + sleeper("x") + `)`, sweep.Terminated},
		{"deaf daemon", `(setsid -f ` + deaf("x") + `)`, sweep.Killed},
		{"cleared environment", `(` + clear("x") + ` &)`, sweep.Killed},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			k := startReal(t, sweep.Server, "sh", "-c", kind.script+"\n"+`echo $$ >"$D/main"; while :; do sleep 300; done`)
			k.ref("x")
			k.ref("main")
			r := k.stop(sweep.Capture{}, sweep.Options{})
			if m := k.member(r, "x"); m.Fate != kind.fate {
				t.Errorf("fate %s, want %s", m.Fate, kind.fate)
			}
			if k.alive("x") || k.alive("main") || k.alive("keeper") || r.Verdict != sweep.Clean || k.panes != 1 {
				t.Errorf("not stopped: %s", k.story(r))
			}
			if t.Failed() {
				t.Log(k.story(r))
			}
		})
	}
}
