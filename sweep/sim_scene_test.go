//go:build unix

package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"hob/identity"
	"hob/identity/sim"
	"hob/sweep"
)

const (
	simTask   = "llm"
	simMarker = "c0ffee"
	simPort   = 8000
	simStamp  = 1<<30 + 77
	keeperTTY = 1
	innerTTY  = 2 // the pty that the keeper gives to the command
)

var (
	simArgs = []string{"/usr/bin/vllm", "serve", "m", "--port", "8000"}
	simEnv  = []string{"HOB_RUN=r", "HOB_TASK=" + simTask, "HOB_RUN_ID=" + simMarker, "SPT_NOENV=1"}
)

// scene is one random world with a task in it, and what hob has of it on disk.
type scene struct {
	w       *sim.World
	src     sim.Source
	o       sim.Options
	host    identity.Host // what hob gets to use: the world's, or a faulty one of a test
	keeper  *sim.Process
	command *sim.Process
	target  sweep.Target

	disk      sweep.Capture
	watch     *sweep.Watch    // the keeper's, while it goes on
	rolling   sweep.Capture   // what that has seen
	saved     map[uint64]bool // by true identity: whoever was on disk
	stopped   [][]uint64      // what each capture of a stop held
	full      bool            // the disk has refused a capture
	echild    bool            // the keeper has said so, on disk
	forced    bool            // the keeper is gone, and something of the tree may have outlived it
	forgetful bool            // a planted fault: the first capture of an invocation does not reach the disk
	barred    bool            // nothing can be verified: nobody may be signalled
	hasty     bool            // whoever calls may lose patience
	opaque    bool            // a row of the tree cannot be read
	left      bool            // the keeper has ended by itself, and left alone who lived

	icy       bool        // something always happens while it is frozen
	group     *sim.Cgroup // the task's, nil where it has none
	intruded  bool        // somebody was moved into it
	emigrated bool        // somebody has left it

	report sweep.Report
	err    error
	ended  time.Time
	turns  []turn
	panes  int // how often the pane was closed
}

// turn is one invocation of hob.
type turn struct {
	what    string
	cut     bool
	pins    int // left open at its end
	took    time.Duration
	endless bool
	harmful bool // it signalled and should not have
	idle    bool // it has not thawed at once what an earlier one had left frozen
}

// newScene sets a world up.
func newScene(src sim.Source) *scene { return sceneOn(src, machine(src)) }

func sceneOn(src sim.Source, o sim.Options) *scene {
	s := &scene{src: src, o: o, saved: map[uint64]bool{}}
	s.o.Chaos.Child, s.o.Chaos.Outsider, s.o.Chaos.Freezing = s.chanceChild, s.outsider, s.freezing
	s.w = sim.New(src, s.o)
	s.host = s.w.Host()
	s.populate()
	switch src.Intn(30) {
	case 29:
		s.w.Dark(true)
		s.opaque, s.barred = true, true
	case 28:
		s.w.Enter("4026532000", "") // elsewhere than on Linux there are none
		s.opaque, s.barred = true, s.o.OS == ""
	case 27:
		s.w.Enter("", "4026532001")
		s.opaque = true
	}
	return s
}

// machine chooses what kind of machine it is.
func machine(src sim.Source) sim.Options {
	o := sim.Options{PIDs: sim.Pick(src, 64, 40, 90), InitReaps: sim.Pick(src, 0, time.Millisecond, 20*time.Millisecond)}
	switch src.Intn(12) {
	case 11:
		o.OS = "darwin"
	case 10:
		o.NoSubreaper = true
	case 9:
		o.NoPidfd = true
	case 8:
		o.NoPidfs, o.SameTick = true, false
	case 7:
		o.NoChildren = true
	case 6:
		o.HidePID, o.UID = true, 1000
	case 5:
		o.UID = 1000
	}
	switch src.Intn(8) {
	case 7:
		o.NoCgroups = true
	case 6:
		o.CgroupDenied = true
	case 5:
		o.NoFreezer = true
	}
	switch src.Intn(12) {
	case 11:
		o.NoProcfs = true
	case 10:
		o.MaxPins = 12
	case 9:
		o.Chaos.LookFails = 10
	case 8:
		o.Chaos.RowFails = 5
	}
	c := &o.Chaos
	c.Density, c.Budget, c.Forks = sim.Pick(src, 0, 2, 8, 25), sim.Pick(src, 30, 100, 300), sim.Pick(src, 5, 20, 60)
	c.Reuse = sim.Pick(src, 0, 50, 95)
	c.Stranger, c.StrangerEnds, c.Fork, c.Exit, c.Exec = 4, 4, 4, sim.Pick(src, 1, 4), 1
	c.Swap = sim.Pick(src, 0, 2, 6)
	c.Setsid, c.Thread, c.HeadOff, c.Stop, c.Stick = 1, 1, 1, 1, sim.Pick(src, 0, 1)
	return o
}

// clear reports whether the caller may see everything, always.
func (s *scene) clear() bool {
	o := s.o
	return !s.opaque && !o.HidePID && o.UID == 0 && !o.NoProcfs && o.MaxPins == 0 && o.Chaos.LookFails+o.Chaos.RowFails == 0
}

// populate starts tmux, the keeper, the task and its neighbours.
func (s *scene) populate() {
	w, me := s.w, s.o.UID
	tmux := w.Tmux(w.Init(), sim.Proc{User: me})
	other := w.Keeper(tmux, 9, sim.Proc{Tree: "other", Args: keeperArgs("other")})
	other.Fork(sim.Proc{Args: []string{"/usr/bin/other"}, Env: []string{"HOB_RUN_ID=" + simMarker, "HOB_TASK=other"}})
	for range s.src.Intn(3) {
		s.stranger()
	}
	w.Pass(20 * time.Millisecond) // whoever is moved into the task's cgroup is older than the command
	s.keeper = w.Keeper(tmux, keeperTTY, sim.Proc{Tree: simTask, Args: keeperArgs(simTask), EndsEmpty: true, Stamp: simStamp,
		Reap: sim.Pick(s.src, 0, time.Millisecond, 10*time.Millisecond)})
	kind := sim.Pick(s.src, sweep.Server, sweep.Job, sweep.Shell)
	s.command = s.keeper.Fork(sim.Proc{Setsid: true, TTY: innerTTY, Args: simArgs, Env: simEnv, Listen: []int{simPort}, Do: s.temper(3), Cgroup: s.makeCgroup()})
	keeper, command := s.keeper.Ref(), s.command.Ref()
	s.target = sweep.Target{
		Run: "r", Task: simTask, Kind: kind, Marker: simMarker, Args: simArgs, Ports: []int{simPort},
		Keeper: &keeper, Command: &command, Server: new(tmux.Ref()), Spared: []identity.Ref{tmux.Ref()},
		Stop: sweep.StopPolicy{Signal: syscall.SIGTERM, Grace: sim.Pick(s.src, 2*time.Second, 300*time.Millisecond, 0),
			TermGrace: sim.Pick(s.src, time.Second, 100*time.Millisecond, 0), Detached: "kill"},
	}
	if s.o.OS == "" && s.src.Intn(15) < 14 { // else its keeper had none
		s.target.Stamp = simStamp
	}
	if kind == sweep.Shell {
		s.target.Stop.Detached = "report"
	}
	for range s.src.Intn(7) {
		s.child(s.anyOfTree())
	}
	for range s.src.Intn(4) {
		s.stranger()
	}
}

func (s *scene) stranger() *sim.Process {
	d := s.outsider(s.w, s.src)
	d.Stranger = true
	return s.w.Spawn(s.w.Init(), d)
}

func keeperArgs(task string) []string {
	return []string{"/usr/bin/hob", "keeper", "/home/x/runs/r/tasks/" + task + "/spec.json"}
}

// anyOfTree is a living process of the task, never the keeper.
func (s *scene) anyOfTree() *sim.Process {
	var from []*sim.Process
	for _, p := range s.w.Processes() {
		if p.Alive() && p.Tree() == simTask && !p.Spared() && p != s.keeper {
			from = append(from, p)
		}
	}
	if len(from) == 0 {
		return nil
	}
	return from[s.src.Intn(len(from))]
}

// child starts something below p, of any shape that the field has shown.
func (s *scene) child(p *sim.Process) {
	if p == nil {
		return
	}
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	switch s.src.Intn(12) {
	case 11:
		s.ownHob(p)
	case 10:
		s.otherKeeper(p)
	case 9:
		s.nestedTmux(p)
	case 8:
		s.w.Spawn(p, sim.Chain(2+s.src.Intn(8), ms(1+s.src.Intn(20)), s.shape()))
	case 7:
		p.Fork(sim.Proc{Do: []sim.Behaviour{sim.Daemon(ms(s.src.Intn(3)), s.shape())}})
	case 6:
		p.Fork(sim.Proc{Do: []sim.Behaviour{sim.Respawn(1+s.src.Intn(20), ms(s.src.Intn(5)), s.shape())}})
	case 5:
		p.Fork(sim.Proc{Do: []sim.Behaviour{sim.Fan(1+s.src.Intn(6), ms(s.src.Intn(3)), s.shape())}})
	default:
		p.Fork(s.shape())
	}
}

// ownHob is a hob that works below the task and is on the list of those that are
// never signalled.
func (s *scene) ownHob(p *sim.Process) {
	hob := p.Fork(sim.Proc{Args: []string{"/usr/bin/hob", "attach"}, Spared: true, Ignore: []syscall.Signal{syscall.SIGHUP}})
	if hob != nil {
		s.target.Spared = append(s.target.Spared, hob.Ref())
	}
}

// otherKeeper is the keeper of another hob, started in the task.
func (s *scene) otherKeeper(p *sim.Process) {
	keeper := s.w.Keeper(p, 30+s.src.Intn(3), sim.Proc{Args: keeperArgs("web"), Spared: true})
	if keeper != nil {
		keeper.Fork(sim.Proc{Args: []string{"/usr/bin/web"}, Setsid: true})
	}
}

// nestedTmux is a tmux server that somebody started in the task, with work in it.
func (s *scene) nestedTmux(p *sim.Process) {
	server := s.w.Tmux(p, sim.Proc{Spared: true})
	if server == nil {
		return
	}
	inside := append(slices.Clone(simEnv), fmt.Sprintf("TMUX=/tmp/x/default,%d,0", server.PID()))
	pane := server.Fork(sim.Proc{Setsid: true, TTY: 20 + s.src.Intn(3), Args: []string{"-bash"}, Env: inside})
	if pane != nil && s.src.Intn(2) == 1 {
		pane.Fork(sim.Proc{Do: []sim.Behaviour{sim.Daemon(time.Millisecond, sim.Proc{Args: []string{"/usr/bin/work"}})}})
	}
}

// chanceChild is what a fork by chance becomes.
func (s *scene) chanceChild(*sim.World, sim.Source) sim.Proc { return s.shape() }

// shape is one process of a task.
func (s *scene) shape() sim.Proc {
	d := sim.Proc{Do: s.temper(1)}
	switch s.src.Intn(12) {
	case 11:
		d.Unreadable, s.opaque = true, true
	case 10:
		d.NeverReap = true
		d.Do = append(d.Do, sim.Fan(1, 0, sim.Proc{Do: []sim.Behaviour{sim.ExitAfter(time.Millisecond)}}))
	case 9:
		d.Stuck = s.src.Intn(3) == 2
	case 8:
		d.User = 1234
	case 7:
		d.Args, d.Env = []string{"retitled: worker"}, []string{}
	case 6:
		d.Setsid, d.Env = true, []string{"CLEARED=1"}
	case 5:
		d.Setsid, d.Ignore = true, []syscall.Signal{syscall.SIGHUP}
	case 4:
		d.Threads = 1 + s.src.Intn(2)
	case 3:
		d.Setpgid, d.Args = true, []string{"/usr/bin/python3", "worker.py"}
	case 2:
		d.Ignore = []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM}
	case 1:
		d.Setsid = true
	}
	return d
}

// temper is how a process takes TERM. deep bounds what it may fork then.
func (s *scene) temper(deep int) []sim.Behaviour {
	const term = syscall.SIGTERM
	n := 4
	if deep > 0 {
		n = 6
	}
	switch s.src.Intn(n) {
	case 5:
		return []sim.Behaviour{sim.LeaveOn(term, sim.Proc{Setsid: s.src.Intn(2) == 1, Do: s.temper(0)})}
	case 4:
		return []sim.Behaviour{sim.ForkOn(term, sim.Proc{Do: s.temper(0)})}
	case 3:
		return []sim.Behaviour{sim.Swallow(term, syscall.SIGHUP)}
	case 2:
		return []sim.Behaviour{sim.ExitOn(term, time.Duration(s.src.Intn(60))*10*time.Millisecond)}
	}
	return nil
}

// outsider is a process that is none of hob's business, and often looks as if it were.
func (s *scene) outsider(*sim.World, sim.Source) sim.Proc {
	d := sim.Proc{Args: []string{"/usr/bin/stranger"}, Setsid: s.src.Intn(2) == 1, User: sim.Pick(s.src, s.o.UID, 0, 1000, 4321)}
	switch s.src.Intn(6) {
	case 5:
		d.Do = []sim.Behaviour{sim.Fan(2, 0, sim.Proc{})}
	case 4:
		d.Threads = 2
	case 3:
		d.Listen = []int{simPort}
	case 2:
		d.Env = simEnv
	case 1:
		d.Args = simArgs
	}
	return d
}

// Effects.

var errDisk = errors.New("no space left on device")

func (s *scene) SaveCapture(c sweep.Capture) error {
	if s.forgetful {
		return nil
	}
	s.w.Point("save")
	refs := make([]identity.Ref, 0, len(c.Members))
	for _, m := range c.Members {
		refs = append(refs, m.Ref)
	}
	s.w.Saved(refs)
	if s.o.Chaos.LookFails > 0 && s.src.Intn(20) == 19 {
		s.full = true
		return errDisk
	}
	s.keep(c)
	s.stopped = append(s.stopped, s.w.Ledger().Saves[len(s.w.Ledger().Saves)-1].Serials)
	s.w.Point("saved")
	return nil
}

// keep puts a capture on the simulated disk.
func (s *scene) keep(c sweep.Capture) {
	c.Members = slices.Clone(c.Members)
	for i := range c.Members {
		c.Members[i].Signals = slices.Clone(c.Members[i].Signals)
		if p := s.w.Truth(c.Members[i].Ref); p != nil {
			s.saved[p.Serial()] = true
		}
	}
	s.disk = c
}

func (s *scene) ClosePane(context.Context) error {
	s.w.Point("close")
	s.panes++
	s.w.Hangup(keeperTTY)
	return nil
}

func (s *scene) KeeperDone() bool {
	s.w.Point("keeper.json")
	s.echild = s.echild || s.keeper.Empty()
	return s.echild
}

// KeeperLeft: see stop.
func (s *scene) KeeperLeft() bool { return s.left }

func (s *scene) Note(format string, args ...any) { s.w.Note("hob: "+format, args...) }
