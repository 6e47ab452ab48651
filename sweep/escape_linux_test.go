package sweep_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hob/identity"
	"hob/sweep"
)

// mainLoop keeps a script alive until it is told to end.
const mainLoop = "\n" + `echo $$ >"$D/main"; while :; do sleep 300; done`

// stopped checks that nothing of the task lives and that the report says so.
func (k *real) stopped(r sweep.Report, names ...string) {
	k.t.Helper()
	for _, name := range append(names, "command", "keeper") {
		if k.alive(name) {
			k.t.Errorf("%s lives", name)
		}
	}
	if r.Verdict != sweep.Clean {
		k.t.Errorf("verdict %s", r.Verdict)
	}
	if k.t.Failed() {
		k.t.Log(k.story(r))
	}
}

// startFirst starts a script whose last line is the main loop.
func startFirst(t *testing.T, kind sweep.Kind, script string, names ...string) *real {
	t.Helper()
	k := startReal(t, kind, "sh", "-c", script+mainLoop)
	for _, name := range append(names, "main") {
		k.ref(name)
	}
	return k
}

func TestAChildForkedByTheTermHandlerIsFound(t *testing.T) {
	t.Parallel()
	late := `trap 'trap "" TERM; (setsid -f ` + deaf("late") + `); while [ ! -s "$D/late" ]; do :; done; exit' TERM`
	k := startFirst(t, sweep.Server, late)
	r := k.stop(sweep.Capture{}, sweep.Options{})
	if m := k.memberPID(r, "late"); m.Fate != sweep.Killed || !slices.Contains(m.Evidence, sweep.Adopted) {
		t.Errorf("late: %+v", m)
	}
	k.stopped(r)
}

// memberPID finds a member by the pid in its file, for processes that only
// lived during the stop.
func (k *real) memberPID(r sweep.Report, name string) sweep.ReportMember {
	k.t.Helper()
	text, err := os.ReadFile(filepath.Join(k.dir, name))
	if err != nil {
		k.t.Fatal(err)
	}
	for _, m := range r.Members {
		if fmt.Sprint(m.PID) == strings.TrimSpace(string(text)) {
			return m
		}
	}
	k.t.Errorf("%s (%s) is not in the report: %s", name, text, k.story(r))
	return sweep.ReportMember{}
}

func TestABurstOfForksIsEnded(t *testing.T) {
	t.Parallel()
	k := startHelper(t, sweep.Server, "burst")
	k.target.Stop.Grace, k.target.Stop.TermGrace = 0, 0
	k.ref("burst")
	r := k.stop(sweep.Capture{}, sweep.Options{})
	k.stopped(r)
}

func TestARespawnerIsEnded(t *testing.T) {
	t.Parallel()
	k := startFirst(t, sweep.Server, `(while :; do `+deaf("worker")+`; done) &`, "worker")
	k.stopped(k.stop(sweep.Capture{}, sweep.Options{}), "worker")
}

// TestChainsAreEnded: each process starts the next one and ends at once.
func TestChainsAreEnded(t *testing.T) {
	for _, how := range []string{"", "setsid "} {
		t.Run("chain "+how, func(t *testing.T) {
			t.Parallel()
			link := `trap "" TERM HUP; echo $$ >"$D/link"; sleep 0.01; ` + how + `sh "$D/chain.sh" & exit`
			k := startFirst(t, sweep.Server, `cat >"$D/chain.sh" <<'X'
`+link+`
X
sh "$D/chain.sh" &`)
			k.until("the chain to run", func() bool { _, err := os.Stat(filepath.Join(k.dir, "link")); return err == nil })
			k.target.Stop.Grace, k.target.Stop.TermGrace = 100*time.Millisecond, 50*time.Millisecond
			k.stopped(k.stop(sweep.Capture{}, sweep.Options{}))
		})
	}
}

func TestAStoppedProcessIsResumedAndTold(t *testing.T) {
	t.Parallel()
	k := startFirst(t, sweep.Server, `sh -c 'echo $$ >"$D/x"; kill -STOP $$; exec sleep 300' &`, "x")
	h, err := k.h.Open(k.ref("x").PID)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	k.until("x to be stopped", func() bool { p, err := h.Read(0); return err == nil && p.State == 'T' })
	r := k.stop(sweep.Capture{}, sweep.Options{})
	m := k.member(r, "x")
	if m.Fate != sweep.Terminated || !slices.Equal(m.Signals, []string{"CONT", "TERM"}) {
		t.Errorf("x: %+v", m)
	}
	k.stopped(r, "x")
}

func TestAChildOfAThreadIsFound(t *testing.T) {
	t.Parallel()
	k := startHelper(t, sweep.Server, "thread", "x")
	k.ref("x")
	k.ref("x-parent")
	r := k.stop(sweep.Capture{}, sweep.Options{})
	if m := k.member(r, "x"); m.Fate != sweep.Killed {
		t.Errorf("x: %+v", m)
	}
	k.stopped(r, "x", "x-parent")
}

// TestAZombieIsGone: nobody waits for a corpse, and the report names the parent
// that leaves it lying.
func TestAZombieIsGone(t *testing.T) {
	t.Parallel()
	k := startHelper(t, sweep.Server, "zombie", "x")
	k.ref("x-parent")
	x, err := k.h.Open(k.ref("x").PID)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	prev := k.observe(sweep.Capture{})
	if err := x.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	k.until("x to be a zombie", func() bool { return x.Verify().Zombie })
	k.target.Spared = []identity.Ref{k.ref("x-parent")} // so that it lives on and does not reap
	r := k.stop(prev, sweep.Options{})
	want := fmt.Sprintf("exited; its parent %d has not reaped it", k.ref("x-parent").PID)
	if m := k.member(r, "x"); m.Fate != sweep.Exited || m.Note != want || len(m.Signals) > 0 {
		t.Errorf("x: %+v", m)
	}
	if m := k.member(r, "x-parent"); m.Fate != sweep.Spared || !k.alive("x-parent") || k.alive("x") {
		t.Errorf("x-parent: %+v", m)
	}
}

func TestAZombieLeaderWithALivingThreadLives(t *testing.T) {
	t.Parallel()
	k := startReal(t, sweep.Server, "sh", "-c", `/usr/bin/python3 -c '
import ctypes, os, threading, time
open(os.environ["D"] + "/x", "w").write(str(os.getpid()))
threading.Thread(target=time.sleep, args=(300,)).start()
ctypes.CDLL(None).syscall(60, 0)' &`+mainLoop)
	x, err := k.h.Open(k.ref("x").PID)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	k.until("the leader to be a zombie", func() bool { p, err := x.Read(0); return err == nil && p.State == 'Z' })
	r := k.stop(sweep.Capture{}, sweep.Options{})
	if m := k.member(r, "x"); m.Fate != sweep.Terminated {
		t.Errorf("x: %+v", m)
	}
	k.stopped(r, "x")
}

func TestOneThatMayNotBeSignalledSurvives(t *testing.T) {
	t.Parallel()
	k := startFirst(t, sweep.Server, sleeper("x")+` &`, "x")
	x := k.ref("x")
	h := refusing{k.h, x.PID}
	k.h = h
	r := k.stop(sweep.Capture{}, sweep.Options{})
	m := k.member(r, "x")
	if m.Fate != sweep.Survived || len(m.Signals) != 0 || !strings.Contains(m.Note, "not permitted") || r.Verdict != sweep.Survivors {
		t.Errorf("x: %+v", m)
	}
}

// refusing is a host whose kernel refuses signals to one process, as to one that
// has changed its user.
type refusing struct {
	identity.Host
	pid int
}

type refusingHandle struct{ identity.Handle }

func (h refusing) Open(pid int) (identity.Handle, error) {
	p, err := h.Host.Open(pid)
	if err == nil && pid == h.pid {
		return refusingHandle{p}, nil
	}
	return p, err
}

func (h refusing) Wait(ctx context.Context, hs []identity.Handle, until time.Time) error {
	plain := make([]identity.Handle, 0, len(hs))
	for _, p := range hs {
		if r, ok := p.(refusingHandle); ok {
			p = r.Handle
		}
		plain = append(plain, p)
	}
	return h.Host.Wait(ctx, plain, until)
}

func (refusingHandle) Signal(syscall.Signal) error { return identity.ErrNotPermitted }

func TestAStoppedKeeperIsResumed(t *testing.T) {
	t.Parallel()
	k := startFirst(t, sweep.Server, "")
	h, err := k.h.Open(k.ref("keeper").PID)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r := k.stop(sweep.Capture{}, sweep.Options{})
	if m := k.member(r, "keeper"); !slices.Equal(m.Signals, []string{"CONT"}) || m.Fate != sweep.Exited {
		t.Errorf("keeper: %+v", m)
	}
	k.stopped(r)
}

// counting counts what a look asks its host for.
type counting struct {
	identity.Host
	tables int
}

func (h *counting) Snapshot(ctx context.Context, want identity.Field) (*identity.Table, error) {
	h.tables++
	return h.Host.Snapshot(ctx, want)
}

func (h *counting) Count() (int, bool) { return identity.Count(h.Host) }

// TestManyThreads: the children of a process with very many threads are found in the
// process table, which is shorter than their lists, by a look; what is killed as it is
// found is found in the lists.
func TestManyThreads(t *testing.T) {
	k := startHelper(t, sweep.Server, "threads", "x")
	k.ref("x")
	if n, ok := identity.Count(k.h); !ok || n >= 2000 {
		t.Skipf("the host has %d processes, so their table is no shorter (%v)", n, ok)
	}
	h := &counting{Host: k.h}
	c, _, err := sweep.Observe(context.Background(), h, k.target, sweep.Capture{})
	if err != nil || len(c.Members) != 2 || h.tables == 0 {
		t.Errorf("%d members, %d tables, %v", len(c.Members), h.tables, err)
	}
	r := k.stop(c, sweep.Options{})
	if m := k.member(r, "x"); m.Fate != sweep.Killed || r.Verdict != sweep.Clean {
		t.Error(k.story(r))
	}
}
