package tasks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"hob/identity"
	"hob/sweep/gpu"
)

// hold is a process that has some of what a task needs.
type hold struct {
	words string // "pid 4121 (python3 train.py)"
	bytes *int64 // null when it is not known
	task  Name   // of hob's, that it belongs to; zero for none
	lives bool   // that task does
	blind bool   // words say what could not be looked at, and there is no such process
}

type holds []hold

// String lists them, the largest first.
func (hs holds) String() string {
	const most = 5
	var blind []string
	hs = slices.DeleteFunc(slices.Clone(hs), func(h hold) bool {
		if h.blind {
			blind = append(blind, h.words)
		}
		return h.blind
	})
	slices.SortStableFunc(hs, func(a, b hold) int {
		return int(max(-1, min(1, orNone(b.bytes)-orNone(a.bytes))))
	})
	var words []string
	for i, h := range hs {
		if i == most {
			words = append(words, fmt.Sprintf("%d more", len(hs)-most))
			break
		}
		words = append(words, h.String())
	}
	return strings.Join(append(words, blind...), ", ")
}

func (h hold) String() string {
	s := h.words
	switch {
	case h.task.Run == "":
	case h.lives:
		s += " of " + h.task.String()
	default:
		s += ", which outlived " + h.task.String()
	}
	if h.bytes == nil {
		return s + " with an unknown amount"
	}
	return s + " with " + Bytes(*h.bytes)
}

// advice is what of hob's would free it.
func (hs holds) advice(otherwise string) string {
	var tips []string
	add := func(tip string) {
		if !slices.Contains(tips, tip) {
			tips = append(tips, tip)
		}
	}
	for _, h := range hs {
		if h.task.Run != "" && !h.lives {
			add("hob sweep " + h.task.String() + " ends what outlived it")
		}
	}
	for _, h := range hs {
		if h.task.Run != "" && h.lives {
			add("hob down " + h.task.String() + " ends it")
		}
	}
	if len(tips) == 0 {
		return otherwise
	}
	return strings.Join(tips, "; ")
}

// holders says who holds the memory of some GPUs.
func (v gpuView) holders(rooms []*gpuRoom) string {
	if hs := v.holds(rooms); len(hs) > 0 {
		return "; it is held by " + hs.String()
	}
	return ""
}

func (v gpuView) advice(rooms []*gpuRoom, otherwise string) string {
	return v.holds(rooms).advice(otherwise)
}

func (v gpuView) holds(rooms []*gpuRoom) holds {
	if v.who == nil {
		return nil
	}
	var indexes []string
	for _, r := range rooms {
		indexes = append(indexes, fmt.Sprint(r.Index))
	}
	return v.who(indexes)
}

// gpuHolds are the processes with memory on some GPUs, by the driver's word.
func (m *Manager) gpuHolds(ctx context.Context) func(indexes []string) holds {
	var all []gpu.Use
	return func(indexes []string) holds {
		if all == nil {
			all = gpu.Read(ctx, nil).Uses
		}
		var pids []int
		sizes := map[int]*int64{}
		for _, u := range all {
			if !slices.Contains(indexes, u.GPU) {
				continue
			}
			if before, twice := sizes[u.PID]; twice {
				u.Bytes = plus(before, u.Bytes)
			} else {
				pids = append(pids, u.PID)
			}
			sizes[u.PID] = u.Bytes
		}
		return m.holdsOf(pids, sizes)
	}
}

func plus(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	n := *a + *b
	return &n
}

// memoryHolds are the processes with the most resident memory.
func (m *Manager) memoryHolds(ctx context.Context) holds {
	const most = 3
	table, err := m.Host.Snapshot(ctx, 0)
	if err != nil {
		return nil
	}
	rows := slices.DeleteFunc(table.Procs, func(p identity.Process) bool { return p.RSS <= 0 })
	slices.SortFunc(rows, func(a, b identity.Process) int { return int(max(-1, min(1, b.RSS-a.RSS))) })
	var pids []int
	sizes := map[int]*int64{}
	for _, p := range rows[:min(most, len(rows))] {
		pids = append(pids, p.PID)
		sizes[p.PID] = &p.RSS
	}
	return m.holdsOf(pids, sizes)
}

func (m *Manager) holdsOf(pids []int, sizes map[int]*int64) holds {
	if len(pids) == 0 {
		return nil
	}
	owners, blind := m.owners(pids)
	var hs holds
	for _, pid := range pids {
		o := owners[pid]
		hs = append(hs, hold{words: m.describe(pid), bytes: sizes[pid], task: o.task, lives: o.lives})
	}
	if len(blind) > 0 {
		hs = append(hs, hold{blind: true, words: "perhaps some of them of " + strings.Join(blind, ", ") + ", whose records cannot be read"})
	}
	return hs
}

// owner is the task that a process belongs to.
type owner struct {
	task  Name
	lives bool
}

// commandOf is a task's command, by its keeper's word.
func commandOf(t *TaskDir) []identity.Ref {
	if k, err := t.ReadKeeper(); err == nil && k.Command != nil {
		return []identity.Ref{*k.Command}
	}
	return nil
}

// owners finds the tasks, of any run, in whose capture the processes stand: by
// the number first, then verified. blind are those whose captures cannot be read.
func (m *Manager) owners(pids []int) (found map[int]owner, blind []string) {
	found = map[int]owner{}
	all, err := m.All()
	if err != nil {
		blind = append(blind, "other runs")
	}
	for _, s := range all {
		for _, task := range s.Tasks {
			t := s.Run.Task(task)
			c, err := t.ReadCapture()
			if trouble(err) != nil {
				blind = append(blind, Name{s.Run.Name, task}.String())
			}
			refs := commandOf(t) // which the capture does not have before the keeper's first look
			for _, member := range c.Members {
				refs = append(refs, member.Ref)
			}
			for _, ref := range refs {
				if slices.Contains(pids, ref.PID) && !found[ref.PID].lives && m.finding(&ref).Verdict == identity.Owned {
					found[ref.PID] = owner{Name{s.Run.Name, task}, Derive(m.look(t)).State.Lives()}
				}
			}
		}
	}
	return found, blind
}
