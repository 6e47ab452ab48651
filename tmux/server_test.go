//go:build unix

package tmux_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"hob/tmux"
	"hob/tmux/tmuxtest"
)

// tmuxCommand does with the real program what a person could do.
func tmuxCommand(t *testing.T, s *tmux.Server, args ...string) string {
	t.Helper()
	cmd := exec.Command(s.Bin, append([]string{"-u", "-S", s.Socket, "-f", os.DevNull}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LC_ALL=C.UTF-8"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// Fault 26: a target is what it says, not what begins like it.
func TestTargetsMatchNoPrefix(t *testing.T) {
	s := tmuxtest.New(t)
	ctx := t.Context()
	web, prod := tmuxtest.Sleeper(t, s, "web"), tmuxtest.Sleeper(t, s, "web-prod")
	if err := s.KillExactly(ctx, web); err != nil { // and the session with its last pane
		t.Fatal(err)
	}
	into := func(session string) error {
		_, err := s.Spawn(ctx, tmux.Spawn{Session: session, Argv: []string{"sleep", "600"}})
		return err
	}
	for _, target := range []string{"=web", web.Session, "=we", "=web-pro"} {
		if err := into(target); !errors.Is(err, tmux.ErrNoTarget) {
			t.Errorf("a pane in the missing session %q: %v", target, err)
		}
	}
	for _, target := range []string{"we*", "web", "", "=", "=web-prod:", "=web.prod", "%0", "@0"} {
		if err := into(target); !errors.Is(err, tmux.ErrName) {
			t.Errorf("a pane in session %q: %v", target, err)
		}
	}
	for _, id := range []string{"web-prod", "=web-prod", "0", "", "$1", "@1", "%", "%1x", "%1 ", "{last}", "!"} {
		p := prod
		p.ID = id
		if err := s.KillExactly(ctx, p); !errors.Is(err, tmux.ErrName) {
			t.Errorf("kill of pane %q: %v", id, err)
		}
	}
	if got := tmuxtest.Find(t, s, prod.ID); got == nil || got.Dead {
		t.Fatalf("web-prod was hit: %+v", got)
	}
	if err := s.KillExactly(ctx, prod); err != nil {
		t.Error(err)
	}
	if panes, err := s.Panes(ctx); err != nil || len(panes) != 0 {
		t.Errorf("a server without sessions: %v, %v", panes, err)
	}
	if pid, err := s.PID(ctx); err != nil || pid != web.ServerPID {
		t.Errorf("it went on running: %d, %v", pid, err)
	}
}

// One pane is closed, and not those whose ids begin like its.
func TestKillOneOfMany(t *testing.T) {
	s := tmuxtest.New(t)
	ctx := t.Context()
	first := tmuxtest.Sleeper(t, s, "kill")
	var panes []tmux.Pane
	for range 11 {
		p, err := s.Spawn(ctx, tmux.Spawn{Session: first.Session, Argv: []string{"sleep", "600"}})
		if err != nil {
			t.Fatal(err)
		}
		panes = append(panes, p)
	}
	if panes[0].ID != "%1" {
		t.Fatalf("the first is %s", panes[0].ID)
	}
	if err := s.KillExactly(ctx, panes[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.KillExactly(ctx, panes[0]); !errors.Is(err, tmux.ErrNoTarget) {
		t.Errorf("the second kill: %v", err)
	}
	for _, p := range panes[1:] {
		if tmuxtest.Find(t, s, p.ID) == nil {
			t.Errorf("pane %s went with %%1", p.ID)
		}
	}
	if _, err := s.Text(ctx, "%1"); !errors.Is(err, tmux.ErrNoTarget) {
		t.Errorf("the text of a pane that is gone: %v", err)
	}
}

// A new server gives old ids to other panes.
func TestKillExactly(t *testing.T) {
	s := tmuxtest.New(t)
	ctx := t.Context()
	old := tmuxtest.Sleeper(t, s, "first")
	if err := tmuxtest.KillServer(ctx, s); err != nil {
		t.Fatal(err)
	}
	if err := s.KillExactly(ctx, old); !errors.Is(err, tmux.ErrNoServer) {
		t.Errorf("without a server: %v", err)
	}
	p := tmuxtest.Sleeper(t, s, "second")
	if p.ID != old.ID {
		t.Fatalf("ids did not restart: %s, %s", old.ID, p.ID)
	}
	other := p
	other.PID++
	for _, wrong := range []tmux.Pane{old, other} {
		if err := s.KillExactly(ctx, wrong); !errors.Is(err, tmux.ErrOther) {
			t.Errorf("kill of %+v while %+v has its id: %v", wrong, p, err)
		}
	}
	missing := p
	missing.ID = "%99"
	if err := s.KillExactly(ctx, missing); !errors.Is(err, tmux.ErrNoTarget) {
		t.Errorf("kill of a pane that was never there: %v", err)
	}
	if tmuxtest.Find(t, s, p.ID) == nil {
		t.Fatal("a stranger's pane was killed")
	}
	if err := s.KillExactly(ctx, p); err != nil {
		t.Error(err)
	}
	if tmuxtest.Find(t, s, p.ID) != nil {
		t.Error("the pane is still there")
	}
}

// Many panes are killed by one tmux: what cannot be killed keeps the others from
// nothing, and each is told apart; more than go into one message are too.
func TestKillAllExactly(t *testing.T) {
	s := tmuxtest.New(t)
	ctx := t.Context()
	keep := tmuxtest.Sleeper(t, s, "keep")
	var all []tmux.Pane
	for i := range 60 {
		all = append(all, tmuxtest.Sleeper(t, s, fmt.Sprintf("kill-%d", i)))
	}
	missing, other, bad := keep, keep, keep
	missing.ID, bad.ID = "%999", "999"
	other.PID++
	all = append([]tmux.Pane{missing, all[0], bad, other}, all[1:]...)
	for i, err := range s.KillAllExactly(ctx, all) {
		switch {
		case i == 0 && !errors.Is(err, tmux.ErrNoTarget), i == 2 && err == nil, i == 3 && !errors.Is(err, tmux.ErrOther):
			t.Errorf("pane %d, %s: %v", i, all[i].ID, err)
		case i == 1 || i > 3:
			if err != nil {
				t.Errorf("pane %d, %s: %v", i, all[i].ID, err)
			}
		}
	}
	if left, err := s.Panes(ctx); err != nil || len(left) != 1 || left[0].ID != keep.ID {
		t.Errorf("left: %+v, %v", left, err)
	}
	if err := tmuxtest.KillServer(ctx, s); err != nil {
		t.Fatal(err)
	}
	for _, err := range s.KillAllExactly(ctx, all[:2]) {
		if !errors.Is(err, tmux.ErrNoServer) {
			t.Errorf("without a server: %v", err)
		}
	}
}

// TestKillEmpty: a server with a session lives, whatever a list said a moment ago.
func TestKillEmpty(t *testing.T) {
	s := tmuxtest.New(t)
	ctx := t.Context()
	if err := s.KillEmpty(ctx); !errors.Is(err, tmux.ErrNoServer) {
		t.Fatalf("without a server: %v", err)
	}
	p := tmuxtest.Sleeper(t, s, "made-in-between")
	if err := s.KillEmpty(ctx); !errors.Is(err, tmux.ErrSessions) || tmuxtest.Find(t, s, p.ID) == nil {
		t.Fatalf("with a session: %v", err)
	}
	if err := tmuxtest.KillPane(ctx, s, p.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.KillEmpty(ctx); err != nil {
		t.Fatalf("without a session: %v", err)
	}
	if err := s.KillEmpty(ctx); !errors.Is(err, tmux.ErrNoServer) {
		t.Errorf("afterwards: %v", err)
	}
}

// A start right after the end of a server does not meet the old one.
func TestStartAfterTheEnd(t *testing.T) {
	s := tmuxtest.New(t)
	ctx := t.Context()
	for range 3 {
		p := tmuxtest.Sleeper(t, s, "again")
		if err := errors.Join(s.KillExactly(ctx, p), s.KillEmpty(ctx)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Panes(ctx); !errors.Is(err, tmux.ErrNoServer) {
			t.Errorf("after the end of server %d: %v", p.ServerPID, err)
		}
	}
}

// TestForgetOthers: dead sockets of other state folders are taken away, when they are old;
// what somebody listens on, or may be about to, stays, and what has another name.
func TestForgetOthers(t *testing.T) {
	dir := filepath.Join(filepath.Dir(tmuxtest.Socket(t)), "hob-0")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	socket := func(name string, listens bool) {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		if !listens {
			_ = l.Close()
		} else {
			t.Cleanup(func() { _ = l.Close() })
		}
	}
	socket("0000000000000001.sock", false)
	socket("0000000000000002.sock", true)
	socket("person.sock", false)
	socket("0000000000000003.sock", false) // our own: Forget's affair
	if err := os.WriteFile(filepath.Join(dir, "0000000000000004.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &tmux.Server{Socket: filepath.Join(dir, "0000000000000003.sock")}
	left := func(at time.Time) string {
		if err := s.ForgetOthers(at); err != nil {
			t.Error(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, strings.TrimLeft(e.Name(), "0"))
		}
		return strings.Join(names, " ")
	}
	if got := left(time.Now()); got != "1.sock 2.sock 3.sock 4.sock person.sock" {
		t.Errorf("just made: %s", got)
	}
	if got := left(time.Now().Add(2 * time.Hour)); got != "2.sock 3.sock 4.sock person.sock" {
		t.Errorf("old: %s", got)
	}
}

// A server that was killed leaves its socket file; the next start just works.
func TestStaleSocket(t *testing.T) {
	s, cmd := tmuxtest.Foreground(t)
	tmuxtest.Sleeper(t, s, "old")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if _, err := os.Stat(s.Socket); err != nil {
		t.Fatalf("no stale socket to test with: %v", err)
	}
	tmuxtest.WaitFor(t, "there is no server", func() bool {
		_, err := s.Panes(t.Context())
		// A pane's process that was just forked still has the server's socket.
		if !errors.Is(err, tmux.ErrNoServer) && !errors.Is(err, tmux.ErrLost) {
			t.Fatalf("panes of a killed server: %v", err)
		}
		return errors.Is(err, tmux.ErrNoServer)
	})
	if p := tmuxtest.Sleeper(t, s, "new"); p.ServerPID == cmd.Process.Pid {
		t.Error("the same server")
	}
}

// Fault 30: the socket file is deleted; the server lives and binds it again.
func TestDeletedSocket(t *testing.T) {
	s, cmd := tmuxtest.Foreground(t)
	p := tmuxtest.Sleeper(t, s, "here")
	if err := os.Remove(s.Socket); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PID(t.Context()); !errors.Is(err, tmux.ErrNoServer) {
		t.Errorf("PID through a deleted socket: %v", err)
	}
	if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitAnswer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := tmuxtest.Find(t, s, p.ID); got == nil || got.PID != p.PID || got.ServerPID != cmd.Process.Pid {
		t.Errorf("after the rebind: %+v", got)
	}
}

// A server that does not answer is neither gone nor there: the deadline says so.
func TestStoppedServerIsNotGone(t *testing.T) {
	s, cmd := tmuxtest.Foreground(t)
	p := tmuxtest.Sleeper(t, s, "stopped")
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := s.Panes(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, tmux.ErrSilent) || errors.Is(err, tmux.ErrNoServer) ||
		!strings.Contains(err.Error(), "does not answer") {
		t.Errorf("panes of a stopped server: %v", err)
	}
	if _, err := s.Clients(ctx); err == nil || errors.Is(err, tmux.ErrNoServer) {
		t.Errorf("clients of a stopped server: %v", err)
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if tmuxtest.Find(t, s, p.ID) == nil {
		t.Error("the pane is gone after the stop")
	}
}

func TestProgramIsChecked(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	socket := tmuxtest.Socket(t)
	if _, err := tmux.New(t.Context(), socket); !errors.Is(err, tmux.ErrNoTmux) {
		t.Errorf("without tmux: %v", err)
	}
	for version, want := range map[string]error{
		"tmux 3.1c": tmux.ErrTooOld, "tmux 2.9a": tmux.ErrTooOld, "nonsense": tmux.ErrTooOld, "tmux 3.2": nil, "tmux next-3.8": nil,
	} {
		// The versions that this machine does not have, as far as -V goes.
		script := "#!/bin/sh\necho '" + version + "'\n"
		if err := os.WriteFile(filepath.Join(dir, "tmux"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := tmux.New(t.Context(), socket); !errors.Is(err, want) {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func TestAttachArgs(t *testing.T) {
	s := tmuxtest.New(t)
	p := tmuxtest.Sleeper(t, s, "attach")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(s.Socket, link); err != nil {
		t.Fatal(err)
	}
	here := fmt.Sprintf("%s,%d,0", s.Socket, p.ServerPID)
	for tmuxEnv, verb := range map[string]string{
		"":                              "attach-session",
		"/tmp/tmux-0/default,1,0":       "attach-session",
		fmt.Sprintf("%s,1,0", s.Socket): "attach-session", // an earlier server on the same path
		"nonsense":                      "attach-session",
		here:                            "switch-client",
		fmt.Sprintf("%s,%d,7", link, p.ServerPID): "switch-client",
	} {
		argv, unset := s.AttachArgs(p, tmuxEnv)
		if !slices.Contains(argv, verb) || (len(unset) == 0) != (verb == "switch-client") {
			t.Errorf("TMUX=%q: %q, unset %q", tmuxEnv, argv, unset)
		}
	}
}

// attach runs the argv on a terminal, as hob does by exec.
func attach(t *testing.T, s *tmux.Server, p tmux.Pane, env ...string) *exec.Cmd {
	t.Helper()
	argv, _ := s.AttachArgs(p, "")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=screen"}
	cmd.Env = append(cmd.Env, env...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	go func() { // a terminal that nobody reads would stop the client
		buf := make([]byte, 4096)
		for {
			if _, err := tty.Read(buf); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		tty.Close()
	})
	return cmd
}

// Fault 35: attach lands on the pane; from inside, the client is switched to it.
func TestAttachLandsOnThePane(t *testing.T) {
	s := tmuxtest.New(t)
	ctx := t.Context()
	first := tmuxtest.Sleeper(t, s, "one")
	second, err := s.Spawn(ctx, tmux.Spawn{Session: first.Session, Argv: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	other := tmuxtest.Sleeper(t, s, "two")
	if got, err := s.Clients(ctx); err != nil || len(got) != 0 {
		t.Fatalf("clients before: %v, %v", got, err)
	}
	cmd := attach(t, s, second)
	shown := func() string {
		return strings.TrimSpace(tmuxCommand(t, s, "list-clients", "-F", "#{client_pid} #{pane_id}"))
	}
	tmuxtest.WaitFor(t, "the client shows the pane", func() bool { return shown() == fmt.Sprintf("%d %s", cmd.Process.Pid, second.ID) })
	got, err := s.Clients(ctx)
	if err != nil || len(got) != 1 || got[0].PID != cmd.Process.Pid || got[0].Session != "one" || got[0].TTY == "" || got[0].Control {
		t.Errorf("clients %+v, %v", got, err)
	}

	argv, _ := s.AttachArgs(other, fmt.Sprintf("%s,%d,0", s.Socket, other.ServerPID))
	inside := exec.Command(argv[0], argv[1:]...)
	inside.Env = []string{"PATH=" + os.Getenv("PATH"), "TMUX=" + fmt.Sprintf("%s,%d,0", s.Socket, other.ServerPID), "TMUX_PANE=" + second.ID}
	if out, err := inside.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", argv, err, out)
	}
	tmuxtest.WaitFor(t, "the client shows the other session's pane", func() bool { return strings.HasSuffix(shown(), " "+other.ID) })
}

// A terminal that names itself with gotmux's separator ends nobody.
func TestHostileClientIsAnError(t *testing.T) {
	s := tmuxtest.New(t)
	tmuxtest.Sleeper(t, s, "host")
	cmd := exec.Command(s.Bin, "-S", s.Socket, "-f", os.DevNull, "-C", "attach-session", "-t", "=host")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=x-:-y"}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	tmuxtest.WaitFor(t, "the client is attached", func() bool { return tmuxCommand(t, s, "list-clients") != "" })
	if got, err := s.Clients(t.Context()); err == nil {
		t.Errorf("clients %+v", got)
	}
}

// What a person may have called a session and a window, and a program its pane,
// breaks no list.
func TestOddNamesBreakNoList(t *testing.T) {
	s := tmuxtest.New(t)
	p := tmuxtest.Sleeper(t, s, "odd")
	tmuxCommand(t, s, "rename-session", "-t", p.Session, "a|b-||c")
	tmuxCommand(t, s, "rename-window", "-t", p.Window, "模型 | -:- |")
	tmuxCommand(t, s, "select-pane", "-t", p.ID, "-T", "x-:-y|z")
	got := tmuxtest.Find(t, s, p.ID)
	if got == nil || got.SessionName != "a|b-||c" || got.WindowName != "模型 | -:- |" || got.PID != p.PID {
		t.Errorf("listed %+v", got)
	}
}

// TestClientsTakeTurns: two hundred panes made at once would each wait for all
// others, the last ones past their deadline.
func TestClientsTakeTurns(t *testing.T) {
	s := tmuxtest.New(t)
	tmuxtest.Sleeper(t, s, "turns")
	dir := t.TempDir()
	counting := "#!/bin/sh\nmkdir " + dir + "/now.$$; ls -d " + dir + "/now.* | wc -l >" + dir + "/count.$$\n" +
		s.Bin + " \"$@\"; code=$?; rmdir " + dir + "/now.$$; exit $code\n"
	slow := *s
	slow.Bin = filepath.Join(dir, "tmux")
	if err := os.WriteFile(slow.Bin, []byte(counting), 0o700); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 60 {
		wg.Go(func() {
			if _, err := slow.Panes(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	counts, err := filepath.Glob(filepath.Join(dir, "count.*"))
	if err != nil || len(counts) != 60 {
		t.Fatalf("%d commands ran, %v", len(counts), err)
	}
	for _, file := range counts {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.TrimSpace(string(text)); len(n) > 1 || n > "8" {
			t.Errorf("%s commands at once", n)
		}
	}
}

// TestForget: the socket of a server that has ended goes; one that somebody
// listens on stays, as does what is no socket.
func TestForget(t *testing.T) {
	s := tmuxtest.New(t)
	there := func() bool { _, err := os.Lstat(s.Socket); return err == nil }
	tmuxtest.Sleeper(t, s, "forget")
	if err := s.Forget(); err != nil || !there() {
		t.Fatalf("a living server's: %v, %t", err, there())
	}
	if err := tmuxtest.KillServer(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is gone already
		if err := s.Forget(); err != nil || there() {
			t.Errorf("a server's that has ended: %v, %t", err, there())
		}
	}
	if err := os.WriteFile(s.Socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(); err != nil || !there() {
		t.Errorf("a file that is no socket: %v, %t", err, there())
	}
}
