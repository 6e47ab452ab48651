//go:build unix

package tmux_test

import (
	"errors"
	"fmt"
	"testing"

	"hob/tmux"
	"hob/tmux/tmuxtest"
)

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
