// Package child is for a process that is the parent of a tree, and on Linux its
// subreaper: it starts commands and reaps whatever ends below it.
//
// It stands in for os/exec, whose Wait would race with a wait for any child: of
// two that wait, only one gets the status.
package child

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"

	"hob/identity"
)

// ErrNoChildren means that wait said ECHILD: nothing is left below the caller
// in its pid namespace.
var ErrNoChildren = errors.New("no children")

// Command is what to start, as it is: no shell, no search in PATH.
type Command struct {
	Path  string
	Args  []string // with argv[0]
	Env   []string
	Dir   string
	Files []uintptr // descriptors 0, 1, 2 …; all others are closed
	// Terminal: descriptor 0 becomes the controlling terminal of a new session.
	// Without it the command only leads a new process group.
	Terminal bool
	// NoFile is the soft limit of open files; 0 leaves it.
	NoFile uint64
	// Cgroup is where the command is born (Linux 5.7); nil: where its parent is.
	// Of an error [CgroupRefused] tells whether that may be what was refused.
	Cgroup identity.Cgroup
}

// Exit is how a child ended.
type Exit struct {
	PID    int
	Code   int            // when Signal is 0
	Signal syscall.Signal // 0 when it exited
}

// Reaper owns wait: no other part of the program may wait for a child.
type Reaper struct {
	mu   sync.Mutex
	live atomic.Bool // something was started since wait last said ECHILD
	wake chan struct{}
}

// NewReaper makes a Reaper. Its Run has to be running for children to be reaped.
func NewReaper() *Reaper { return &Reaper{wake: make(chan struct{}, 1)} }

// Start starts a command and calls record while nothing can be reaped, so that
// even a command that has ended already still has its number and its start token.
// pidfd is -1 where there is none; record takes it over. The command runs on
// when record fails.
func (r *Reaper) Start(c Command, record func(pid, pidfd int) error) (pid int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.live.Swap(true)
	pid, pidfd, err := start(c)
	if err != nil {
		r.live.Store(before)
		return 0, err
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return pid, record(pid, pidfd)
}

// Run reaps for ever. It reports the children that ended, in the order in which
// they were reaped, and whether none is left.
func (r *Reaper) Run(report func(ended []Exit, empty bool)) {
	for range r.wake {
		for empty := false; !empty; {
			waitExit()
			var ended []Exit
			ended, empty = r.reap()
			if empty || len(ended) > 0 {
				report(ended, empty)
			}
		}
	}
}

func (r *Reaper) reap() (ended []Exit, empty bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ended, err := reapAll()
	if errors.Is(err, ErrNoChildren) {
		r.live.Store(false)
	}
	return ended, !r.live.Load()
}

// Empty reports whether wait has said ECHILD since the last Start. It does not wait for
// a Start: that takes until the command is executed, which one that is born in a frozen
// cgroup does not get to before the thaw.
func (r *Reaper) Empty() bool { return !r.live.Load() }

// Pin makes a Handle of a child that Start has just started, through its pidfd
// where the host can take one over.
func Pin(h identity.Host, pid, pidfd int) (identity.Handle, error) {
	if pidfd >= 0 {
		pin, err := identity.OpenPidfd(h, pid, pidfd)
		if !errors.Is(err, identity.ErrUnsupported) {
			return pin, err
		}
	}
	closePidfd(pidfd)
	return h.Open(pid)
}
