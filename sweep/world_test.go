//go:build unix

package sweep

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/identity/sim"
)

// stage is a task on a simulated machine that is quiet but for what a test does.
type stage struct {
	t      *testing.T
	w      *sim.World
	tmux   *sim.Process
	keeper *sim.Process
	cmd    *sim.Process
	target Target
	disk   Capture
	panes  int
	group  *sim.Cgroup
	left   bool // the keeper has said that it leaves the rest alone
	onSave func()
}

// stageStamp is that of a stage's keeper.
const stageStamp = 1<<30 + 99

func newStage(t *testing.T, kind Kind, o sim.Options, cmd ...sim.Behaviour) *stage {
	s := &stage{t: t, w: sim.New(sim.Quiet, o)}
	s.tmux = s.w.Tmux(s.w.Init(), sim.Proc{Stranger: true})
	s.keeper = s.w.Keeper(s.tmux, 5, sim.Proc{Comm: "hob", Args: []string{"hob", "keeper", "/s/spec.json"}, Tree: "t", EndsEmpty: true, Stamp: stageStamp})
	s.cmd = s.keeper.Fork(sim.Proc{Comm: "server", Args: []string{"server", "--port", "8000"}, Setsid: true, Listen: []int{8000},
		Env: []string{"HOB_RUN_ID=m", "HOB_RUN=r", "HOB_TASK=t"}, Do: cmd})
	keeper, command := s.keeper.Ref(), s.cmd.Ref()
	s.target = Target{Run: "r", Task: "t", Kind: kind, Marker: "m", Args: []string{"server", "--port", "8000"}, Ports: []int{8000},
		Keeper: &keeper, Command: &command, Stamp: stageStamp, Spared: []identity.Ref{s.tmux.Ref(), s.w.Caller().Ref()},
		Stop: StopPolicy{Signal: syscall.SIGTERM, Grace: 10 * time.Second, TermGrace: 3 * time.Second, Detached: "kill"}}
	if o.OS != "" {
		s.target.Stamp = 0 // only Linux has it
	}
	return s
}

func (s *stage) SaveCapture(c Capture) error {
	c.Members = slices.Clone(c.Members)
	s.disk = c
	if s.onSave != nil {
		s.onSave()
	}
	return nil
}

func (s *stage) ClosePane(context.Context) error { s.panes++; s.w.Hangup(5); return nil }
func (s *stage) KeeperDone() bool                { return s.keeper.Empty() }
func (s *stage) KeeperLeft() bool                { return s.left }
func (s *stage) Note(string, ...any)             {}

func (s *stage) observe() {
	s.t.Helper()
	c, _, err := Observe(context.Background(), s.w.Host(), s.target, s.disk)
	if err != nil {
		s.t.Fatal(err)
	}
	s.disk = c
}

func (s *stage) stop() Report {
	s.t.Helper()
	r, err := Stop(context.Background(), s.w.Host(), s.target, s.disk, s, Options{Reason: "down"})
	if err != nil {
		s.t.Error(err)
	}
	if n := s.w.OpenPins(); n != 0 {
		s.t.Errorf("%d pins are left open", n)
	}
	for _, d := range s.w.Ledger().Strays("t") {
		s.t.Errorf("a stranger was signalled: %v", d)
	}
	s.t.Cleanup(func() {
		if s.t.Failed() {
			var b strings.Builder
			_ = r.Text(&b, TextOptions{})
			s.t.Log(b.String())
			s.t.Log("\n" + strings.Join(s.w.Trace(), "\n"))
		}
	})
	return r
}

func (s *stage) member(r Report, p *sim.Process) ReportMember {
	s.t.Helper()
	for _, m := range r.Members {
		if m.PID == p.PID() && m.Start == p.Ref().Start {
			return m
		}
	}
	s.t.Errorf("%v is not in the report", p)
	return ReportMember{}
}

func (s *stage) lookalike(r Report, p *sim.Process) []string {
	for _, l := range r.Lookalikes {
		if l.PID == p.PID() {
			return l.Why
		}
	}
	return nil
}

func worker(name string) sim.Proc { return sim.Proc{Comm: name, Args: []string{name, "--work"}} }

// TestHosts: one tree, on every kind of host.
func TestHosts(t *testing.T) {
	hosts := map[string]sim.Options{
		"linux": {}, "linux before 6.9": {NoPidfs: true}, "linux before 5.3": {NoPidfd: true},
		"no children file": {NoChildren: true}, "freebsd": {OS: "freebsd"}, "darwin": {OS: "darwin"}, "openbsd": {OS: "openbsd"},
	}
	for name, o := range hosts {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, Server, o)
			a := s.cmd.Fork(worker("a"))
			b := a.Fork(sim.Proc{Comm: "b", Args: []string{"b", "--work"}, Setsid: true, Ignore: []syscall.Signal{syscall.SIGTERM}})
			stranger := s.w.Init().Fork(sim.Proc{Comm: "x", Args: []string{"b", "--work"}, Stranger: true})
			r := s.stop()
			if s.member(r, a).Fate != Terminated || s.member(r, b).Fate != Killed || b.Alive() || s.keeper.Alive() {
				t.Errorf("not stopped: %+v", r.Members)
			}
			if why := s.lookalike(r, stranger); !slices.Equal(why, []string{"command"}) || !stranger.Alive() {
				t.Errorf("stranger: %v", why)
			}
			if r.Verdict != Clean || r.Ports[0].State != "free" {
				t.Errorf("%s, ports %+v", r.Verdict, r.Ports)
			}
			noted := slices.ContainsFunc(r.Host.Notes, func(n string) bool { return strings.Contains(n, "subreaper") })
			if want := name == "darwin" || name == "openbsd"; noted != want {
				t.Errorf("notes: %q", r.Host.Notes)
			}
		})
	}
}

// TestWithoutASubreaper: what was captured before it was orphaned is ended; what
// left before that, and left its kernel session, is only named.
func TestWithoutASubreaper(t *testing.T) {
	s := newStage(t, Server, sim.Options{OS: "darwin"})
	parent := s.cmd.Fork(worker("parent"))
	kept := parent.Fork(sim.Proc{Comm: "kept", Args: []string{"kept", "--work"}, Setsid: true})
	s.observe()
	inSession := parent.Fork(worker("in-session"))
	lost := parent.Fork(sim.Proc{Comm: "lost", Args: []string{"server", "--port", "8000"}, Setsid: true})
	parent.Exit()
	r := s.stop()
	if m := s.member(r, kept); m.Fate != Terminated || kept.Alive() {
		t.Errorf("kept: %+v", m)
	}
	if m := s.member(r, inSession); !slices.Contains(m.Evidence, Session) || inSession.Alive() {
		t.Errorf("in-session: %+v", m)
	}
	if why := s.lookalike(r, lost); !slices.Contains(why, "command") || !lost.Alive() {
		t.Errorf("lost: %v", why)
	}
	if r.Verdict != Clean {
		t.Errorf("%s: look-alikes change no verdict", r.Verdict)
	}
}

// TestCouldNotLook: never folded into "nothing there", "ours" or "gone".
func TestCouldNotLook(t *testing.T) {
	table := []struct {
		name       string
		o          sim.Options
		spoil      func(*stage, *sim.Process)
		verdict    Verdict
		inspection string
		signalled  bool
	}{
		{"no view of the host at the end", sim.Options{}, func(s *stage, _ *sim.Process) {
			s.onSave = func() {
				if !s.cmd.Alive() {
					s.w.Blind(true)
				}
			}
		}, Unverified, inspectedNone, true},
		{"no procfs at all", sim.Options{NoProcfs: true}, func(*stage, *sim.Process) {}, Unverified, inspectedNone, true},
		{"the boot id cannot be read", sim.Options{}, func(s *stage, _ *sim.Process) { s.w.Dark(true) }, Unverified, inspectedFull, false},
		{"seen from another pid namespace", sim.Options{}, func(s *stage, _ *sim.Process) { s.w.Enter("4026532000", "4026531834") }, Unverified, inspectedFull, false},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			s := newStage(t, Server, row.o)
			kid := s.cmd.Fork(worker("kid"))
			row.spoil(s, kid)
			r := s.stop()
			if r.Verdict != row.verdict || r.Host.Inspection != row.inspection || len(r.Host.Notes) == 0 {
				t.Errorf("%s, %s, %q", r.Verdict, r.Host.Inspection, r.Host.Notes)
			}
			if got := len(s.w.Ledger().Deliveries) > 0; got != row.signalled {
				t.Errorf("signalled: %v", s.w.Ledger().Deliveries)
			}
		})
	}
}

// TestAChildThatCannotBeRead (hidepid, another user) is counted, never clean.
func TestAChildThatCannotBeRead(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	hidden := s.cmd.Fork(sim.Proc{Comm: "hidden", Args: []string{"hidden"}, Unreadable: true})
	r := s.stop()
	if !hidden.Alive() || r.Verdict != Unverified {
		t.Errorf("%s, alive %v", r.Verdict, hidden.Alive())
	}
	if !slices.ContainsFunc(r.Host.Notes, func(n string) bool { return strings.Contains(n, fmt.Sprint(hidden.PID())) }) {
		t.Errorf("it is not named: %q", r.Host.Notes)
	}
	if !s.keeper.Alive() {
		t.Error("the keeper is ended only when its tree is shown empty")
	}
}

func TestWhatCannotBeKilledIsStuck(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	stuck := s.cmd.Fork(sim.Proc{Comm: "stuck", Args: []string{"stuck", "--work"}, Stuck: true})
	r := s.stop()
	m := s.member(r, stuck)
	if m.Fate != Survived || !strings.Contains(m.Note, "state D") || r.Verdict != Survivors {
		t.Errorf("%+v, %s", m, r.Verdict)
	}
	if !s.keeper.Alive() || s.panes != 1 {
		t.Errorf("keeper alive %v, panes closed %d", s.keeper.Alive(), s.panes)
	}
}

func TestOtherUsersProcessesNeedRoot(t *testing.T) {
	s := newStage(t, Server, sim.Options{UID: 1000})
	other := s.cmd.Fork(worker("other"))
	other.Setuid(33)
	r := s.stop()
	m := s.member(r, other)
	if m.Fate != Survived || len(m.Signals) > 0 || !strings.Contains(m.Note, "not permitted") || r.Verdict != Survivors {
		t.Errorf("%+v, %s", m, r.Verdict)
	}
}

// TestAKeeperThatDoesNotEnd is ended only when nothing is below it any more.
func TestAKeeperThatDoesNotEnd(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	s.keeper = s.w.Keeper(s.tmux, 6, sim.Proc{Comm: "hob", Args: []string{"hob", "keeper", "/s/spec.json"}, Tree: "t"})
	s.cmd = s.keeper.Fork(sim.Proc{Comm: "server", Args: []string{"server"}, Setsid: true})
	keeper, cmd := s.keeper.Ref(), s.cmd.Ref()
	s.target.Keeper, s.target.Command = &keeper, &cmd
	r := s.stop()
	if m := s.member(r, s.keeper); m.Fate != Killed || !slices.Equal(m.Signals, []string{"TERM", "KILL"}) || r.Verdict != Clean {
		t.Errorf("%+v, %s", m, r.Verdict)
	}
	if last := s.w.Ledger().Deliveries; last[0].To != s.cmd {
		t.Errorf("signalled before its tree was empty: %v", last)
	}
}

// TestARecordFromAnotherBoot: everything is gone, nobody is signalled.
func TestARecordFromAnotherBoot(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	kid := s.cmd.Fork(worker("kid"))
	s.observe()
	s.w.Reboot()
	s.target.Spared = []identity.Ref{s.w.Caller().Ref()}
	r := s.stop()
	if m := s.member(r, kid); m.Fate != Exited || r.Verdict != Clean || len(s.w.Ledger().Deliveries) > 0 {
		t.Errorf("%+v, %s", m, r.Verdict)
	}
}

// TestANumberThatIsReusedDuringTheGrace belongs to a stranger, who lives.
func TestANumberThatIsReusedDuringTheGrace(t *testing.T) {
	s := newStage(t, Server, sim.Options{PIDs: 12}, sim.Swallow(syscall.SIGTERM))
	kid := s.cmd.Fork(sim.Proc{Comm: "kid", Args: []string{"kid", "--work"}})
	var others []*sim.Process
	s.w.At(time.Second, func() {
		kid.Exit()
		for range 8 {
			others = append(others, s.w.Init().Fork(sim.Proc{Comm: "other", Args: []string{"kid", "--work"}, Stranger: true}))
		}
	})
	r := s.stop()
	reused := slices.ContainsFunc(others, func(p *sim.Process) bool { return p != nil && p.PID() == kid.PID() })
	if !reused {
		t.Fatal("the number was not reused, so nothing was tested")
	}
	for _, p := range others {
		if p != nil && !p.Alive() {
			t.Errorf("%v was killed", p)
		}
	}
	if m := s.member(r, kid); m.Fate != Exited {
		t.Errorf("%+v", m)
	}
}

// TestObserve: a rolling capture forgets who has ended, unless they still tell
// something; the capture of a stop forgets nobody.
func TestObserve(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	leader := s.cmd.Fork(sim.Proc{Comm: "leader", Args: []string{"leader"}, Setsid: true})
	leader.Fork(worker("kid"))
	plain := s.cmd.Fork(worker("plain"))
	s.observe()
	if len(s.disk.Members) != 4 || s.disk.Phase != phaseRolling {
		t.Fatalf("%+v", s.disk)
	}
	plain.Exit()
	leader.Exit()
	s.w.Pass(time.Second)
	stopped := s.disk
	stopped.Phase = phaseStop
	c, changed, err := Observe(context.Background(), s.w.Host(), s.target, stopped)
	if err != nil || !changed || c.Phase != phaseStop || len(c.Members) != 4 {
		t.Errorf("of a stop: %v, %v, %+v", err, changed, c)
	}
	s.observe()
	if len(s.disk.Members) != 3 {
		t.Errorf("the leader of a session with a living member stays, the other goes: %+v", s.disk.Members)
	}
	if _, changed, _ := Observe(context.Background(), s.w.Host(), s.target, s.disk); changed {
		t.Error("nothing has changed")
	}
}

// TestWatch: a capture that goes on from look to look says what one does that begins
// anew each time, whatever has happened in between.
func TestWatch(t *testing.T) {
	for _, o := range []sim.Options{{}, {NoPidfs: true}, {NoPidfd: true}, {NoChildren: true}, {NoSubreaper: true}, {UID: 1000}} {
		for seed := range uint64(60) {
			s := newStage(t, []Kind{Shell, Server, Job}[seed%3], o)
			src := rand.New(rand.NewPCG(seed, 1))
			if seed%2 == 0 {
				s.makeCgroup()
			}
			watch, prev := NewWatch(s.w.Host()), s.disk
			for step := range 30 {
				s.happen(src)
				if len(prev.Members) > 0 && src.IntN(8) == 0 { // somebody else writes
					prev.Members, s.disk.Members = slices.Clone(prev.Members), slices.Clone(s.disk.Members)
					prev.Members[0].Note, s.disk.Members[0].Note = fmt.Sprint(step), fmt.Sprint(step)
				}
				went, changed, err := watch.Look(context.Background(), s.target, prev)
				anew, changedAnew, errAnew := Observe(context.Background(), s.w.Host(), s.target, s.disk)
				if a, b := told(went, err), told(anew, errAnew); a != b || changed != changedAnew {
					t.Fatalf("%+v, seed %d, step %d: %v\n%s\nbut anew: %v\n%s\n%s", o, seed, step, changed, a, changedAnew, b, strings.Join(s.w.Trace(), "\n"))
				}
				prev, s.disk = went, anew
			}
			watch.Close()
			if n := s.w.OpenPins(); n != 0 {
				t.Fatalf("%d pins are left open", n)
			}
		}
	}
}

// TestWatchBeginsAnew: what could not be verified is tried again, and what is over
// is forgotten.
func TestWatchBeginsAnew(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	h := &blindOnce{Host: s.w.Host(), pid: s.keeper.PID()}
	watch := NewWatch(h)
	defer watch.Close()
	c, _, err := watch.Look(context.Background(), s.target, s.disk)
	if err == nil {
		t.Error("the keeper could not be verified, and nobody says so")
	}
	corpse := s.cmd.Fork(sim.Proc{NeverReap: true}).Fork(worker("corpse"))
	corpse.Exit()
	c, _, err = watch.Look(context.Background(), s.target, c)
	if err != nil || len(c.Members) != 2 || len(watch.tr.corpses) != 1 {
		t.Fatalf("%v, %+v, %v", err, c.Members, watch.tr.corpses)
	}
	s.cmd.Children()[0].Exit()
	s.w.Pass(time.Second)
	if _, _, err = watch.Look(context.Background(), s.target, c); err != nil || len(watch.tr.corpses) != 0 {
		t.Errorf("%v, %v", err, watch.tr.corpses)
	}
}

// blindOnce cannot verify one process the first time.
type blindOnce struct {
	identity.Host
	pid int
}

func (h *blindOnce) Verify(ref identity.Ref) (identity.Handle, identity.Finding) {
	if ref.PID == h.pid {
		h.pid = 0
		return nil, identity.Finding{Verdict: identity.Unverifiable, Reason: "no descriptors"}
	}
	return h.Host.Verify(ref)
}

// makeCgroup makes the task's cgroup and moves the command into it.
func (s *stage) makeCgroup() {
	was := s.w.Caller()
	s.w.CallFrom(s.keeper)
	defer s.w.CallFrom(was)
	all := s.w.Host().Cgroups()
	at, err := all.Place("hob-m-t")
	if err != nil {
		s.t.Fatal(err)
	}
	g, err := all.Make(at)
	if err != nil {
		s.t.Fatal(err)
	}
	defer g.Close()
	s.disk.Cgroup = new(g.Ref())
	s.group = s.w.CgroupAt(g.Ref().Path)
	s.w.Move(s.cmd, s.group)
}

// told is what a look has said, but for its times.
func told(c Capture, err error) string {
	var b strings.Builder
	fmt.Fprintln(&b, c.Phase, c.Notes, err)
	for _, g := range c.Guests {
		fmt.Fprintln(&b, "guest", g.PID, g.Start)
	}
	for _, m := range c.Members {
		m.SeenAt, m.EndedAt, m.Ref.RecordedAt = time.Time{}, nil, time.Time{}
		pidfs := uint64(0)
		if m.Ref.PIDFS != nil {
			pidfs, m.Ref.PIDFS = *m.Ref.PIDFS, nil
		}
		m.Ref.UID = nil
		fmt.Fprintf(&b, "%d %+v\n", pidfs, m)
	}
	return b.String()
}

// happen lets one thing happen to the tree.
func (s *stage) happen(src *rand.Rand) {
	s.w.Pass(time.Duration(src.IntN(300)) * time.Millisecond)
	all := []*sim.Process{s.cmd}
	for i := 0; i < len(all); i++ {
		all = append(all, all[i].Children()...)
	}
	all = append(all, s.keeper.Children()...)
	p := all[src.IntN(len(all))]
	if !p.Alive() {
		return
	}
	switch src.IntN(12) {
	case 11:
		p.Setuid(33)
	case 10:
		s.target.Stop.Spare = []string{fmt.Sprint("w", src.IntN(3))}
	case 9:
		if s.group != nil {
			who := []*sim.Process{s.w.Caller(), s.tmux, p, s.w.Init().Fork(sim.Proc{Stranger: true})}[src.IntN(4)]
			s.w.Move(who, []*sim.Cgroup{s.group, s.group, s.w.RootCgroup()}[src.IntN(3)])
		}
	case 0, 1, 2:
		p.Fork(worker(fmt.Sprint("w", src.IntN(3))))
	case 3:
		p.Fork(sim.Proc{Comm: "d", Args: []string{"d"}, Setsid: true, Unreadable: src.IntN(4) == 0})
	case 4:
		p.Exit()
	case 5:
		p.Exec("other", "other", "x")
	case 6:
		if mid := p.Fork(worker("mid")); mid != nil {
			mid.Fork(sim.Proc{Comm: "daemon", Setsid: true, Env: []string{"TMUX=/tmp/x,77,0"}})
			mid.Exit()
		}
	case 7:
		if src.IntN(5) == 0 {
			p.Exec("tmux: server", "tmux")
		}
	case 8:
		p.Setsid()
	}
}

// TestOrphansOfSomebodysTmux: the keeper adopts them like any other.
func TestOrphansOfSomebodysTmux(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	server := s.w.Tmux(s.cmd, sim.Proc{Spared: true})
	pane := server.Fork(sim.Proc{Comm: "bash", Args: []string{"bash", "-i"}, Setsid: true, Env: []string{fmt.Sprintf("TMUX=/tmp/x,%d,0", server.PID())}})
	daemon := pane.Fork(sim.Proc{Comm: "daemon", Args: []string{"daemon", "x"}, Setsid: true})
	kid := daemon.Fork(worker("kid"))
	agent := pane.Fork(sim.Proc{Comm: "agent", Args: []string{"agent"}, Setsid: true})
	agent.Setuid(33)
	pane.Exit()
	s.w.CallFrom(s.w.Init().Fork(sim.Proc{Comm: "hob", Args: []string{"hob", "down"}, User: 1000, Stranger: true}))
	for _, p := range []*sim.Process{s.cmd, server, daemon, kid} {
		p.Setuid(1000)
	}
	s.keeper.Setuid(1000)
	r := s.stop()
	for _, p := range []*sim.Process{server, daemon, kid, agent} {
		if m := s.member(r, p); m.Fate != Survived || !p.Alive() || !strings.Contains(m.Note, "tmux server") {
			t.Errorf("%+v", m)
		}
	}
	if s.cmd.Alive() || r.Verdict != Survivors {
		t.Errorf("%s", r.Verdict)
	}
}

// TestNothingIsSignalledBeforeTheFirstSave, also where nobody could be verified
// while the capture was taken.
func TestNothingIsSignalledBeforeTheFirstSave(t *testing.T) {
	s := newStage(t, Server, sim.Options{NoPidfd: true})
	s.observe()
	s.disk.Phase = phaseStop
	signals := -1
	s.onSave = func() {
		if signals < 0 {
			signals = len(s.w.Ledger().Deliveries)
		}
	}
	s.w.Kill(s.keeper, syscall.SIGKILL)
	s.w.Blind(true)
	s.w.At(2*time.Millisecond, func() { s.w.Blind(false) })
	r, err := Sweep(context.Background(), s.w.Host(), s.target, s.disk, s, false, Options{})
	if m := s.member(r, s.cmd); err != nil || m.Fate != Killed || !slices.Equal(m.Signals, []string{"KILL"}) {
		t.Fatalf("%v, %+v: it was not met first in the force phase, so nothing was tested", err, m)
	}
	if signals != 0 {
		t.Errorf("%d signals before the first save", signals)
	}
}
