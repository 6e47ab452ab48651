//go:build unix

package tmux_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
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
