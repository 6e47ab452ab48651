package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"hob/identity"
	"hob/sweep"
	"hob/tasks/probe"
	"hob/tmux"
)

// Manager acts on the records: it starts, stops, lists and sweeps tasks. It
// keeps nothing in memory between calls; what it knows is on disk, so that any
// later hob can go on from where this one was cut.
type Manager struct {
	Store   *Store
	Host    identity.Host
	Self    string // path of the hob program: the keeper of each pane
	Version string
	Verb    string           // whose act it is, for events
	Environ []string         // the caller's
	Tell    func(Progress)   // nil: nobody watches
	Warn    func(string)     // what a person should know, and what stops nothing; nil: nobody listens
	Now     func() time.Time // nil: time.Now; for what is stored, never compared

	kills *killQueue // of those that stop tasks side by side; nil: each kills its own pane
}

// Progress is one thing that a watching person may want to see.
type Progress struct {
	Name  Name
	State State
	Since time.Time // when this start or stop of the task began
	Text  string    // "asking 4121 with TERM"; "" when the state says it all
	URL   string    // where it answers
	Line  string    // the last line of the task's log
	// Loading is how far the task says in its log that it has come; nil when it
	// does not, or has arrived.
	Loading *probe.Progress
	Final   bool // the task has arrived where it was to go
}

// Outcome is what a verb did to one task, or, with Task empty, to a run.
type Outcome struct {
	Name
	State  State
	Did    string // "started", "left alone", "stopped", …
	Port   int
	URL    string
	Report *sweep.Report // of a stop or a sweep
	Plan   *Planned      // of an up that was only tried
	Hook   error         // why after_stop failed, of a task that has been stopped
	Err    error
}

// unsettled says why nothing may be started over the task.
func (o Outcome) unsettled() error {
	switch {
	case o.Err != nil || o.State.Settled():
		return o.Err
	case o.State == Survivors:
		return &Problem{Kind: ErrSurvivors, Msg: "survivors remain"}
	}
	return unverified("", "it is %s", o.State)
}

// self is the Ref of this hob.
func (m *Manager) self() (*identity.Ref, error) {
	h, err := m.Host.Open(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("look at hob itself: %w", err)
	}
	defer h.Close()
	ref := h.Ref()
	return &ref, nil
}

// Selection is what of a run a verb is about.
type Selection struct {
	Run   *RunDir
	Tasks []string
	Whole bool  // the run was named, not its tasks
	Err   error // run.json cannot be trusted
}

func (m *Manager) now() time.Time {
	if m.Now != nil {
		return m.Now()
	}
	return time.Now()
}

func (m *Manager) tell(p Progress) {
	if m.Tell != nil {
		m.Tell(p)
	}
}

// getenv reads the caller's environment.
func (m *Manager) getenv(name string) string {
	for _, kv := range slices.Backward(m.Environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// event appends to the run's events. An event that cannot be written stops
// nothing: it is history, not a record that anything is decided by.
func (m *Manager) event(r *RunDir, task, what string) {
	_ = r.Append(Event{At: m.now(), Verb: m.Verb, Task: task, PID: os.Getpid(), What: what})
}

// Names lists all runs with their tasks. Runs whose folder cannot be read come
// with the error; the others are there.
func (m *Manager) Names() (Names, error) {
	runs, err := m.Store.Runs()
	ns := Names{Runs: runs, Tasks: map[string][]string{}, errs: map[string]error{}}
	errs := []error{err}
	for _, run := range runs {
		ns.Tasks[run], ns.errs[run] = m.taskNames(m.Store.Run(run))
		errs = append(errs, ns.errs[run])
	}
	return ns, errors.Join(errs...)
}

// taskNames are the run's tasks in start order; those that only have a folder
// come last. A torn run.json hides none of them.
func (m *Manager) taskNames(r *RunDir) ([]string, error) {
	run, err := r.recorded()
	if errors.Is(err, ErrNoRecord) {
		err = nil
	}
	folders, err2 := r.Tasks()
	list := slices.Clone(run.Tasks)
	for _, f := range folders {
		if !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list, errors.Join(err, err2)
}

// Select turns the words of the command line into runs and tasks.
func (m *Manager) Select(args []string) ([]Selection, error) {
	ns, readErr := m.Names()
	if readErr != nil && len(ns.Runs) == 0 {
		return nil, readErr
	}
	var sel []Selection
	for _, arg := range args {
		name, err := ns.Resolve(arg)
		if err == nil {
			sel = m.add(sel, name, ns)
			continue
		}
		group, groupErr := m.group(arg, ns)
		if len(group) == 0 {
			return nil, cmp.Or(groupErr, err)
		}
		for _, one := range group {
			sel = m.add(sel, one, ns)
		}
	}
	return sel, nil
}

// All selects every run.
func (m *Manager) All() ([]Selection, error) {
	ns, err := m.Names()
	if err != nil && len(ns.Runs) == 0 {
		return nil, err
	}
	var sel []Selection
	for _, run := range ns.Runs {
		sel = m.add(sel, Name{Run: run}, ns)
	}
	return sel, nil
}

func (m *Manager) add(sel []Selection, name Name, ns Names) []Selection {
	i := slices.IndexFunc(sel, func(s Selection) bool { return s.Run.Name == name.Run })
	if i < 0 {
		sel = append(sel, Selection{Run: m.Store.Run(name.Run), Err: ns.errs[name.Run]})
		i = len(sel) - 1
	}
	s := &sel[i]
	if name.Task == "" {
		s.Whole, s.Tasks = true, slices.Clone(ns.Tasks[name.Run])
	} else if !slices.Contains(s.Tasks, name.Task) {
		s.Tasks = append(s.Tasks, name.Task)
	}
	return sel
}

// Only selects the one run that is not over; with none, nothing is selected.
func (m *Manager) Only() ([]Selection, error) {
	all, err := m.All()
	if err != nil {
		return nil, err
	}
	var live []Selection
	for _, s := range all {
		if !m.over(s) {
			live = append(live, s)
		}
	}
	if len(live) > 1 {
		var names []string
		for _, s := range live {
			names = append(names, s.Run.Name)
		}
		return nil, usage("say which", "%d runs are up: %s", len(live), quoted(names))
	}
	return live, nil
}

// over reports whether every task of the selection has ended and is settled.
func (m *Manager) over(s Selection) bool {
	if _, err := s.Run.Read(); err != nil && !errors.Is(err, ErrNoRecord) {
		return false
	}
	for _, task := range s.Tasks {
		if !Derive(m.look(s.Run.Task(task))).Over() {
			return false
		}
	}
	return true
}

// socket is where the tmux server of this state folder listens: as long as that lives,
// where it was started, and else where this environment says. Another one (cron, sudo,
// a shell without a session) may lack XDG_RUNTIME_DIR, and there is to be one server.
// The socket's name is of the folder: the record in a copy of it names another's.
func (m *Manager) socket() (string, error) {
	path, err := tmux.DefaultSocket(m.Store.Home, m.getenv)
	if err != nil {
		return "", err
	}
	last, err := m.Store.ReadServer() // one that cannot be read is said where a server is started
	if err == nil && last.Socket != path && filepath.Base(last.Socket) == filepath.Base(path) &&
		m.finding(&last.Server).Verdict == identity.Owned {
		return last.Socket, nil
	}
	return path, nil
}

// findTmux looks for the tmux program, and asks it for its version, while other
// things are done; the server of this state folder need not be running.
func (m *Manager) findTmux(ctx context.Context) func() (*tmux.Server, error) {
	find := sync.OnceValues(func() (*tmux.Server, error) {
		socket, err := m.socket()
		if err != nil {
			return nil, err
		}
		return tmux.New(ctx, socket)
	})
	go func() { _, _ = find() }() // what comes of it is told to whoever asks
	return find
}

// findStrays looks for what runs and has lost its records, while other things are done.
func (m *Manager) findStrays(ctx context.Context) func() []string {
	find := sync.OnceValue(func() []string { return m.Strays(ctx, m.Keepers()).notes() })
	go find()
	return find
}

// serverLock is held while a tmux server is started or ended, and while ports
// are given out.
func (m *Manager) serverLock(ctx context.Context) (Unlock, error) {
	return lock(ctx, m.serverLockPath())
}

func (m *Manager) serverLockPath() string { return filepath.Join(m.Store.Home, "server.lock") }
