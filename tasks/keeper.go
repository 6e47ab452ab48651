package tasks

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"hob/identity"
	"hob/identity/child"
	"hob/sweep"
)

// Exit codes of a keeper that starts nothing; else it exits as its command did.
const (
	keeperFailed     = 1
	keeperUsage      = 2
	keeperUnverified = 4
	keeperRefused    = 5
)

// keeper is the first process of a pane and the parent of the task's command.
// One goroutine, loop, owns all of it; others hand it what happened as
// functions through inbox.
type keeper struct {
	h       identity.Host
	run     *RunDir
	dir     *TaskDir
	home    string
	spec    Spec
	self    identity.Ref
	tmux    *identity.Ref // hob's tmux server, nil without one
	reaper  *child.Reaper
	signals *signals
	limits  child.Limits // of commands, beyond what they inherit from us
	nofile  uint64       // the soft limit of open files, which Go has raised in us; 0: as ours
	inbox   chan func()
	term    *terminal
	cgroup  atomic.Pointer[identity.Cgroup] // that all it starts is born in, nil for none

	rec     Keeper        // keeper.json
	written Keeper        // as it was last written
	writeAt time.Time     // when it may be written again; zero: it is as it should be
	capture sweep.Capture // the rolling one
	watch   *sweep.Watch  // that makes it
	behind  bool          // capture.json lacks some of it
	bare    bool          // there is no capture.json yet, of no life
	walk    time.Duration // what the last walk took
	spent   time.Duration // processor time, when it began
	lookAt  time.Time     // when the next is due
	sizeAt  time.Time     // when memory is measured again
	thrift  time.Time     // when what the start took is given back; zero: it has been
	disk    *int64        // bytes that the tree had read from disk; nil when unknown
	said    map[string]int

	task      Task      // task.json as last read; zero when it cannot be read
	taskText  []byte    // what stood in it then
	taskRead  Task      // and meant
	wroteAt   time.Time // when this keeper last wrote task.json
	disowned  bool      // the records belong to another start now: write nothing
	life      life
	fails     int // ends in a row, without a life that was long enough
	lock      lockState
	unlock    Unlock
	want      string // reason of a stop that is asked for, "" for none
	stopping  bool
	stopped   bool          // a stop of our own has run from its first step
	stopFrom  sweep.Step    // where the last one began
	lastStop  sweep.Capture // what it saw
	giveUpAt  time.Time     // when waiting for the lock is over; zero: never
	ready     readyWatch
	gpus      gpuWatch
	afterOnly bool   // it runs the after_stop alone, under the lock of whoever waits for it
	inherited Unlock // of that lock, from one who was killed: kept, so that its file is not closed
	cut       bool   // and was told to end it
	cutHook   func() // which does so
	hooked    bool   // after_stop has been begun
	hooking   bool   // it is under way
	done      bool
}

// life is one start of the command.
type life struct {
	ref      *identity.Ref
	pin      identity.Handle
	began    time.Time
	env      []string // the command's
	pending  pendingStart
	failed   error // why it could not be started
	exit     *Exit // once it has ended
	graceAt  time.Time
	restart  restartPlan
	reported bool  // step 4 and what follows is done
	pids     []int // of the processes that it had, once reported
}

// RunKeeper is `hob keeper SPEC`: the first process of a pane and the parent of
// the task's command. spec is the path of spec.json in its task folder. It
// returns the exit code of the keeper process.
func RunKeeper(h identity.Host, spec, version string) int {
	signals := catchSignals() // first: a HUP now would else end us without a word
	child.KeepToMyself()
	hurry()
	k, err := newKeeper(h, spec, version)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hob:", err)
		if no, ok := errors.AsType[*refusal](err); ok {
			return no.code
		}
		return keeperFailed
	}
	k.signals = signals
	return k.serve()
}

// startBytes is what a keeper may take before it collects garbage at its start.
const startBytes = 24 << 20

// hurry leaves the garbage of the start alone: it is less than a collection costs,
// and as many keepers start at once as a recipe has tasks.
func hurry() {
	runtime.GOMAXPROCS(2)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(startBytes)
}

// economize gives back what the start took, and keeps a process small from then on
// that mostly waits: there is one in every pane.
func economize() {
	debug.SetMemoryLimit(math.MaxInt64)
	debug.SetGCPercent(25)
	debug.FreeOSMemory()
}

// refusal is why a keeper starts nothing.
type refusal struct {
	code int
	err  error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

func refuse(code int, format string, args ...any) error {
	return &refusal{code, fmt.Errorf(format, args...)}
}

// newKeeper reads what is to be started and checks that it may be.
func newKeeper(h identity.Host, path, version string) (*keeper, error) {
	run, dir, err := taskOfSpec(path)
	if err != nil {
		return nil, refuse(keeperUsage, "%w", err)
	}
	spec, err := dir.ReadSpec()
	if err != nil {
		return nil, refuse(keeperUnverified, "%w", err)
	}
	k := unadmitted(h, run, dir, spec)
	if err := k.admit(); err != nil {
		return nil, err
	}
	if err := k.know(); err != nil {
		return nil, k.unstarted(err)
	}
	k.rec = Keeper{Schema: Schema, Nonce: spec.Nonce, Protocol: KeeperProtocol, Version: version, Keeper: k.self, Pane: os.Getenv("TMUX_PANE")}
	k.tmux = paneServer(h, os.Getenv("TMUX"), os.Getppid())
	k.rec.Tmux = k.tmux
	return k, nil
}

// unadmitted is a keeper that has not asked yet whether it may start anything.
func unadmitted(h identity.Host, run *RunDir, dir *TaskDir, spec Spec) *keeper {
	return &keeper{h: h, watch: sweep.NewWatch(h), run: run, dir: dir, home: run.store.Home, spec: spec, said: map[string]int{},
		reaper: child.NewReaper(), inbox: make(chan func(), 16)}
}

// know finds out the keeper's own Ref, and what of the caller's limits it lacks.
func (k *keeper) know() error {
	me, err := k.h.Open(os.Getpid())
	if err != nil {
		return refuse(keeperUnverified, "the keeper cannot look at itself: %w", err)
	}
	defer me.Close()
	k.self = me.Ref()
	k.limits, k.nofile = k.spec.Limits.Beyond(child.OwnLimits())
	return nil
}

// paneServer is the tmux server whose pane this is: our parent, if that is what
// TMUX (socket,pid,session) names. The run's record need not name it yet: the
// first keeper of a run comes up before that is written.
func paneServer(h identity.Host, tmux string, parent int) *identity.Ref {
	f := strings.Split(tmux, ",")
	if len(f) < 3 || f[len(f)-2] != strconv.Itoa(parent) {
		return nil
	}
	pin, err := h.Open(parent)
	if err != nil {
		return nil
	}
	defer pin.Close()
	ref := pin.Ref()
	return &ref
}

// admit checks that this start is wanted, by its owner too.
func (k *keeper) admit() error {
	if err := k.confirm(); err != nil {
		return err
	}
	if old, err := k.dir.ReadKeeper(); err == nil && old.Nonce == k.spec.Nonce {
		return refuse(keeperRefused, "%s/%s has a keeper already, pid %d", k.spec.Run, k.spec.Task, old.Keeper.PID)
	} else if err != nil && !errors.Is(err, ErrNoRecord) {
		return refuse(keeperUnverified, "%w", err)
	}
	if k.spec.Lifetime != Contained {
		return nil
	}
	return k.admitOwner()
}

// confirm checks that the task is to be started, by this keeper. It is done once
// more when the keeper is written down: a stop that began in between has either
// seen the keeper, or is seen by it.
func (k *keeper) confirm() error {
	task, err := k.taskNow()
	if err != nil {
		return refuse(keeperUnverified, "%w", err)
	}
	k.task = task
	k.disowned = task.Nonce != k.spec.Nonce
	if task.State != Starting || task.Nonce == "" || k.disowned {
		return refuse(keeperRefused, "%s/%s is %s and not to be started by this keeper; `hob up` starts it", k.spec.Run, k.spec.Task, task.State)
	}
	return nil
}

func (k *keeper) admitOwner() error {
	if k.spec.Owner == nil {
		return k.unstarted(refuse(keeperRefused, "%s/%s belongs to the hob that starts it, and the spec does not name that", k.spec.Run, k.spec.Task))
	}
	owner, f := k.h.Verify(*k.spec.Owner)
	if owner == nil {
		return k.unstarted(refuse(keeperRefused, "%s/%s belongs to the hob with pid %d, which is %s: %s", k.spec.Run, k.spec.Task, k.spec.Owner.PID, f.Verdict, f.Reason))
	}
	return owner.Close()
}

// unstarted writes down why the command was not started.
func (k *keeper) unstarted(err error) error {
	e := Exit{Nonce: k.spec.Nonce, Error: err.Error(), At: k.h.Now()}
	return errors.Join(err, k.keep(func() error { return k.dir.WriteExit(e) }))
}
