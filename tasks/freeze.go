package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hob/identity"
	"hob/recipes/convert"
	"hob/sweep"
	"hob/tmux"
)

// FreezeOptions say which session.
type FreezeOptions struct {
	Socket  string // "": the caller's tmux, the default one, or hob's own
	Session string // its name or id; "": the caller's, or the only one
}

// Frozen is what was seen of a session.
type Frozen struct {
	Session convert.Session
	Unseen  int // panes whose process could not be looked at
}

// Freeze looks at a tmux session: its windows and panes, and what runs in each.
// It is somebody's own, or hob's; either is only read.
func (m *Manager) Freeze(ctx context.Context, o FreezeOptions) (Frozen, error) {
	socket, panes, err := m.findSession(ctx, o)
	if err != nil {
		return Frozen{}, err
	}
	if err := peerIs(ctx, socket, panes[0].ServerPID, m.Host.Facts().UID); err != nil {
		return Frozen{}, err
	}
	table, err := m.Host.Snapshot(ctx, identity.WantArgs|identity.WantCwd)
	if err != nil {
		return Frozen{}, fmt.Errorf("look at the processes: %w", err)
	}
	f := freezer{host: m.Host, rows: map[int]identity.Process{}, procs: table.Procs}
	for _, p := range table.Procs {
		f.rows[p.PID] = p
	}
	if f.sockets, err = m.Host.Sockets(ctx, panes[0].PID); err != nil {
		f.note("ports: could not look: " + err.Error())
	}
	return f.session(ctx, panes, m.getenv("SHELL")), nil
}

// findSession finds the session's panes. Without a socket the person's own tmux is
// asked first, then hob's.
func (m *Manager) findSession(ctx context.Context, o FreezeOptions) (string, []tmux.Seen, error) {
	own, ownErr := m.socket()
	sockets := []string{o.Socket}
	if o.Socket == "" {
		if sockets[0] = tmux.UserSocket(m.getenv); ownErr == nil && !tmux.SameSocket(sockets[0], own) {
			sockets = append(sockets, own)
		}
	}
	var failed error
	for _, socket := range sockets {
		socket, panes, err := m.sessionOn(ctx, socket, o.Session)
		if err == nil {
			return socket, panes, nil
		}
		if failed == nil || errors.Is(failed, tmux.ErrNoServer) {
			failed = err
		}
	}
	return "", nil, failed
}

func (m *Manager) sessionOn(ctx context.Context, socket, name string) (string, []tmux.Seen, error) {
	socket, err := filepath.Abs(socket)
	if err != nil {
		return "", nil, err
	}
	srv, err := tmux.Guest(socket)
	if err != nil {
		return "", nil, err
	}
	panes, err := srv.Survey(ctx)
	switch {
	case errors.Is(err, tmux.ErrNoServer), err == nil && len(panes) == 0:
		return "", nil, &Problem{Kind: ErrUsage, Msg: "no tmux server with a session listens on " + socket, Tip: "-S names the socket of another", Err: tmux.ErrNoServer}
	case err != nil:
		return "", nil, &Problem{Kind: ErrUnverified, Msg: "the tmux server on " + socket + " could not be asked", Err: m.silentGuest(err, socket, "")}
	}
	pane := ""
	if tmux.SameSocket(socket, tmux.UserSocket(m.getenv)) {
		pane = m.getenv("TMUX_PANE")
	}
	panes, err = pickSession(panes, name, pane)
	return socket, panes, err
}

// pickSession is pure: the panes of the session that is meant. A pane that is
// linked into several sessions counts in each.
func pickSession(panes []tmux.Seen, name, callers string) ([]tmux.Seen, error) {
	var names []string
	id := ""
	for _, p := range panes {
		if !slices.Contains(names, p.SessionName) {
			names = append(names, p.SessionName)
		}
		if name != "" && (p.SessionName == name || p.Session == name) || name == "" && callers != "" && p.ID == callers {
			id = p.Session
		}
	}
	switch {
	case id != "":
	case name != "":
		return nil, usage(nearSession(name, names), "the tmux server has no session %q", name)
	case len(names) > 1:
		return nil, usage("there are: "+strings.Join(names, ", "), "say which session")
	default:
		id = panes[0].Session
	}
	return slices.DeleteFunc(slices.Clone(panes), func(p tmux.Seen) bool { return p.Session != id }), nil
}

func nearSession(name string, names []string) string {
	if near := Near(name, names); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	return "there are: " + strings.Join(names, ", ")
}

// freezer reads what runs in panes out of one look at the host.
type freezer struct {
	host    identity.Host
	procs   []identity.Process
	rows    map[int]identity.Process
	sockets []identity.Socket
	notes   []string
}

func (f *freezer) note(s string) {
	if !slices.Contains(f.notes, s) {
		f.notes = append(f.notes, s)
	}
}

func (f *freezer) session(ctx context.Context, panes []tmux.Seen, shell string) Frozen {
	host, _ := os.Hostname() // only to know the title that panes have without one
	out := Frozen{Session: convert.Session{Name: panes[0].SessionName, Host: host, Shell: shell}}
	s := &out.Session
	last := ""
	for _, p := range panes {
		if p.Window != last || len(s.Windows) == 0 {
			last = p.Window
			s.Windows = append(s.Windows, convert.LiveWindow{Name: p.WindowName, Layout: p.Layout, Front: p.Front})
		}
		if p.Garbled {
			f.note("pane " + p.ID + ": its title and the names of its window cannot be told apart")
		}
		live := f.pane(ctx, p)
		if live.Trouble != "" {
			out.Unseen++
		}
		w := &s.Windows[len(s.Windows)-1]
		w.Panes = append(w.Panes, live)
	}
	s.Notes = f.notes
	return out
}

func (f *freezer) pane(ctx context.Context, p tmux.Seen) convert.LivePane {
	live := convert.LivePane{ID: p.ID, Title: p.Title, Task: p.Label, Focus: p.Focus, Dead: p.Dead}
	if p.Dead {
		return live
	}
	job, prompt, err := f.job(p.PID)
	row, ok := f.rows[job.Command]
	switch {
	case err != nil:
		live.Trouble = err.Error()
		return live
	case !ok || row.Missing&identity.WantArgs != 0 || len(row.Args) == 0:
		live.Trouble = fmt.Sprintf("the arguments of process %d cannot be read", job.Command)
		return live
	}
	live.Args, live.Prompt = row.Args, prompt
	if row.Missing&identity.WantCwd == 0 && !strings.HasSuffix(row.Cwd, " (deleted)") {
		live.Dir = row.Cwd
	}
	live.Others, live.Background = f.argsOf(job.Others), f.argsOf(job.Background)
	if !prompt {
		live.Ports = f.listens(ctx, append(job.Others, job.Command))
	}
	return live
}

// job is what of a pane's processes is its command. In hob's own panes it is what
// the keeper has started, on a terminal of its own.
func (f *freezer) job(first int) (c chosen, prompt bool, err error) {
	row, ok := f.rows[first]
	if ok && sweep.IsKeeper(row) {
		if first, err = f.kept(first); err != nil {
			return c, false, err
		}
	}
	c, err = chooseRoot(f.procs, first, lives(f.host))
	if err == nil || errors.Is(err, ErrUnverified) {
		return c, false, err
	}
	if c.Command == 0 {
		c.Command = first
	}
	if row, ok := f.rows[c.Command]; ok && c.Shell && typedInto(row.Args) {
		return c, true, nil
	}
	return c, false, err
}

// kept is the command of a keeper: the leader of a session below it. One without a
// row may be hidden from us.
func (f *freezer) kept(keeper int) (int, error) {
	var found []int
	for pid, p := range f.rows {
		if p.PPID == keeper && p.SID == pid && p.State != 'Z' {
			found = append(found, pid)
		}
	}
	if len(found) > 0 {
		return slices.Min(found), nil
	}
	kids, err := f.host.Children(keeper)
	if err != nil && !errors.Is(err, identity.ErrGone) && !errors.Is(err, identity.ErrUnsupported) {
		return 0, fmt.Errorf("the command below its keeper, process %d, could not be looked for: %w", keeper, err)
	}
	for _, kid := range kids {
		if _, seen := f.rows[kid]; !seen && lives(f.host)(kid) {
			return 0, unverified("", "process %d below its keeper lives and could not be looked at", kid)
		}
	}
	return 0, fmt.Errorf("the command below its keeper, process %d, has ended", keeper)
}

// lives tells of a number without a row whether somebody has it: then the row is
// hidden, or came later.
func lives(h identity.Host) func(pid int) bool {
	return func(pid int) bool {
		pin, err := h.Open(pid)
		if err != nil {
			return !errors.Is(err, identity.ErrGone)
		}
		defer pin.Close()
		return pin.Verify().Verdict != identity.Gone
	}
}

func (f *freezer) argsOf(pids []int) [][]string {
	var all [][]string
	for _, pid := range pids {
		if args := f.rows[pid].Args; len(args) > 0 {
			all = append(all, args)
		}
	}
	return all
}

// listens are the ports on which the processes listen, or what they have started.
func (f *freezer) listens(ctx context.Context, roots []int) []int {
	members := f.below(roots)
	ports := map[uint64]int{}
	var inodes []uint64
	var own []int
	for _, s := range f.sockets {
		switch port := int(s.Local.Port()); {
		case !s.Listen:
		case s.PID != 0 && slices.Contains(members, s.PID):
			own = append(own, port)
		case s.PID == 0 && s.Inode != 0:
			ports[s.Inode] = port
			inodes = append(inodes, s.Inode)
		}
	}
	if len(inodes) > 0 {
		held, err := f.host.Holders(ctx, inodes, members)
		if err != nil {
			f.note("ports: could not look: " + err.Error())
		}
		for _, pid := range held.Unreadable {
			f.note(fmt.Sprintf("ports of process %d: could not look", pid))
		}
		for inode := range held.ByInode {
			own = append(own, ports[inode])
		}
	}
	slices.Sort(own)
	return slices.Compact(own)
}

// below are the processes and all their descendants.
func (f *freezer) below(roots []int) []int {
	all := slices.Clone(roots)
	for i := 0; i < len(all); i++ {
		for pid, p := range f.rows {
			if p.PPID == all[i] && !slices.Contains(all, pid) {
				all = append(all, pid)
			}
		}
	}
	return all
}
