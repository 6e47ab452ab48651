//go:build unix

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

// counted has the server's tmux programs write a line for each that runs.
func counted(t *testing.T, s *tmux.Server) (runs func() int) {
	t.Helper()
	dir := t.TempDir()
	log, script := filepath.Join(dir, "log"), filepath.Join(dir, "tmux")
	text := "#!/bin/sh\necho >>" + log + "\nexec " + s.Bin + " \"$@\"\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	bin := s.Bin
	s.Bin = script
	t.Cleanup(func() { s.Bin = bin })
	return func() int {
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return len(data)
	}
}

func sleepers(session string, n int) []tmux.Spawn {
	var all []tmux.Spawn
	for i := range n {
		all = append(all, tmux.Spawn{Session: session, Window: "w" + strconv.Itoa(i), Index: i + 2, Argv: []string{"sleep", "600"}})
	}
	return all
}

// TestSpawnAll: many panes by one program, in the order that was asked for.
func TestSpawnAll(t *testing.T) {
	s := tmuxtest.New(t)
	session := tmuxtest.Sleeper(t, s, "many").Session
	runs := counted(t, s)
	panes, err := s.SpawnAll(t.Context(), sleepers(session, 12))
	if err != nil || len(panes) != 12 {
		t.Fatalf("%d panes, %v", len(panes), err)
	}
	if n := runs(); n != 1 {
		t.Errorf("%d tmux programs", n)
	}
	for i, p := range panes {
		got := tmuxtest.Find(t, s, p.ID)
		if got == nil || got.PID != p.PID || got.Window != p.Window || got.WindowName != "w"+strconv.Itoa(i) || p.WindowName != got.WindowName {
			t.Errorf("pane %d: spawned %+v, listed %+v", i, p, got)
		}
	}
}

// TestSpawnAllStops: the panes before the one that cannot be made are there, those
// after it are not, and the error is about that one.
func TestSpawnAllStops(t *testing.T) {
	s := tmuxtest.New(t)
	session := tmuxtest.Sleeper(t, s, "many").Session
	for name, c := range map[string]struct {
		spoil func(*tmux.Spawn)
		want  error
	}{
		"tmux refuses":  {func(r *tmux.Spawn) { r.Index = 2 }, tmux.ErrIndex}, // the first has it
		"hob refuses":   {func(r *tmux.Spawn) { r.Window = "#(id)" }, tmux.ErrName},
		"gone meantime": {func(r *tmux.Spawn) { r.Session = "$99" }, tmux.ErrNoTarget},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := s.Panes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all := sleepers(session, 5)
			c.spoil(&all[3])
			panes, err := s.SpawnAll(t.Context(), all)
			if !errors.Is(err, c.want) || len(panes) != 3 {
				t.Errorf("%d panes, %v; want 3, %v", len(panes), err, c.want)
			}
			after, err := s.Panes(t.Context())
			if err != nil || len(after) != len(before)+3 {
				t.Errorf("%d panes before, %d after, %v", len(before), len(after), err)
			}
			for _, p := range panes {
				if err := tmuxtest.KillPane(t.Context(), s, p.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestSpawnAllOfMuch: what one message to the server cannot hold goes into several.
func TestSpawnAllOfMuch(t *testing.T) {
	s := tmuxtest.New(t)
	session := tmuxtest.Sleeper(t, s, "much").Session
	all := sleepers(session, 4)
	for i := range all {
		all[i].Argv = []string{"sh", "-c", "exec sleep 600 #" + strings.Repeat("x", 7000)}
	}
	all = append(all, tmux.Spawn{Split: true, Window: tmuxtest.Sleeper(t, s, "split").Window, Argv: []string{"sleep", "600"}},
		tmux.Spawn{Session: session, Dir: t.TempDir(), Argv: []string{"sleep", "600"}})
	runs := counted(t, s)
	panes, err := s.SpawnAll(t.Context(), all)
	if err != nil || len(panes) != len(all) {
		t.Errorf("%d panes, %v", len(panes), err)
	}
	// The fourth leaves room for the split; after that comes another folder.
	if n := runs(); n != 5 {
		t.Errorf("%d tmux programs", n)
	}
}
