package sweep

import (
	"path"
	"slices"

	"hob/identity"
)

// Kept names the living keeper of another task that a look-alike is below: it is that
// task's, whatever the records of it say or do not say yet.
type Kept struct {
	PID  int    `json:"pid"` // of the keeper
	Home string `json:"home"`
	Run  string `json:"run"`
	Task string `json:"task"`
}

// Down is the command line that ends it.
func (k Kept) Down() string {
	return CommandLine([]string{"hob", "--home", k.Home, "down", k.Run + "/" + k.Task})
}

// keepers finds who keeps a process: by the chain of its parents, which for all that a
// living keeper has started leads to it where there are subreapers (PR_SET_CHILD_SUBREAPER,
// prctl(2)). Recognition only spares, so it may believe what a process says of itself.
type keepers map[int]identity.Process

func keepersIn(table *identity.Table) keepers {
	rows := keepers{}
	for _, p := range table.Procs {
		rows[p.PID] = p
	}
	return rows
}

// of is the nearest keeper above a process but for own, nil when there is none. Where a
// parent cannot be read, told is false.
func (k keepers) of(p identity.Process, own int) (kept *Kept, told bool) {
	for range deepestChain {
		if p.PPID <= 1 || p.PPID == own {
			return nil, true
		}
		parent, ok := k[p.PPID]
		if !ok || parent.Missing&identity.WantArgs != 0 {
			return nil, false
		}
		if isKeeper(parent.Args) && !isTmuxServer(parent) {
			kept := keptBy(parent)
			return &kept, true
		}
		p = parent
	}
	return nil, false
}

// deepestChain is how long a chain of parents may be: a table that is read row by row
// may show a circle.
const deepestChain = 1000

// keptBy takes a keeper's command line apart (`hob keeper HOME/runs/RUN/tasks/TASK/spec.json`).
func keptBy(keeper identity.Process) Kept {
	spec := keeper.Args[slices.Index(keeper.Args, "keeper")+1]
	task := path.Dir(spec)
	run := path.Dir(path.Dir(task))
	return Kept{PID: keeper.PID, Home: path.Dir(path.Dir(run)), Run: path.Base(run), Task: path.Base(task)}
}
