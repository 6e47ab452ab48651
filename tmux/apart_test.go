//go:build unix

package tmux_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hob/tmux"
	"hob/tmux/tmuxtest"
)

// Fault 33: the first caller's environment does not stick to the server.
func TestNothingOfTheCallersEnvironmentSticks(t *testing.T) {
	s := tmuxtest.New(t)
	t.Setenv("CUDA_VISIBLE_DEVICES", "3")
	t.Setenv("HF_TOKEN", "secret-of-the-first")
	t.Setenv("SSH_AUTH_SOCK", "/nowhere")
	t.Setenv("TMUX", "/tmp/other,1,0")
	pane, seen := spawnWriter(t, s, tmux.Spawn{Session: "one", New: true})
	noneOf(t, s, seen.Env)

	// Nor does that of a terminal that attaches (tmux's update-environment).
	attach(t, s, pane, "SSH_AUTH_SOCK=/nowhere", "DISPLAY=:7", "HF_TOKEN=secret-of-the-second")
	tmuxtest.WaitFor(t, "the terminal is attached", func() bool {
		clients, err := s.Clients(t.Context())
		return err == nil && len(clients) == 1
	})
	_, seen = spawnWriter(t, s, tmux.Spawn{Session: pane.Session})
	noneOf(t, s, seen.Env)
}

// noneOf checks that a pane has nothing of its maker's environment.
func noneOf(t *testing.T, s *tmux.Server, env []string) {
	t.Helper()
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains([]string{"CUDA_VISIBLE_DEVICES", "HF_TOKEN", "SSH_AUTH_SOCK", "DISPLAY"}, name) {
			t.Errorf("the pane has the caller's %s", name)
		}
		if name == "TMUX" && !strings.Contains(kv, s.Socket) {
			t.Errorf("the pane's TMUX is not its server's: %s", kv)
		}
	}
}

// Fault 35: hob called from inside another tmux, or with a broken TMUX.
func TestTMUXOfTheCallerIsNotFollowed(t *testing.T) {
	outer, s := tmuxtest.New(t), tmuxtest.New(t)
	p := tmuxtest.Sleeper(t, outer, "outer")
	t.Setenv("TMUX", fmt.Sprintf("%s,%d,0", outer.Socket, p.ServerPID))
	t.Setenv("TMUX_PANE", p.ID)
	mine := tmuxtest.Sleeper(t, s, "mine")
	if mine.ServerPID == p.ServerPID {
		t.Fatal("the pane was made on the caller's server")
	}
	if panes, err := outer.Panes(t.Context()); err != nil || len(panes) != 1 {
		t.Errorf("the outer server has %d panes, %v", len(panes), err)
	}
}

// Fault 34: without a locale tabs and UTF-8 come out of tmux as "_".
func TestLocaleOfTheCallerDoesNotMatter(t *testing.T) {
	for _, v := range []string{"LANG", "LC_ALL", "LC_CTYPE", "TERM"} {
		t.Setenv(v, "")
		os.Unsetenv(v)
	}
	t.Setenv("LC_ALL", "C")
	s := tmuxtest.New(t)
	_, seen := spawnWriter(t, s, tmux.Spawn{Session: "utf", New: true}, "模型")
	if string(seen.Args[0]) != "模型" {
		t.Errorf("arrived as %q", seen.Args[0])
	}
	p, err := s.Spawn(t.Context(), tmux.Spawn{Session: "say", New: true, Argv: []string{"sh", "-c", "echo 模型; sleep 600"}})
	if err != nil {
		t.Fatal(err)
	}
	tmuxtest.WaitFor(t, "the pane shows UTF-8", func() bool {
		text, err := s.Text(t.Context(), p.ID)
		return err == nil && strings.Contains(text, "模型")
	})
}

// Fault 27: the user's configuration is not read.
func TestUserConfigurationIsIgnored(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	conf := "set -g base-index 1\nset -g pane-base-index 1\nset -g destroy-unattached on\nset -g remain-on-exit off\n" +
		"set -g default-command 'exit 1'\nset-hook -g session-created 'new-window -d sleep 600'\n"
	for path, text := range map[string]string{".tmux.conf": conf, ".config/tmux/tmux.conf": "this is no command\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := tmuxtest.New(t)
	p := tmuxtest.Sleeper(t, s, "plain")
	panes, err := s.Panes(t.Context())
	if err != nil || len(panes) != 1 || panes[0].ID != p.ID || panes[0].Dead {
		t.Errorf("panes %+v, %v", panes, err)
	}
}

// Fault 27, the other way round: options of a server that is already up are set right again.
func TestOptionsAreSetAtEverySpawn(t *testing.T) {
	s := tmuxtest.New(t)
	first := tmuxtest.Sleeper(t, s, "first")
	tmuxCommand(t, s, "set-option", "-gw", "remain-on-exit", "off", ";", "set-option", "-g", "default-command", "exit 1", ";",
		"set-option", "-s", "exit-empty", "on")
	p, err := s.Spawn(t.Context(), tmux.Spawn{Session: first.Session, Argv: []string{"sh", "-c", "exit 3"}})
	if err != nil {
		t.Fatal(err)
	}
	tmuxtest.WaitFor(t, "the pane stays, dead", func() bool {
		got := tmuxtest.Find(t, s, p.ID)
		return got != nil && got.Dead
	})
}
