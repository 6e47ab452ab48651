package tasks

import (
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"hob/identity"
	"hob/sweep"
)

// Status is one task as `hob ps` shows it. Its JSON is a contract; what is not
// known is null.
type Status struct {
	Run         string          `json:"run"`
	Task        string          `json:"task"`
	Kind        *sweep.Kind     `json:"kind"`
	Engine      *string         `json:"engine"`
	State       State           `json:"state"`
	PID         *int            `json:"pid"` // the command's, while it lives
	Start       *identity.Token `json:"start"`
	Port        *int            `json:"port"`
	URL         *string         `json:"url"`
	ReadyAt     *time.Time      `json:"ready_at"`
	StartedAt   *time.Time      `json:"started_at"`
	ExitCode    *int            `json:"exit_code"`
	Signal      *string         `json:"signal"`
	Restarts    *int            `json:"restarts"`
	MemoryBytes *int64          `json:"memory_bytes"`
	MemoryAt    *time.Time      `json:"memory_at"` // when its keeper read that
	GPUBytes    *int64          `json:"gpu_bytes"`
	GPUAt       *time.Time      `json:"gpu_at"`   // when a keeper read that
	GPUNote     *string         `json:"gpu_note"` // why it is not known
	Pane        *string         `json:"pane"`
	Log         string          `json:"log"`

	Note    string           `json:"-"` // why it is in this state, for people
	Keeper  identity.Finding `json:"-"` // what its keeper turned out to be
	KeptBy  int              `json:"-"` // the keeper's pid, as recorded; 0: none
	Command identity.Finding `json:"-"` // and its command
	Archive string           `json:"-"` // name of the folder in archive/, for a run that has lost its name
	Err     error            `json:"-"` // a record that cannot be trusted
}

// List looks at every task of the selection. A run whose record cannot be
// trusted is among them, with its error.
func (m *Manager) List(sel []Selection) ([]Status, error) {
	var errs []error
	var dirs []*TaskDir
	for _, s := range sel {
		errs = append(errs, s.Err)
		for _, task := range s.Tasks {
			dirs = append(dirs, s.Run.Task(task))
		}
	}
	list, err := m.lookAtAll(dirs)
	return list, errors.Join(append(errs, err)...)
}

// lookAtAll looks at tasks side by side, on as many processors as there are.
func (m *Manager) lookAtAll(dirs []*TaskDir) ([]Status, error) {
	m = m.sharing() // after a reboot each may look for its keeper
	list, errs := make([]Status, len(dirs)), make([]error, len(dirs))
	sideBySide(len(dirs), func(i int) {
		list[i] = m.status(dirs[i])
		errs[i] = list[i].Err
	})
	return list, errors.Join(errs...)
}

// sideBySide does n things, as many at a time as there are processors.
func sideBySide(n int, do func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}

// looks looks at tasks of a run side by side.
func (m *Manager) looks(r *RunDir, names []string) []Seen {
	all := make([]Seen, len(names))
	sideBySide(len(names), func(i int) { all[i] = m.look(r.Task(names[i])) })
	return all
}

// Archive looks at the tasks of all archived runs, the oldest first.
func (m *Manager) Archive() ([]Status, error) {
	archived, err := m.Store.Archived()
	list, errs := []Status{}, []error{err}
	for _, r := range archived {
		names, err := m.taskNames(r)
		errs = append(errs, err)
		for _, name := range names {
			st := m.status(r.Task(name))
			st.Archive = filepath.Base(r.Path)
			list, errs = append(list, st), append(errs, st.Err)
		}
	}
	return list, errors.Join(errs...)
}

func (m *Manager) status(t *TaskDir) Status {
	seen := m.look(t)
	d := Derive(seen)
	st := Status{Run: t.Run, Task: t.Name, State: d.State, Note: d.Note, Err: errors.Join(seen.Trouble, m.amissAtAGlance(t, seen)), Log: t.LogPath(), Keeper: seen.KeeperV, Command: seen.Command}
	if seen.Task != nil {
		st.fromTask(*seen.Task)
	}
	if a := seen.adopted(); a != nil {
		st.fromAdoption(*a, seen.Command.Verdict == identity.Owned)
	}
	if seen.Keeper != nil {
		st.fromKeeper(*seen.Keeper, d.State, seen.Command.Verdict == identity.Owned)
	}
	if e := seen.Exit; e != nil && seen.Command.Verdict != identity.Owned {
		st.ExitCode, st.Signal = e.Code, orNil(e.Signal)
	}
	return st
}

func (st *Status) fromTask(t Task) {
	st.Kind = orNil(t.Kind)
	st.Engine, st.Port, st.URL = orNil(t.Engine), t.Port, orNil(t.URL)
	st.StartedAt = t.StartedAt
	if t.Pane != nil {
		st.Pane = orNil(t.Pane.Pane)
	}
}

// fromAdoption takes what is known of a task that hob did not start: nobody
// measures it.
func (st *Status) fromAdoption(a Adoption, alive bool) {
	st.Pane = orNil(a.Pane.Pane)
	if alive {
		st.PID, st.Start = &a.Command.PID, &a.Command.Start
	}
	if st.Note == "" {
		st.Note = "adopted from pane " + a.Pane.Pane + " of " + a.Tmux.Socket
	}
}

// fromKeeper takes what the keeper measured; of a command that has ended only
// what stays true afterwards.
func (st *Status) fromKeeper(k Keeper, state State, alive bool) {
	st.Restarts, st.KeptBy = &k.Restarts, k.Keeper.PID
	if st.Pane == nil {
		st.Pane = orNil(k.Pane)
	}
	if st.StartedAt == nil {
		st.StartedAt = k.StartedAt
	}
	if !alive {
		return
	}
	st.PID, st.Start = &k.Command.PID, &k.Command.Start
	st.MemoryBytes, st.MemoryAt = k.MemoryBytes, k.MeasuredAt
	st.GPUBytes, st.GPUAt, st.GPUNote = k.GPUBytes, k.GPUAt, orNil(k.GPUNote)
	if state == Ready {
		st.ReadyAt = k.ReadyAt
	}
}

// orNil is null for a text that is not there.
func orNil[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}
