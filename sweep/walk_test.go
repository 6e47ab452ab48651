package sweep

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/identity/sim"
)

// tree is the stage's tree as a stop would load it.
func (s *stage) tree() *tree {
	tr := newTree(s.w.Host(), s.target, s.disk, StepAll)
	s.t.Cleanup(tr.close)
	return tr
}

// visited are the processes that a round of the force phase would kill.
func visited(tr *tree) map[int]bool {
	out := map[int]bool{}
	tr.look(context.Background(), func(n *node) {
		if tr.may(n) {
			out[n.Ref.PID] = true
		}
	})
	return out
}

// TestACommandThatIsJustBeingStarted shows its keeper's command line until it
// execs, and is no keeper of another hob.
func TestACommandThatIsJustBeingStarted(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	starting := s.keeper.Fork(sim.Proc{Setsid: true})
	if got := visited(s.tree()); !got[starting.PID()] || !got[s.cmd.PID()] {
		t.Errorf("would kill %v, and %v is starting", got, starting)
	}
	r, err := Stop(context.Background(), s.w.Host(), s.target, s.disk, s, Options{})
	if m := s.member(r, starting); err != nil || m.Fate == Survived || starting.Alive() || r.Verdict != Clean {
		t.Errorf("%+v", m)
	}
}

// TestAnOrphanOfSomebodysTmuxIsSparedAtFirstSight: in the force phase there is no
// second one.
func TestAnOrphanOfSomebodysTmuxIsSparedAtFirstSight(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	server := s.w.Tmux(s.cmd, sim.Proc{Spared: true})
	env := []string{fmt.Sprintf("TMUX=/tmp/x,%d,0", server.PID())}
	theirs := s.keeper.Fork(sim.Proc{Comm: "daemon", Args: []string{"daemon"}, Setsid: true, Env: env, Spared: true})
	ours := s.keeper.Fork(sim.Proc{Comm: "daemon", Args: []string{"daemon"}, Setsid: true, Env: []string{"A=b"}})
	if got := visited(s.tree()); got[theirs.PID()] || got[server.PID()] || !got[ours.PID()] {
		t.Errorf("would kill %v; theirs %v, ours %v", got, theirs, ours)
	}
}

// TestHobsOwnTmuxIsNoStranger: shells have TMUX from the pane they are in.
func TestHobsOwnTmuxIsNoStranger(t *testing.T) {
	s := newStage(t, Shell, sim.Options{})
	env := []string{fmt.Sprintf("TMUX=/tmp/hob.sock,%d,0", s.tmux.PID())}
	orphan := s.keeper.Fork(sim.Proc{Comm: "orphan", Args: []string{"orphan"}, Setsid: true, Env: env})
	if got := visited(s.tree()); !got[orphan.PID()] {
		t.Errorf("would kill %v, not %v", got, orphan)
	}
}

// TestAnOrphanThatShowsNothing (in the middle of an exec; or, for good, with its
// leading thread ended) is waited for, but not for ever.
func TestAnOrphanThatShowsNothing(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	vague := s.keeper.Fork(sim.Proc{Comm: "x", Args: []string{"x"}, Setsid: true, Threads: 1})
	vague.EndLeader()
	tr := s.tree()
	if got := visited(tr); got[vague.PID()] || !tr.moved {
		t.Errorf("would kill %v, moved %v", got, tr.moved)
	}
	for range vagueLooks {
		tr.look(context.Background(), nil)
	}
	if got := visited(tr); !got[vague.PID()] || tr.moved {
		t.Errorf("would kill %v, moved %v: it stays as it is", got, tr.moved)
	}
	r, err := Stop(context.Background(), s.w.Host(), s.target, s.disk, s, Options{})
	if m := s.member(r, vague); err != nil || vague.Alive() || r.Verdict != Clean {
		t.Errorf("%+v", m)
	}
}

// TestNobodyLookedBelow: a keeper that cannot be verified in a round hides what is
// below it from that round.
func TestNobodyLookedBelow(t *testing.T) {
	s := newStage(t, Server, sim.Options{NoPidfd: true})
	tr := s.tree()
	s.w.Blind(true)
	tr.look(context.Background(), nil)
	if tr.blind[s.keeper.PID()] == "" || tr.blind[s.cmd.PID()] == "" {
		t.Errorf("blind: %v", tr.blind)
	}
	s.w.Blind(false)
	tr.look(context.Background(), nil)
	if len(tr.blind) > 0 {
		t.Errorf("still blind: %v", tr.blind)
	}
}

// TestADeadKeepersNumberMayBeOurs: a process of the task that was given it is a
// process of the task.
func TestADeadKeepersNumberMayBeOurs(t *testing.T) {
	s := newStage(t, Server, sim.Options{PIDs: 12})
	number := s.keeper.PID()
	s.w.Kill(s.keeper, syscall.SIGKILL)
	s.w.Pass(time.Second)
	var heir *sim.Process
	for range 20 {
		if heir = s.cmd.Fork(worker("heir")); heir != nil && heir.PID() == number {
			break
		}
		if heir != nil {
			heir.Exit()
		}
		s.w.Pass(time.Second)
	}
	if heir == nil || heir.PID() != number {
		t.Fatal("the number was not used again, so nothing was tested")
	}
	r := s.stop()
	if m := s.member(r, heir); m.Fate != Terminated || heir.Alive() || r.Verdict != Clean {
		t.Errorf("%+v", m)
	}
}

// beforeSnapshot is a host on which something happens just before the process
// table is read.
type beforeSnapshot struct {
	identity.Host
	do func()
}

func (h *beforeSnapshot) Snapshot(ctx context.Context, want identity.Field) (*identity.Table, error) {
	if do := h.do; do != nil {
		h.do = nil
		do()
	}
	return h.Host.Snapshot(ctx, want)
}

// TestAnAnchorThatHasLeftItsSession proves nothing about who is in the session of
// that number now.
func TestAnAnchorThatHasLeftItsSession(t *testing.T) {
	s := newStage(t, Server, sim.Options{PIDs: 12})
	leader := s.cmd.Fork(sim.Proc{Comm: "leader", Args: []string{"leader"}, Setsid: true})
	anchor := leader.Fork(worker("anchor"))
	number := leader.PID()
	s.observe()
	leader.Exit()
	s.w.Kill(s.keeper, syscall.SIGKILL)
	s.w.Pass(time.Second)
	var theirs *sim.Process
	h := &beforeSnapshot{Host: s.w.Host(), do: func() {
		anchor.Setsid()
		for range 20 {
			p := s.w.Init().Fork(sim.Proc{Comm: "theirs", Args: []string{"theirs"}, Setsid: true, Stranger: true})
			if p != nil && p.PID() == number {
				theirs = p.Fork(sim.Proc{Comm: "below", Args: []string{"below"}, Stranger: true})
				return
			}
			if p != nil {
				p.Exit()
			}
			s.w.Pass(time.Second)
		}
	}}
	tr := newTree(h, s.target, s.disk, StepAll)
	defer tr.close()
	tr.look(context.Background(), nil)
	if theirs == nil || theirs.SID() != number {
		t.Fatal("the number of the session was not used again, so nothing was tested")
	}
	if n := tr.live[theirs.PID()]; n != nil {
		t.Errorf("a stranger was taken in: %+v", n.Member)
	}
}
