// The simulated kernel is a Unix; package syscall lacks its signals on Windows.

//go:build unix

// Package sim is a simulated kernel behind identity.Host, on which hob's real
// capture, stop and sweep code runs in tests.
//
// A [World] is a process table with the rules that matter when processes are
// captured and killed: numbers that are reused as soon as nobody holds them (as
// pid, thread, group or session), fork, exec, exit, zombies and slow reaping,
// reparenting to the nearest subreaper or to init, controlling terminals and
// hangups, stopped and unkillable processes, permissions, rows that are hidden
// or cannot be read, namespaces and boots, with and without pidfd, pidfs,
// /proc/PID/task/*/children and subreapers.
//
// Time is virtual. Every call of the Host is a point at which the world may move
// on: due timers run, and a [Source] of chance decides whether something
// unforeseen happens ([Chaos]): a fork, an exit, a number that is taken by a
// stranger. So the races between look, pin and signal really happen, and a run
// is replayed exactly by giving it the same source. Everything runs in the
// caller's goroutine.
//
// The world knows the truth: each process has a serial that is never reused, and
// the [Ledger] holds who really received each signal. Tests assert on that, not
// on numbers.
package sim

import (
	"sync"
	"time"

	"hob/identity"
)

// Options say what kind of machine a World is. The zero value is a quiet Linux
// with everything a new kernel has, seen by root.
type Options struct {
	OS           string        // "" is linux
	PIDs         int           // how many numbers there are; few mean frequent reuse (default 64)
	Cost         time.Duration // what one Host call takes (default 50µs)
	NoPidfd      bool          // no pin: macOS, BSD, Linux before 5.3
	NoPidfs      bool          // a pidfd's inode says nothing: Linux before 6.9
	SameTick     bool          // without pidfs: a number may be reused within one tick of the start token
	NoChildren   bool          // kernel without CONFIG_PROC_CHILDREN, or not Linux
	NoSubreaper  bool          // macOS, OpenBSD: orphans go to init
	HidePID      bool          // procfs hides other users' processes from all but root
	NoProcfs     bool          // no view at all
	NoCgroups    bool          // no cgroups of version 2 (so everywhere but on Linux)
	CgroupDenied bool          // the caller may make none
	NoFreezer    bool          // Linux before 5.2
	MaxPins      int           // how many Handles may be open at once, 0: no limit (EMFILE)
	UID          int           // of the caller's hob
	Window       bool          // without a pin: things may happen between the check and the signal
	InitReaps    time.Duration // how long init leaves zombies lying, at most
	Steps        int           // after so many points the caller is taken to loop for ever (default 300,000)
	Chaos        Chaos
}

// World is a simulated machine. Its script methods (Spawn, Kill, …) are not to be
// called while a Host call is under way in another goroutine.
type World struct {
	mu       sync.Mutex
	o        Options
	src      Source
	starting bool // hob itself is started
	booted   time.Time
	boot     int
	now      time.Duration
	timers   timers
	order    uint64 // of timers, so that equal times keep their order

	all    []*Process       // every process not yet reaped, oldest first
	ever   []*Process       // every process that there ever was
	byPID  map[int]*Process // zombies included
	byTID  map[int]*Process // threads other than the leader
	held   []int            // per number: how many hold it as pid, thread, group or session
	past   []int64          // per number: start tick of its last holder
	next   int              // where the search for a free number goes on
	freed  []int            // numbers freed lately, newest last
	serial uint64           // of the newest process, never reused
	inode  uint64           // pidfs inode of the newest process of this boot
	socket uint64           // inode of the newest socket

	groups  *Cgroup // the root
	groupID uint64  // inode of the newest cgroup of this boot

	init    *Process
	caller  *Process
	pidns   string
	timens  string
	dark    bool             // the boot id cannot be read
	blind   bool             // no view at all, for now
	fds     map[int]*Process // the caller's pidfds
	fd      int              // the newest
	open    int              // Handles that the caller has open
	reached *Process         // whom the last successful look by number found
	left    int              // chaos events that may still happen
	forks   int              // chaos forks that may still happen
	busy    bool

	step   int
	cutAt  int
	cutOff bool
	hookAt int
	hook   func()
	turn   int // number of the invocation
	ledger Ledger
	events []event
}

// New makes a world with an init process and a process for the caller's hob.
func New(src Source, o Options) *World {
	w := &World{o: o.withDefaults(), src: src, turn: 1, cutAt: -1}
	w.left, w.forks = w.o.Chaos.Budget, w.o.Chaos.Forks
	w.booted = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	w.startUp()
	return w
}

func (o Options) withDefaults() Options {
	if o.OS == "" {
		o.OS = "linux"
	}
	if o.OS != "linux" {
		o.NoPidfd, o.NoChildren = true, true
		o.NoSubreaper = o.NoSubreaper || o.OS != "freebsd"
	}
	if o.PIDs == 0 {
		o.PIDs = 64
	}
	if o.Steps == 0 {
		o.Steps = 300_000
	}
	if o.Cost == 0 {
		o.Cost = 50 * time.Microsecond
	}
	return o
}

// startUp fills an empty table: init, and the caller's hob below it.
func (w *World) startUp() {
	w.boot++
	w.now = time.Minute
	w.timers = nil
	w.all, w.freed = nil, nil
	w.byPID, w.byTID, w.fds = map[int]*Process{}, map[int]*Process{}, map[int]*Process{}
	w.held, w.past = make([]int, w.top()+1), make([]int64, w.top()+1)
	w.next, w.inode = 1, 100
	w.groupID = 1
	w.groups = &Cgroup{w: w, id: w.groupID}
	w.pidns, w.timens = "4026531836", "4026531834"
	w.starting = true
	w.init = w.create(nil, Proc{Comm: "init", Args: []string{"/sbin/init"}, Subreaper: true, Reap: w.o.InitReaps})
	w.caller = w.newCaller()
}

// Init is pid 1.
func (w *World) Init() *Process { return w.init }

// Caller is the process of the hob that calls the Host.
func (w *World) Caller() *Process { return w.caller }

// CallFrom makes p the process that calls the Host: its user and its pid count.
func (w *World) CallFrom(p *Process) { w.caller = p }

// Now is the time of the simulated host.
func (w *World) Now() time.Time { return w.booted.Add(w.now) }

// NextNumber makes the number the first that is looked at for the next process.
func (w *World) NextNumber(n int) { w.next = n }

// Find is the process that has the number now, zombies included, or nil.
func (w *World) Find(pid int) *Process { return w.byPID[pid] }

// Ever are all processes that there ever were, oldest first.
func (w *World) Ever() []*Process { return append([]*Process(nil), w.ever...) }

// Processes are all that are not reaped yet, oldest first.
func (w *World) Processes() []*Process { return append([]*Process(nil), w.all...) }

// OpenPins is how many Handles have not been closed.
func (w *World) OpenPins() int { return w.open }

// Ledger is what really happened.
func (w *World) Ledger() *Ledger { return &w.ledger }

// Blind takes the view of the host away, or gives it back.
func (w *World) Blind(on bool) { w.blind = on }

// Dark makes the boot id unreadable, or readable again.
func (w *World) Dark(on bool) { w.dark = on }

// Enter moves the caller into other namespaces. "" leaves one as it is.
func (w *World) Enter(pidns, timens string) {
	if pidns != "" {
		w.pidns = pidns
	}
	if timens != "" {
		w.timens = timens
	}
}

// Reboot ends everything and starts the machine again: another boot id, and
// numbers, start ticks and pidfs inodes that begin anew.
func (w *World) Reboot() {
	for _, p := range w.all {
		if p.Alive() {
			p.died = w.Now()
		}
		p.state, p.parent, p.kids = reaped, nil, nil
	}
	w.groups.end()
	w.booted = w.Now()
	w.startUp()
	w.note(evReboot, nil, 0)
}

// Host is the door to this world.
func (w *World) Host() identity.Host { return host{w} }

// Facts describes the host as the caller sees it.
func (w *World) facts() identity.Facts {
	f := identity.Facts{
		OS: w.o.OS, Machine: "5e1f", Host: "sim", Boot: bootID(w.boot),
		PIDNS: w.pidns, TimeNS: w.timens, InitPIDNS: w.pidns == "4026531836", UID: w.caller.uid,
		Pidfd: !w.o.NoPidfd, Pidfs: !w.o.NoPidfd && !w.o.NoPidfs,
		HidePID: w.hides(), Procfs: !w.sightless() && w.o.OS == "linux", Subreaper: !w.o.NoSubreaper,
	}
	if w.o.OS != "linux" {
		f.PIDNS, f.TimeNS, f.InitPIDNS = "", "", true
	}
	if w.dark {
		f.Boot = ""
		f.Incomplete = append(f.Incomplete, "boot id")
	}
	return f
}

func (w *World) sightless() bool { return w.blind || w.o.NoProcfs }

func (w *World) hides() bool { return w.o.HidePID && w.caller.uid != 0 }
