package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/sweep"
	"hob/tmux"
	"hob/tmux/tmuxtest"
)

// startIn starts the keeper in a pane of a real tmux server.
func (g *rig) startIn(s *tmux.Server) tmux.Pane {
	g.t.Helper()
	g.task(Task{State: Starting, Nonce: g.spec.Nonce})
	if err := g.dir.WriteSpec(g.spec); err != nil {
		g.t.Fatal(err)
	}
	pane, err := s.Spawn(g.t.Context(), tmux.Spawn{
		Session: "chat", New: true, Window: "main",
		Argv: []string{"env", roleEnv + "=keeper", os.Args[0], g.dir.SpecPath()},
	})
	if err != nil {
		g.t.Fatal(err)
	}
	go g.watch(pane.PID)
	g.t.Cleanup(func() {
		_ = tmuxtest.KillServer(context.Background(), s)
		<-g.ended // before its folder is removed
		if g.t.Failed() {
			events, _, _ := g.run.Events()
			g.t.Log(events)
		}
	})
	return pane
}

// watch closes ended when the keeper, which is tmux's child, has ended.
func (g *rig) watch(pid int) {
	defer close(g.ended)
	h, err := g.h.Open(pid)
	if err != nil {
		return // it has ended
	}
	defer h.Close()
	g.err = g.h.Wait(context.Background(), []identity.Handle{h}, time.Time{})
}

func (g *rig) gone() {
	g.t.Helper()
	select {
	case <-g.ended:
	case <-time.After(patience):
		g.t.Fatal("the keeper does not end")
	}
	if g.err != nil {
		g.t.Fatal(g.err)
	}
}

// TestTmuxInstantExits: where tmux loses the status of quick exits, and pipe-pane
// their output, the keeper's records have both.
func TestTmuxInstantExits(t *testing.T) {
	t.Parallel()
	s := tmuxtest.New(t)
	for i := range 10 {
		g := newRig(t, sweep.Job, "/bin/sh", "-c", fmt.Sprintf("echo gone %d; exit %d", i, i))
		pane := g.startIn(s)
		g.gone()
		if e := g.exit(); e.Code == nil || *e.Code != i {
			t.Errorf("round %d: %+v", i, e)
		}
		if want := fmt.Sprintf("gone %d\r\n", i); g.log() != want {
			t.Errorf("round %d: log %q", i, g.log())
		}
		if k := g.keeper(); k.Pane != pane.ID || k.Keeper.PID != pane.PID {
			t.Errorf("round %d: keeper %+v, pane %+v", i, k, pane)
		}
		if err := tmuxtest.KillPane(t.Context(), s, pane.ID); err != nil {
			t.Error(err)
		}
	}
}

// TestTmuxEndsByAnotherHand: however a session ends, its tree is stopped and
// reported.
func TestTmuxEndsByAnotherHand(t *testing.T) {
	t.Parallel()
	ways := map[string]func(g *rig, s *tmux.Server, pane tmux.Pane) error{
		"kill-pane": func(g *rig, s *tmux.Server, pane tmux.Pane) error {
			return tmuxtest.KillPane(g.t.Context(), s, pane.ID)
		},
		"kill-server": func(g *rig, s *tmux.Server, pane tmux.Pane) error { return tmuxtest.KillServer(g.t.Context(), s) },
		"kill-session": func(g *rig, s *tmux.Server, pane tmux.Pane) error {
			return tmuxtest.KillSession(g.t.Context(), s, pane.Session)
		},
		"crash": func(g *rig, s *tmux.Server, pane tmux.Pane) error {
			g.signalPid(pane.ServerPID, syscall.SIGKILL)
			return nil
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			s := tmuxtest.New(t)
			g := newRig(t, sweep.Server).sh(`trap 'exit 0' TERM;` + stragglers + `while :; do sleep 0.05; done`)
			g.spec.Stop.Grace, g.spec.Stop.TermGrace = time.Second, time.Second
			pane := g.startIn(s)
			g.up()
			pids := g.stragglers()
			if err := way(g, s, pane); err != nil {
				t.Fatal(err)
			}
			g.gone()
			g.allEnded(pids)
			if r := g.report(); r.Reason != "hangup" || r.Verdict != sweep.Clean {
				t.Errorf("report %+v", r)
			}
			if st := g.state(); st != Stopped {
				t.Errorf("state %s", st)
			}
		})
	}
}

// TestTmuxStoppedServerDoesNotFreezeTheCommand.
func TestTmuxStoppedServerDoesNotFreezeTheCommand(t *testing.T) {
	t.Parallel()
	s := tmuxtest.New(t)
	const size = 20_000_000
	g := newRig(t, sweep.Job).sh(fmt.Sprintf(`while [ ! -e go ]; do sleep 0.02; done; head -c %d /dev/zero | tr '\0' x; echo; echo done`, size))
	g.spec.Log = LogPolicy{MaxBytes: 2 * size, Keep: 1}
	pane := g.startIn(s)
	g.up()
	g.signalPid(pane.ServerPID, syscall.SIGSTOP)
	defer g.signalPid(pane.ServerPID, syscall.SIGCONT)
	if err := os.WriteFile(g.spec.Dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g.until("all is in the log", func() bool {
		fi, err := os.Stat(g.dir.LogPath())
		return err == nil && fi.Size() == size+int64(len("\r\ndone\r\n"))
	})
	g.until("exit.json", func() bool { _, err := g.dir.ReadExit(); return !errors.Is(err, ErrNoRecord) })
}

// TestTmuxShellIsAShell: what a person types gets there, and tmux in it is hob's.
func TestTmuxShellIsAShell(t *testing.T) {
	s := tmuxtest.New(t)
	g := newRig(t, sweep.Shell, "/bin/sh")
	g.spec.Env = append(g.spec.Env, "PS1=ready> ")
	pane := g.startIn(s)
	g.up()
	g.untilLog("ready>")
	keys := func(args ...string) {
		t.Helper()
		cmd := exec.Command(s.Bin, append([]string{"-S", s.Socket, "send-keys", "-t", pane.ID}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("send-keys: %s, %v", out, err)
		}
	}
	keys("echo $((6*7)) ${TMUX%%,*} $TERM $TMUX_PANE", "Enter")
	g.untilLog("42 " + s.Socket + " ")
	if !strings.Contains(g.log(), " "+pane.ID) {
		t.Errorf("log %q", g.log())
	}
	keys("sleep 300", "Enter")
	g.until("sleep runs", func() bool { return len(g.args("sleep")) > 0 })
	keys("C-c")
	g.until("Ctrl-C ended it", func() bool { return len(g.args("sleep")) == 0 })
	keys("exit 5", "Enter")
	g.gone()
	if e := g.exit(); e.Code == nil || *e.Code != 5 {
		t.Errorf("exit.json %+v", e)
	}
}

// args are the pids of the tree whose program has this name.
func (g *rig) args(name string) []int {
	kids, err := g.h.Children(g.keeper().Command.PID)
	if err != nil {
		return nil
	}
	var out []int
	for _, pid := range kids {
		h, err := g.h.Open(pid)
		if err != nil {
			continue
		}
		row, err := h.Read(identity.WantArgs)
		h.Close()
		if err == nil && len(row.Args) > 0 && row.Args[0] == name {
			out = append(out, pid)
		}
	}
	return out
}

// TestTmuxServerInsideATask: the sessions of a person that live below a server
// task are not ended with it; the task has survivors, and says so.
func TestTmuxServerInsideATask(t *testing.T) {
	t.Parallel()
	g := newRig(t, sweep.Server)
	inner := tmuxtest.New(t)
	g.sh(fmt.Sprintf(`trap 'exit 0' TERM; %s -S %s -f /dev/null new-session -d sleep 300; echo made; while :; do sleep 0.05; done`, inner.Bin, inner.Socket))
	g.start().up()
	g.untilLog("made")
	pid, err := inner.PID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g.signal(syscall.SIGTERM)
	g.code() // it does not wait for what is left alone
	if !g.lives(pid) {
		t.Error("the tmux server was ended")
	}
	if r := g.report(); r.Verdict != sweep.Survivors || member(r, pid) == nil {
		t.Errorf("report %+v", r)
	}
	if s := g.state(); s != Survivors {
		t.Errorf("state %s", s)
	}
	if k := g.keeper(); k.Empty {
		t.Error("the keeper says that its tree is empty")
	}
}
