//go:build unix

package sim

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"hob/identity"
)

// Proc describes a process that is to be started. What is left empty is
// inherited from the parent, as fork does it.
type Proc struct {
	Comm    string
	Args    []string
	Env     []string
	Cwd     string
	Cgroup  *Cgroup // started in it; nil: the parent's
	Stamp   uint64  // 0: the parent's
	User    int     // uid; 0: the parent's
	TTY     int     // controlling terminal, which needs Setsid
	Setsid  bool
	Setpgid bool // a process group of its own
	VFork   bool // its parent does nothing before it has run another program, or ended

	Threads    int              // beyond the leader
	Ignore     []syscall.Signal // ignored from the start
	Stuck      bool             // in a device driver (state D): signals stay pending
	Unreadable bool             // its row cannot be read, whoever asks
	Kernel     bool             // a kernel thread
	Listen     []int            // TCP ports

	Subreaper bool
	Reap      time.Duration // how long its dead children lie as zombies, at most
	NeverReap bool          // it never waits for its children
	EndsEmpty bool          // it ends once wait has said ECHILD

	// Tree says whose it and all below it are, for the ledger: the name of a task,
	// or "" for a stranger. Empty means the parent's, and Stranger that it is
	// nobody's.
	Tree     string
	Stranger bool
	Spared   bool // part of the tree that is never to be signalled, and all below it

	Do []Behaviour
}

type state int

const (
	running state = iota
	stopped
	zombie
	reaped
)

// Process is a simulated process. Its serial is its true identity.
type Process struct {
	w          *World
	serial     uint64
	inode      uint64 // pidfs
	pid        int
	boot       int
	start      int64 // ticks
	parent     *Process
	forker     *Process   // who forked it, whoever inherited it since
	kids       []*Process // as the kernel lists them, oldest first
	pgid       int
	sid        int
	tty        int
	tail       int // of a session leader: the group that hears of its end
	state      state
	tids       []int
	headOff    bool // the leading thread has ended, others live
	stuck      bool
	dying      bool // a deadly signal was taken
	pending    []syscall.Signal
	later      []func() // what it will do once it runs again
	uid        int
	comm       string
	args       []string
	env        []string
	cwd        string
	cgroup     *Cgroup
	frozen     bool     // by its cgroup
	vforked    *Process // the child that it waits for
	alien      bool     // of another pid namespace than the caller's
	stamp      uint64
	ignored    uint64
	sockets    []socket
	hidden     bool
	kernel     bool
	reaper     bool
	reaps      time.Duration
	never      bool
	endsEmpty  bool
	chanced    bool // chance brought it in
	born, died time.Time
	had        bool // has had a child
	empty      bool // wait has said ECHILD after it had children
	tree       string
	spared     bool
	do         []Behaviour
}

// PID is the number that the process has, or had.
func (p *Process) PID() int { return p.pid }

// Serial is the true identity: never reused, in any boot.
func (p *Process) Serial() uint64 { return p.serial }

// Tree is the task that it belongs to, or "" for a stranger.
func (p *Process) Tree() string { return p.tree }

// Spared reports whether it is never to be signalled although it is of a tree.
func (p *Process) Spared() bool { return p.spared }

// Alive reports whether any thread of it lives.
func (p *Process) Alive() bool { return p.state == running || p.state == stopped }

// Killable reports whether a KILL by this user (0: root) would end it now.
func (p *Process) Killable(uid int) bool {
	return p.Alive() && !p.stuck && !p.dying && !p.kernel && (uid == 0 || uid == p.uid)
}

// Zombie reports whether it has ended and was not reaped.
func (p *Process) Zombie() bool { return p.state == zombie }

// Parent is the process that would reap it now, or nil.
func (p *Process) Parent() *Process { return p.parent }

// Forker is the process that forked it, whoever has inherited it since.
func (p *Process) Forker() *Process { return p.forker }

// Children are its children, zombies included, oldest first.
func (p *Process) Children() []*Process { return slices.Clone(p.kids) }

// SID is its kernel session.
func (p *Process) SID() int { return p.sid }

// PGID is its process group.
func (p *Process) PGID() int { return p.pgid }

// TTY is its controlling terminal, 0: none.
func (p *Process) TTY() int { return p.tty }

// Args is its command line.
func (p *Process) Args() []string { return slices.Clone(p.args) }

// Environ is its environment.
func (p *Process) Environ() []string { return slices.Clone(p.env) }

// Born is when it was forked.
func (p *Process) Born() time.Time { return p.born }

// Died is when it ended, zero while it lives.
func (p *Process) Died() time.Time {
	return p.died
}

// below counts the living processes below it.
func (p *Process) below() (n int) {
	for _, k := range p.kids {
		if k.Alive() {
			n++
		}
		n += k.below()
	}
	return n
}

// Empty reports whether wait has said ECHILD to it: it had children and has none.
func (p *Process) Empty() bool { return p.empty && len(p.kids) == 0 }

// Ref is the truth about it, as hob would write it down.
func (p *Process) Ref() identity.Ref { return p.w.ref(p) }

func (p *Process) String() string {
	return fmt.Sprintf("#%d(pid %d, %s)", p.serial, p.pid, p.comm)
}

func (w *World) ref(p *Process) identity.Ref {
	f, uid := w.facts(), p.uid
	r := identity.Ref{
		Machine: f.Machine, Host: f.Host, Boot: bootID(p.boot), PIDNS: f.PIDNS, TimeNS: f.TimeNS,
		PID: p.pid, Start: p.token(), UID: &uid, RecordedAt: w.Now(),
	}
	if f.Pidfs {
		r.PIDFS = new(p.inode)
	}
	return r
}

func bootID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

func (p *Process) token() identity.Token {
	if p.w.o.OS == "linux" {
		return identity.Token(fmt.Sprintf("linux:%d", p.start))
	}
	return identity.Token(fmt.Sprintf("%s:%d", p.w.o.OS, p.start*10000))
}

// state letter as procfs shows it.
func (p *Process) letter() identity.State {
	switch {
	case p.state == zombie || p.headOff:
		return 'Z'
	case p.state == stopped:
		return 'T'
	case p.stuck:
		return 'D' // one that is frozen shows what it did: S
	}
	return 'S'
}

func (p *Process) threads() int {
	if p.state == zombie {
		return 1
	}
	return 1 + len(p.tids)
}
