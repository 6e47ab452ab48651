package tmux_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hob/tmux"
	"hob/tmux/tmuxtest"
)

// A guest reads, wherever the socket is, and does nothing else.
func TestGuestOnlyReads(t *testing.T) {
	own := tmuxtest.New(t)
	pane := tmuxtest.Sleeper(t, own, "theirs")
	if err := os.Chmod(filepath.Dir(own.Socket), 0o755); err != nil {
		t.Fatal(err)
	}
	guest, err := tmux.Guest(own.Socket)
	if err != nil {
		t.Fatal(err)
	}
	if panes, err := guest.Panes(t.Context()); err != nil || len(panes) != 1 || panes[0].ID != pane.ID {
		t.Errorf("%+v, %v", panes, err)
	}
	if _, err := guest.Text(t.Context(), pane.ID); err != nil {
		t.Error(err)
	}
	_, spawned := guest.Spawn(t.Context(), tmux.Spawn{Session: "mine", New: true, Argv: []string{"sleep", "600"}})
	for what, err := range map[string]error{
		"spawn": spawned, "kill exactly": guest.KillExactly(t.Context(), pane), "kill empty": guest.KillEmpty(t.Context()),
		"dress": guest.Dress(t.Context(), pane, tmux.Look{Title: "x"}),
	} {
		if !errors.Is(err, tmux.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := os.Chmod(filepath.Dir(own.Socket), 0o700); err != nil {
		t.Fatal(err)
	}
	if tmuxtest.Find(t, own, pane.ID) == nil {
		t.Error("the pane is gone")
	}
	if _, err := tmux.Guest("s"); !errors.Is(err, tmux.ErrSocketPath) {
		t.Errorf("a relative socket: %v", err)
	}
}

func TestUserSocket(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join("tmux-"+strconv.Itoa(os.Geteuid()), "default")
	for _, c := range []struct{ env, want string }{
		{"TMUX=/run/a,b.sock,17,0", "/run/a,b.sock"},
		{"TMUX=torn", filepath.Join("/tmp", name)},
		{"TMUX_TMPDIR=" + dir, filepath.Join(dir, name)},
		{"TMUX_TMPDIR=" + dir + "/none", filepath.Join("/tmp", name)},
		{"", filepath.Join("/tmp", name)},
	} {
		getenv := func(want string) string {
			if v, ok := strings.CutPrefix(c.env, want+"="); ok {
				return v
			}
			return ""
		}
		if got := tmux.UserSocket(getenv); got != c.want {
			t.Errorf("%q: %s", c.env, got)
		}
	}
}
