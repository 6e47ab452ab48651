package tasks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/shirou/gopsutil/v4/mem"

	"hob/identity"
	"hob/recipes"
	"hob/sweep"
)

// preflight checks the host for the tasks that are to start, and gives ports to
// those that want any free one.
func (u *upRun) preflight(ctx context.Context) error {
	var err error
	if u.tmux, err = u.program(); err != nil {
		return err
	}
	c := u.claims()
	if err := u.autoPorts(c); err != nil {
		return err
	}
	gpuErr := u.giveGPUs(ctx)
	wants := u.wants()
	if slices.ContainsFunc(wants, func(w want) bool { return w.port > 0 || w.task.GPUAuto != nil || w.task.Needs.GPUMemory > 0 }) {
		u.notes = append(u.notes, c.blind...)
	}
	g := ground{program: findProgram, folder: folderExists, mine: u.ownPorts(), disk: freeDisk, host: u.hostFacts(ctx),
		hungry: func() holds { return u.memoryHolds(ctx) }}
	g.claimed, g.doubt = c.ports, c.doubt
	if g.held, err = u.held(ctx, wants); err != nil {
		return err
	}
	if v, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		g.memory = &v.Available
	}
	notes, err := preflight(u.dir.Name, wants, g)
	u.notes = slices.Concat(u.notes, u.recipe.Notes, notes, u.strays())
	if err = errors.Join(gpuErr, err); err == nil {
		u.warn(u.notes)
	}
	return err
}

// wants are the tasks that are to start.
func (u *upRun) wants() []want {
	var list []want
	for _, t := range u.tasks {
		if t.act == leave {
			continue
		}
		argv, _ := t.BindLate(u.late(t))
		list = append(list, want{task: t.Task, argv: argv, env: u.environment(t), port: t.port, made: u.afterJob(t)})
	}
	return list
}

// ownPorts are the ports of tasks of this run that are left alone, and of those
// that are started again.
func (u *upRun) ownPorts() map[int]struct{} {
	ports := map[int]struct{}{}
	for _, t := range u.tasks {
		if t.act == leave && t.port > 0 {
			ports[t.port] = struct{}{}
		}
	}
	return ports
}

// claims are the ports of the tasks of all other runs that live, from their
// records: a server that is still loading has no listener yet.
type claims struct {
	ports map[int]Name
	doubt map[int]string // ports of tasks of which nobody can tell whether they live, and why
	blind []string       // what could not be read: whose ports (and GPUs) nobody knows
}

func (u *upRun) claims() claims {
	c := claims{ports: map[int]Name{}, doubt: map[int]string{}}
	all, err := u.All()
	if err != nil {
		c.blind = append(c.blind, fmt.Sprintf("which ports and GPUs other runs have is not known: %v", err))
	}
	for _, s := range all {
		if s.Run.Name == u.dir.Name {
			continue
		}
		run, err := s.Run.Read()
		if trouble(err) != nil {
			c.blind = append(c.blind, fmt.Sprintf("which ports and GPUs run %q has is not known: %v", s.Run.Name, err))
		}
		if err != nil || len(run.Ports) == 0 {
			continue
		}
		u.claimPorts(&c, s, run)
	}
	return c
}

// claimPorts takes note of the ports of one run.
func (u *upRun) claimPorts(c *claims, s Selection, run Run) {
	live := run.Starter != nil && u.finding(run.Starter).Verdict == identity.Owned
	states := map[string]Derived{}
	for _, task := range s.Tasks {
		if seen := u.look(s.Run.Task(task)); seen.Task != nil || seen.Trouble != nil {
			states[task] = Derive(seen)
		}
		live = live || states[task].State.Lives()
	}
	for task, port := range run.Ports {
		name := Name{s.Run.Name, task}
		switch d := states[task]; {
		case live && (d.State.Lives() || d.State == ""), d.State == Survivors:
			c.ports[port] = name
		case d.State == Unverified:
			c.doubt[port] = fmt.Sprintf("port %d may be that of %s, which is unverified: %s", port, name, d.Note)
		}
	}
}

// autoPorts takes free ports for the tasks that leave the choice to hob. All
// are held open until the last one is chosen, so that none is given twice; nor is
// one that another run was given and does not listen on yet.
func (u *upRun) autoPorts(c claims) error {
	var open []net.Listener
	defer func() {
		for _, l := range open {
			_ = l.Close()
		}
	}()
	for _, t := range u.tasks {
		t.port = t.Port.Number
		if t.act == leave {
			t.port = u.run.Ports[t.Name]
		}
		if !t.Port.Auto || t.act == leave {
			continue
		}
		for t.port == 0 || c.taken(t.port) {
			l, err := net.Listen("tcp", ":0")
			if err != nil {
				return fmt.Errorf("find a free port for %s: %w", t.Name, err)
			}
			open = append(open, l)
			t.port = l.Addr().(*net.TCPAddr).Port
		}
	}
	return nil
}

func (c claims) taken(port int) bool {
	_, claimed := c.ports[port]
	return claimed || c.doubt[port] != ""
}

// late is what a task is told when it starts: its port, and those of the others.
func (u *upRun) late(t *upTask) recipes.Late {
	late := recipes.Late{Port: t.port, Ports: maps.Clone(u.run.Ports), GPUs: t.gpus}
	if late.Ports == nil {
		late.Ports = map[string]int{}
	}
	for _, o := range u.tasks {
		if o.port > 0 {
			late.Ports[o.Name] = o.port
		}
	}
	return late
}

// held finds out who listens on the wanted ports.
func (u *upRun) held(ctx context.Context, wants []want) (map[int]string, error) {
	ports := map[int]bool{}
	for _, w := range wants {
		if w.port > 0 && !w.task.Port.Auto {
			ports[w.port] = true
		}
	}
	if len(ports) == 0 {
		return nil, nil
	}
	socks, err := u.Host.Sockets(ctx, 0)
	if err != nil {
		return boundPorts(ports)
	}
	held := map[int]string{}
	for _, s := range socks {
		port := int(s.Local.Port())
		if s.Listen && ports[port] {
			held[port] = u.holder(ctx, s)
		}
	}
	return held, nil
}

// boundPorts asks the kernel itself, where its listeners cannot be listed.
func boundPorts(ports map[int]bool) (map[int]string, error) {
	held := map[int]string{}
	for port := range ports {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			held[port] = "a process that this system does not name"
			continue
		}
		if err := l.Close(); err != nil {
			return nil, err
		}
	}
	return held, nil
}

// holder names who has a socket open, in words.
func (u *upRun) holder(ctx context.Context, s identity.Socket) string {
	pid := s.PID
	if pid == 0 {
		h, err := u.Host.Holders(ctx, []uint64{s.Inode}, nil)
		if err == nil && len(h.ByInode[s.Inode]) > 0 {
			pid = h.ByInode[s.Inode][0]
		}
	}
	if pid == 0 {
		return fmt.Sprintf("a process that cannot be seen from here (user id %d)", s.UID)
	}
	return u.describe(pid)
}

// describe is a process in words: "pid 12 (python3 server.py)".
func (m *Manager) describe(pid int) string {
	h, err := m.Host.Open(pid)
	if err != nil {
		return fmt.Sprintf("pid %d", pid)
	}
	defer h.Close()
	p, err := h.Read(identity.WantArgs)
	if err != nil || len(p.Args) == 0 {
		return fmt.Sprintf("pid %d", pid)
	}
	return fmt.Sprintf("pid %d (%s)", pid, cutText(sweep.CommandLine(p.Args), 100))
}

// environment is what the task's command is started with, but for what the
// keeper adds: the caller's, then the recipe's.
func (u *upRun) environment(t *upTask) []string {
	_, vars := t.BindLate(u.late(t))
	env := map[string]string{}
	var order []string
	set := func(name, value string) {
		if _, known := env[name]; !known {
			order = append(order, name)
		}
		env[name] = value
	}
	for _, kv := range u.Environ {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" && !slices.Contains(notInherited, name) {
			set(name, value)
		}
	}
	for _, v := range vars {
		set(v.Name, v.Value)
	}
	out := make([]string, len(order))
	for i, name := range order {
		out[i] = name + "=" + env[name]
	}
	return out
}

// notInherited are variables that speak of the pane that hob was called in.
var notInherited = []string{"TMUX", "TMUX_PANE", "HOB_RUN", "HOB_TASK", "HOB_RUN_ID"}

func lookup(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}
