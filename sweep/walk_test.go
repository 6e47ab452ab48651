//go:build unix

package sweep

import (
	"context"
	"fmt"
	"slices"
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

// TestACommandBetweenForkAndExec has its keeper's environment, which names hob's
// own tmux server. A start that was cut has not recorded that server.
func TestACommandBetweenForkAndExec(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	s.target.Command, s.target.Spared = nil, nil
	env := []string{fmt.Sprintf("TMUX=/tmp/hob.sock,%d,0", s.tmux.PID())}
	starting := s.keeper.Fork(sim.Proc{Setsid: true, Env: env})
	if got := visited(s.tree()); !got[starting.PID()] {
		t.Errorf("would kill %v, and not %v", got, starting)
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

// meddled is a host on which something happens around a look.
type meddled struct {
	identity.Host
	before func()                // the next reading of the process table
	table  func(*identity.Table) // changes what was read
	after  func(pid int)         // a listing of children
}

func (h *meddled) Snapshot(ctx context.Context, want identity.Field) (*identity.Table, error) {
	if do := h.before; do != nil {
		h.before = nil
		do()
	}
	t, err := h.Host.Snapshot(ctx, want)
	if err == nil && h.table != nil {
		h.table(t)
	}
	return t, err
}

func (h *meddled) Children(pid int) ([]int, error) {
	pids, err := h.Host.Children(pid)
	if h.after != nil {
		h.after(pid)
	}
	return pids, err
}

// load is the stage's tree on a host that is meddled with.
func (s *stage) load(h *meddled) *tree {
	tr := newTree(h, s.target, s.disk, StepAll)
	s.t.Cleanup(tr.close)
	return tr
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
	h := &meddled{Host: s.w.Host(), before: func() {
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
	tr := s.load(h)
	tr.look(context.Background(), nil)
	if theirs == nil || theirs.SID() != number {
		t.Fatal("the number of the session was not used again, so nothing was tested")
	}
	if n := tr.live[theirs.PID()]; n != nil {
		t.Errorf("a stranger was taken in: %+v", n.Member)
	}
}

// TestASessionThatWasNotBornInTheTree holds strangers: the keeper was started
// inside it.
func TestASessionThatWasNotBornInTheTree(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	shell := s.w.Init().Fork(sim.Proc{Comm: "bash", Args: []string{"bash"}, Setsid: true, Stranger: true})
	s.keeper = shell.Fork(sim.Proc{Comm: "hob", Args: []string{"hob", "keeper", "/s/spec.json"}, Subreaper: true, Tree: "t", Stamp: stageStamp + 1})
	s.cmd = s.keeper.Fork(worker("cmd"))
	keeper, command := s.keeper.Ref(), s.cmd.Ref()
	s.target.Keeper, s.target.Command, s.target.Stamp = &keeper, &command, stageStamp+1
	s.observe()
	s.w.Kill(s.keeper, syscall.SIGKILL)
	s.w.Pass(time.Second)
	neighbour := shell.Fork(sim.Proc{Comm: "vim", Args: []string{"vim", "x"}, Stranger: true})
	r := s.stop()
	if !neighbour.Alive() || !shell.Alive() || s.cmd.Alive() || r.Verdict != Clean {
		t.Errorf("neighbour %v, shell %v, command %v, %s", neighbour.Alive(), shell.Alive(), s.cmd.Alive(), r.Verdict)
	}
}

// TestAListingWithoutOurselvesIsNoListing: "nothing there" is not what it says.
func TestAListingWithoutOurselvesIsNoListing(t *testing.T) {
	s := newStage(t, Server, sim.Options{NoChildren: true})
	empty := func(t *identity.Table) { t.Procs, t.SawSelf = nil, false }
	tr := s.load(&meddled{Host: s.w.Host(), table: empty})
	tr.look(context.Background(), nil)
	if tr.blind[s.keeper.PID()] == "" {
		t.Errorf("blind: %v", tr.blind)
	}
	r, err := Stop(context.Background(), &meddled{Host: s.w.Host(), table: empty}, s.target, s.disk, s, Options{})
	if err != nil || r.Verdict != Unverified || r.Host.Inspection != inspectedNone {
		t.Errorf("%v, %s, %s", err, r.Verdict, r.Host.Inspection)
	}
}

// TestAChildThatGoesWhileWeLook leaves its own children to the keeper, whose list
// was read before: the round has not seen everything.
func TestAChildThatGoesWhileWeLook(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	h := &meddled{Host: s.w.Host()}
	tr := s.load(h)
	tr.look(context.Background(), nil)
	child := s.cmd.Fork(worker("child"))
	left := child.Fork(worker("left"))
	h.after = func(pid int) {
		if pid == s.cmd.PID() {
			child.Exit()
		}
	}
	tr.look(context.Background(), nil)
	if tr.live[left.PID()] != nil {
		t.Fatal("it was seen, so nothing was tested")
	}
	if !tr.moved {
		t.Error("the round counts as one that has seen everything")
	}
}

// TestWhatMovesBehindTheListing: a listing goes through the numbers one by one. What
// forks into a number that it has passed, and ends before it is reached, is in none,
// as often as it does that: so a round that finds nobody is not the last.
func TestWhatMovesBehindTheListing(t *testing.T) {
	s := newStage(t, Server, sim.Options{NoChildren: true})
	s.observe()
	h := &behind{Host: s.w.Host(), s: s, hops: 4} // of the look after the command ended, and of the rounds of force
	r, err := Stop(context.Background(), h, s.target, s.disk, s, Options{Reason: "hangup", InKeeper: true})
	if err != nil || h.hops > 0 {
		t.Fatalf("%v, %d hops were not made", err, h.hops)
	}
	if h.last.Alive() {
		t.Errorf("%v lives, and the verdict is %s", h.last, r.Verdict)
	}
	if m := s.member(r, h.last); m.Fate != Killed {
		t.Errorf("%+v", m)
	}
}

// behind lets what the command has left move behind so many listings.
type behind struct {
	identity.Host
	s    *stage
	last *sim.Process
	hops int
}

func (h *behind) Snapshot(ctx context.Context, want identity.Field) (*identity.Table, error) {
	if h.s.cmd.Alive() || h.hops == 0 {
		return h.Host.Snapshot(ctx, want)
	}
	if h.last == nil {
		h.last = h.s.keeper.Fork(worker("link")) // whose parents have ended
	}
	h.hops--
	t, err := h.Host.Snapshot(ctx, want)
	if err == nil {
		t.Procs = slices.DeleteFunc(t.Procs, func(p identity.Process) bool { return p.PID == h.last.PID() })
	}
	next := h.last.Fork(worker("link"))
	h.last.Exit()
	h.last = next
	return t, err
}

// TestWhoIsLeftAloneVouchesForNobody: one that stop.spare leaves alone is no anchor
// of its session; who else is in it is only named.
func TestWhoIsLeftAloneVouchesForNobody(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	s.target.Stop.Spare = []string{"keep"}
	keep := s.cmd.Fork(worker("keep"))
	s.observe()
	s.w.Kill(s.keeper, syscall.SIGKILL)
	s.w.Pass(time.Second)
	mid := s.cmd.Fork(worker("mid"))
	late := mid.Fork(worker("late"))
	mid.Exit()
	s.w.Kill(s.cmd, syscall.SIGKILL)
	s.w.Pass(time.Second)
	r := s.stop()
	if !keep.Alive() || !late.Alive() || r.Verdict != Unverified {
		t.Errorf("keep %v, late %v, %s", keep.Alive(), late.Alive(), r.Verdict)
	}
	if why := s.lookalike(r, late); !slices.Contains(why, "stamp") {
		t.Errorf("late is named by %q", why)
	}
}

// TestADaemonSeenBeforeItsSetsid: what a look met between its fork and its setsid is
// detached all the same. A worker that takes a session after the command's end is not.
func TestADaemonSeenBeforeItsSetsid(t *testing.T) {
	for name, late := range map[string]bool{"while the command lives": false, "after its end": true} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, Server, sim.Options{})
			s.target.Stop.Detached = "report"
			launcher := s.cmd.Fork(worker("launcher"))
			daemon := launcher.Fork(worker("daemon"))
			launcher.Exit()
			s.w.Pass(time.Second)
			s.observe()
			if late {
				s.w.Kill(s.cmd, syscall.SIGKILL)
				s.w.Pass(time.Second)
			}
			daemon.Setsid()
			s.stop()
			if daemon.Alive() == late {
				t.Errorf("alive: %v", daemon.Alive())
			}
		})
	}
}

// TestTableServes: when the children of a process with many threads are taken from the
// process table.
func TestTableServes(t *testing.T) {
	counted := func(n int) func() (int, bool) { return func() (int, bool) { return n, true } }
	table := []struct {
		rule    string
		lethal  bool
		threads int
		count   func() (int, bool)
		want    bool
	}{
		{"more threads than processes", false, 2000, counted(300), true},
		{"fewer", false, 2000, counted(10_000), false},
		{"few threads are asked sooner than one has counted", false, 20, counted(10), false},
		{"nobody counts the processes", false, 2000, func() (int, bool) { return 0, false }, false},
		{"who is found is killed, and what was forked since the table is lost", true, 2000, counted(300), false},
	}
	for _, row := range table {
		if got := tableServes(row.lethal, row.threads, row.count); got != row.want {
			t.Errorf("%s: %v", row.rule, got)
		}
	}
}

// shortOfPins cannot verify one recorded process, once.
type shortOfPins struct {
	identity.Host
	start identity.Token
}

func (h *shortOfPins) Verify(ref identity.Ref) (identity.Handle, identity.Finding) {
	if ref.Start == h.start {
		h.start = ""
		return nil, identity.Finding{Verdict: identity.Unverifiable, Reason: "too many open files"}
	}
	return h.Host.Verify(ref)
}

// TestWhoLivesHasTheNumber: two members are recorded with one number. The one that
// lives is who a signal goes to, whatever could not be said of the other.
func TestWhoLivesHasTheNumber(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	ref := s.cmd.Ref()
	other := ref
	other.Start, other.PIDFS = "linux:1", nil
	h := &shortOfPins{s.w.Host(), other.Start}
	prev := Capture{Members: []Member{{Ref: ref, Evidence: []Evidence{Captured}}, {Ref: other, Evidence: []Evidence{Captured}}}}
	tr := newTree(h, s.target, prev, StepAll)
	defer tr.close()
	if n := tr.live[ref.PID]; n != tr.nodes[0] || !n.living() || !tr.nodes[1].unknown() {
		t.Errorf("%+v has the number", n)
	}
	tr.look(context.Background(), nil)
	if n := tr.live[ref.PID]; n != tr.nodes[0] || !n.living() || tr.nodes[1].Fate != ForeignFate {
		t.Errorf("after a look: %+v has the number, the other is %+v", n, tr.nodes[1])
	}
}
