//go:build unix

package tmux_test

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"hob/tmux"
	"hob/tmux/tmuxtest"
)

// A window may be called what a person likes.
func TestWindowNames(t *testing.T) {
	s := tmuxtest.New(t)
	first := tmuxtest.Sleeper(t, s, "names")
	for _, name := range []string{"main llm", "a.b:c", "-d", "模型 🍳", "x;", ";", "%Y", "=x", "$9", "a|b", "'q\"", "100%"} {
		p, err := s.Spawn(t.Context(), tmux.Spawn{Session: first.Session, Window: name, Argv: []string{"sleep", "600"}})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if got := tmuxtest.Find(t, s, p.ID); got == nil || got.WindowName != name {
			t.Errorf("%q became %+v", name, got)
		}
	}
}

// A window takes more panes than a plain split has room for.
func TestManySplits(t *testing.T) {
	s := tmuxtest.New(t)
	p := tmuxtest.Sleeper(t, s, "split")
	for i := range 11 {
		layout := tmux.Layouts[0]
		if i == 10 {
			layout = "main-vertical"
		}
		if _, err := s.Spawn(t.Context(), tmux.Spawn{Split: true, Window: p.ID, Layout: layout, Argv: []string{"sleep", "600"}}); err != nil {
			t.Fatalf("split %d: %v", i, err)
		}
	}
}

// list are rows of a tmux format, for what a Pane does not hold.
func list(t *testing.T, s *tmux.Server, args ...string) []string {
	t.Helper()
	out, err := exec.Command(s.Bin, append([]string{"-S", s.Socket}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// Windows and panes have the order that was asked for, not that of their making.
func TestOrder(t *testing.T) {
	s := tmuxtest.New(t)
	sleep := []string{"sleep", "600"}
	spawn := func(r tmux.Spawn) tmux.Pane {
		t.Helper()
		r.Argv = sleep
		p, err := s.Spawn(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	third := spawn(tmux.Spawn{Session: "o", New: true, Window: "three", Index: 3})
	spawn(tmux.Spawn{Session: third.Session, Window: "one", Index: 1})
	spawn(tmux.Spawn{Session: third.Session, Window: "next"})
	mid := spawn(tmux.Spawn{Session: third.Session, Window: "five", Index: 5})
	if got := list(t, s, "list-windows", "-t", "=o:", "-F", "#{window_index} #{window_name}"); !slices.Equal(got, []string{"0 one", "1 next", "2 three", "4 five"}) {
		t.Errorf("windows %q", got)
	}
	if _, err := s.Spawn(t.Context(), tmux.Spawn{Session: third.Session, Window: "x", Index: 1, Argv: sleep}); !errors.Is(err, tmux.ErrIndex) {
		t.Errorf("a place that is taken: %v", err)
	}
	last := spawn(tmux.Spawn{Split: true, Window: mid.ID, Layout: "even-vertical"})
	first := spawn(tmux.Spawn{Split: true, Window: mid.ID, Before: true, Layout: "even-vertical"})
	between := spawn(tmux.Spawn{Split: true, Window: mid.ID, Layout: "even-vertical"})
	want := []string{first.ID, mid.ID, between.ID, last.ID}
	if got := list(t, s, "list-panes", "-t", mid.Window, "-F", "#{pane_id}"); !slices.Equal(got, want) {
		t.Errorf("panes %q, want %q", got, want)
	}
	other := spawn(tmux.Spawn{Session: "p", New: true, Window: "w"})
	if got := list(t, s, "list-windows", "-t", other.Session, "-F", "#{window_index}"); !slices.Equal(got, []string{"0"}) {
		t.Errorf("the next session begins at %q", got)
	}
}

// A pane shows hob's name for it, whatever its program calls it.
func TestDress(t *testing.T) {
	s := tmuxtest.New(t)
	a, err := s.Spawn(t.Context(), tmux.Spawn{Session: "d", New: true, Window: "w", Argv: []string{"sh", "-c", "printf '\\033]2;my own\\007'; exec sleep 600"}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Spawn(t.Context(), tmux.Spawn{Split: true, Window: a.ID, Argv: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Spawn(t.Context(), tmux.Spawn{Session: a.Session, Window: "x", Argv: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	for pane, look := range map[*tmux.Pane]tmux.Look{&a: {Title: "chat"}, &b: {Title: "rerank", Focus: true}, &c: {Front: true}} {
		if err := s.Dress(t.Context(), *pane, look); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{a.ID + " chat 0", b.ID + " rerank 1"}
	if got := list(t, s, "list-panes", "-t", a.Window, "-F", "#{pane_id} #{@hob} #{pane_active}"); !slices.Equal(got, want) {
		t.Errorf("panes %q, want %q", got, want)
	}
	if got := list(t, s, "display-message", "-p", "-t", a.ID, "#{E:pane-border-format}"); got[0] != "chat" {
		t.Errorf("above the pane stands %q", got)
	}
	if got := list(t, s, "display-message", "-p", "-t", "=d:", "#{window_name}"); got[0] != "x" {
		t.Errorf("the session shows %q", got)
	}
	for _, bad := range []tmux.Pane{{ID: "%x", Window: a.Window}, {ID: a.ID, Window: "w"}} {
		if err := s.Dress(t.Context(), bad, tmux.Look{Focus: true}); !errors.Is(err, tmux.ErrName) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := s.Dress(t.Context(), a, tmux.Look{Title: "#(touch x)"}); !errors.Is(err, tmux.ErrName) {
		t.Errorf("a title that tmux would run: %v", err)
	}
}
