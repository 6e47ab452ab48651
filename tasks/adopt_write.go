package tasks

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"hob/identity"
	"hob/sweep"
)

// adoption is one `hob adopt` under way.
type adoption struct {
	*Manager
	o       AdoptOptions
	found   foundPane
	name    Name
	id      string // of the run, once it is made; 128 random bits
	capture sweep.Capture
	port    int
	notes   []string
	blind   []string // tasks whose records cannot be read: it may be theirs
}

// What an adopted server gets when it is asked to end. Nobody wrote a recipe.
const (
	adoptGrace     = 30 * time.Second
	adoptTermGrace = 5 * time.Second
)

// prepare finds out all that is written down. It writes nothing.
func (a *adoption) prepare(ctx context.Context) error {
	root := a.found.roots[0]
	if a.beneath(syscall.Getpid(), root.PID) != elsewhere || root.PID == syscall.Getpid() {
		return usage("type it in another pane", "what runs in pane %s is this hob, or what it was typed in", a.found.pane.ID)
	}
	if err := a.notYet(); err != nil {
		return err
	}
	var err error
	if a.name, err = a.called(); err != nil {
		return err
	}
	if _, _, _, _, err := a.place(); err != nil {
		return err
	}
	self, err := a.self()
	if err != nil {
		return err
	}
	t := sweep.Target{Run: a.name.Run, Task: a.name.Task, Kind: sweep.Server, Command: &root,
		Spared: []identity.Ref{*self, a.found.server}}
	if a.found.chosen.Shell {
		t.Spared = append(t.Spared, a.found.first)
	}
	a.capture, err = sweep.Adopt(ctx, a.Host, t, a.found.first, a.found.roots)
	if err != nil {
		return &Problem{Kind: kindOfSweep(err), Err: fmt.Errorf("pane %s: %w", a.found.pane.ID, err)}
	}
	a.capture.Notes = append(a.capture.Notes, limits)
	a.notes = slices.Clone(a.capture.Notes)
	if len(a.blind) > 0 {
		a.notes = append(a.notes, "it may be of "+strings.Join(a.blind, ", ")+" already, whose records cannot be read")
	}
	return a.findPort(ctx)
}

func kindOfSweep(err error) error {
	switch {
	case errors.Is(err, sweep.ErrRefused):
		return ErrRefused
	case errors.Is(err, identity.ErrUnverifiable):
		return ErrUnverified
	}
	return nil
}

// notYet refuses what a task of hob has already. The capture of an adoption that
// was cut before it had made a task claims nothing.
func (a *adoption) notYet() error {
	pid := a.found.roots[0].PID
	owners, blind := a.owners([]int{pid})
	o, ok := owners[pid]
	if !ok {
		a.blind = blind
		return nil
	}
	if _, err := a.Store.Run(o.task.Run).Task(o.task.Task).ReadTask(); errors.Is(err, ErrNoRecord) {
		return nil
	}
	return usage("hob ps "+o.task.Run, "process %d in pane %s is of %s already", pid, a.found.pane.ID, o.task)
}

// called is the name of the task: as was said, else after the tmux session and
// the program.
func (a *adoption) called() (Name, error) {
	run, task, both := strings.Cut(a.o.Name, "/")
	if a.o.Name == "" {
		run = nameFrom(a.found.pane.SessionName, "adopted")
	}
	if !ValidName(run) || both && !ValidName(task) {
		return Name{}, notAName(a.o.Name)
	}
	if both {
		return Name{run, task}, nil
	}
	base := nameFrom(programOf(a.found.row), "server")
	for n := 1; ; n++ {
		task = base
		if n > 1 {
			suffix := fmt.Sprintf("-%d", n)
			task = base[:min(len(base), 41-len(suffix))] + suffix
		}
		if _, err := a.Store.Run(run).Task(task).ReadTask(); errors.Is(err, ErrNoRecord) || a.ended(run) {
			return Name{run, task}, nil
		}
	}
}

// ended reports whether nothing of a run is up: its records make room.
func (a *adoption) ended(run string) bool {
	tasks, _ := a.taskNames(a.Store.Run(run))
	return a.over(Selection{Run: a.Store.Run(run), Tasks: tasks})
}

// nameFrom makes a name of any text.
func nameFrom(text, otherwise string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(text))
	clean = strings.Trim(clean, "-_")
	if clean = clean[:min(41, len(clean))]; clean == "" {
		return otherwise
	}
	return clean
}

// interpreters run a program that their first argument names.
var interpreters = []string{"python", "node", "bun", "deno", "ruby", "perl", "java", "uv", "uvx", "env", "nohup", "nice", "setsid"}

// programOf is what a person would call what runs: vllm, for
// `python3 -m vllm.entrypoints.openai.api_server` and `bash /opt/vllm.sh` as well.
func programOf(p identity.Process) string {
	args := p.Args
	for len(args) > 1 {
		base := strings.TrimRight(path.Base(args[0]), "0123456789.")
		if !slices.Contains(interpreters, base) && !slices.Contains(shells, base) {
			break
		}
		args = args[1:]
		for len(args) > 1 && strings.HasPrefix(args[0], "-") {
			if args[0] == "-m" {
				module, _, _ := strings.Cut(args[1], ".")
				return module
			}
			args = args[1:]
		}
	}
	if len(args) == 0 {
		return p.Comm
	}
	words := strings.Fields(args[0]) // `sh -c 'vllm serve …'`, and titles
	if len(words) == 0 {
		return p.Comm
	}
	base := path.Base(words[0])
	return strings.TrimSuffix(strings.TrimSuffix(base, path.Ext(base)), ":")
}

// findPort finds the port that it answers on: the one that was said must not be
// another's; else the only one that it listens on.
func (a *adoption) findPort(ctx context.Context) error {
	sockets, err := a.Host.Sockets(ctx, a.found.roots[0].PID)
	if err != nil {
		a.notes = append(a.notes, "the ports that it listens on could not be looked for: "+err.Error())
		a.port = a.o.Port
		return nil
	}
	var members []int
	for _, m := range a.capture.Members {
		members = append(members, m.Ref.PID)
	}
	l := listeningOf(ctx, a.Host, sockets, members)
	port, note, err := choosePort(a.o.Port, l)
	if note != "" {
		a.notes = append(a.notes, note)
	}
	a.port = port
	return err
}

// listening is what listens, as one adoption needs it.
type listening struct {
	own    []int // ports of its tree
	others []int // ports whose listener is known to be another's
	open   []int // ports whose listener could not be found out
}

func listeningOf(ctx context.Context, h identity.Host, sockets []identity.Socket, members []int) listening {
	ports, inodes := map[uint64]int{}, []uint64(nil)
	var l listening
	for _, s := range sockets {
		switch port := int(s.Local.Port()); {
		case !s.Listen:
		case s.PID != 0 && slices.Contains(members, s.PID):
			l.own = append(l.own, port)
		case s.PID != 0:
			l.others = append(l.others, port)
		case s.Inode != 0:
			ports[s.Inode] = port
			inodes = append(inodes, s.Inode)
		}
	}
	if len(inodes) == 0 {
		return l
	}
	held, err := h.Holders(ctx, inodes, nil)
	for inode, port := range ports {
		switch pids := held.ByInode[inode]; {
		case slices.ContainsFunc(pids, func(pid int) bool { return slices.Contains(members, pid) }):
			l.own = append(l.own, port)
		case err == nil && len(pids) > 0:
			l.others = append(l.others, port)
		default:
			l.open = append(l.open, port)
		}
	}
	return l
}

// choosePort is pure: the port that is written down, and what is to be said.
func choosePort(said int, l listening) (port int, note string, err error) {
	own := slices.Compact(slices.Sorted(slices.Values(l.own)))
	switch {
	case said > 0 && slices.Contains(own, said):
		return said, "", nil
	case said > 0 && slices.Contains(l.others, said):
		return 0, "", refused("hob doctor, or ss -ltnp, say who has it", "port %d is another process's", said)
	case said > 0 && slices.Contains(l.open, said):
		return said, fmt.Sprintf("who listens on port %d could not be found out", said), nil
	case said > 0:
		return said, fmt.Sprintf("nobody listens on port %d yet", said), nil
	case len(own) == 1:
		return own[0], "", nil
	case len(own) > 1:
		return 0, fmt.Sprintf("it listens on %s: --port says which one it answers on", portsOf(own)), nil
	}
	return 0, "", nil
}

func portsOf(ports []int) string {
	words := make([]string, len(ports))
	for i, p := range ports {
		words[i] = fmt.Sprint(p)
	}
	return strings.Join(words, ", ")
}

// outcome is what is told.
func (a *adoption) outcome() Adopted {
	root := a.found.roots[0]
	out := Adopted{Run: a.name.Run, Task: a.name.Task, Did: "adopted", PID: root.PID, Start: root.Start, Args: a.found.row.Args,
		Socket: a.found.srv.Socket, Pane: a.found.pane.ID, Members: []AdoptedProcess{}, Background: []AdoptedProcess{}, Notes: a.notes}
	if a.o.DryRun {
		out.Did = "would be adopted"
	}
	if a.port > 0 {
		out.Port = &a.port
	}
	for _, m := range a.capture.Members {
		out.Members = append(out.Members, AdoptedProcess{m.Ref.PID, m.Ref.Start, m.Args, m.Evidence})
	}
	for _, pid := range a.found.chosen.Background {
		if ref, row, err := a.ours(pid); err == nil {
			out.Background = append(out.Background, AdoptedProcess{ref.PID, ref.Start, row.Args, []sweep.Evidence{}})
		}
	}
	return out
}
