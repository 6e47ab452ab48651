package tmux_test

import (
	"slices"
	"testing"

	"hob/tmux"
	"hob/tmux/tmuxtest"
)

// Survey tells what a person sees apart, whatever titles and names hold.
func TestSurvey(t *testing.T) {
	s := tmuxtest.New(t)
	first, err := s.Spawn(t.Context(), tmux.Spawn{Session: "one", New: true, Window: "a|b -:- c", Argv: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Spawn(t.Context(), tmux.Spawn{Session: first.Session, Window: first.Window, Split: true, Layout: "even-vertical", Argv: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Dress(t.Context(), second, tmux.Look{Title: "5|x|7", Focus: true}); err != nil {
		t.Fatal(err)
	}
	tmuxtest.Sleeper(t, s, "two")
	guest, err := tmux.Guest(s.Socket)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := guest.Survey(t.Context())
	if err != nil || len(seen) != 3 {
		t.Fatalf("%d panes: %v", len(seen), err)
	}
	i := slices.IndexFunc(seen, func(p tmux.Seen) bool { return p.ID == second.ID })
	p := seen[i]
	if i != 1 || p.WindowName != "a|b -:- c" || p.SessionName != "one" || p.Title != "5|x|7" || p.Label != "5|x|7" || !p.Focus || p.Garbled || p.PID != second.PID {
		t.Errorf("pane %d is %+v", i, p)
	}
	if p.Layout == "" || p.Layout != seen[0].Layout || seen[0].Focus || seen[0].Label != "" || seen[2].SessionName != "two" || !seen[2].Front {
		t.Errorf("the panes are %+v", seen)
	}
}

// What is there while nothing runs is not nothing.
func TestSurveyWithoutServer(t *testing.T) {
	guest, err := tmux.Guest(tmuxtest.Socket(t))
	if err != nil {
		t.Fatal(err)
	}
	if seen, err := guest.Survey(t.Context()); err == nil {
		t.Errorf("no server has the panes %v", seen)
	}
}
