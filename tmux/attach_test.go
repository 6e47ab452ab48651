//go:build unix

package tmux_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"hob/tmux"
	"hob/tmux/tmuxtest"
)

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
	for range 24 {
		wg.Go(func() {
			if _, err := slow.Panes(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	counts, err := filepath.Glob(filepath.Join(dir, "count.*"))
	if err != nil || len(counts) != 24 {
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
