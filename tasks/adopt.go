package tasks

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"hob/identity"
	"hob/sweep"
	"hob/tmux"
)

// AdoptOptions says what is adopted, and as what.
type AdoptOptions struct {
	Socket string // of the tmux server that the pane is in; "" is the caller's own, else the default one
	Pane   string // "%7"
	Name   string // RUN or RUN/TASK; "" is the tmux session's name and the program's
	Port   int    // that it answers on; 0 is the one that it listens on
	DryRun bool
}

// Adopted is what `hob adopt` came to. Its JSON is a contract.
type Adopted struct {
	Run        string           `json:"run"`
	Task       string           `json:"task"`
	Did        string           `json:"did"` // adopted, would be adopted
	PID        int              `json:"pid"`
	Start      identity.Token   `json:"start"`
	Args       []string         `json:"args"`
	Port       *int             `json:"port"`
	Socket     string           `json:"socket"`
	Pane       string           `json:"pane"`
	Members    []AdoptedProcess `json:"members"`
	Background []AdoptedProcess `json:"background"` // jobs of the pane's shell that were not adopted
	Notes      []string         `json:"notes"`      // what hob cannot do for it, and what was not seen
}

// AdoptedProcess is a process in it.
type AdoptedProcess struct {
	PID      int              `json:"pid"`
	Start    identity.Token   `json:"start"`
	Args     []string         `json:"args"`
	Evidence []sweep.Evidence `json:"evidence"`
}

// limits are what nobody does for a task without a keeper.
const limits = "hob did not start it: it has no keeper, so its exit code will not be known, hob has no log of it, " +
	"and what leaves its tree before hob looks again (each verb that acts looks) can only be named"

// foundPane is a pane of a person's tmux server, and who is in it.
type foundPane struct {
	srv    *tmux.Server
	pane   tmux.Pane
	server identity.Ref
	first  identity.Ref
	chosen chosen
	roots  []identity.Ref // the command first
	row    identity.Process
}

// Adopt takes a server that a person has started by hand under hob's care: the
// processes of one pane, which the person names by its id. The tmux server that
// the pane is in is only read.
func (m *Manager) Adopt(ctx context.Context, o AdoptOptions) (Adopted, error) {
	f, err := m.findGuest(ctx, o)
	if err != nil {
		return Adopted{}, err
	}
	a := adoption{Manager: m, found: f, o: o}
	if err := a.prepare(ctx); err != nil {
		return Adopted{}, err
	}
	if !o.DryRun {
		err = a.commit(ctx)
	}
	return a.outcome(), err
}

// findGuest finds the pane and decides which of its processes is adopted.
func (m *Manager) findGuest(ctx context.Context, o AdoptOptions) (foundPane, error) {
	if !tmux.IsPane(o.Pane) {
		return foundPane{}, usage("tmux list-panes -a -F '#{pane_id} #{pane_current_command}' lists them", "%q is not the id of a tmux pane, like %%3", o.Pane)
	}
	f, err := m.askGuest(ctx, o)
	if err != nil {
		return f, err
	}
	if err := m.whoServes(ctx, &f); err != nil {
		return f, err
	}
	return f, m.whoRuns(ctx, &f)
}

// askGuest asks the person's tmux server for the pane.
func (m *Manager) askGuest(ctx context.Context, o AdoptOptions) (foundPane, error) {
	socket, err := m.guestSocket(o.Socket)
	if err != nil {
		return foundPane{}, err
	}
	f := foundPane{}
	if f.srv, err = tmux.Guest(socket); err != nil {
		return f, err
	}
	panes, err := f.srv.Panes(ctx)
	if errors.Is(err, tmux.ErrNoServer) {
		return f, usage("-S names the socket of another", "no tmux server listens on %s", socket)
	}
	if err != nil {
		return f, &Problem{Kind: ErrUnverified, Msg: "the tmux server on " + socket + " could not be asked", Err: m.silentGuest(err, socket, "")}
	}
	i := slices.IndexFunc(panes, func(p tmux.Pane) bool { return p.ID == o.Pane })
	switch {
	case i < 0:
		return f, usage("tmux -S "+socket+" list-panes -a lists them", "the tmux server on %s has no pane %s", socket, o.Pane)
	case panes[i].Dead:
		return f, usage("", "pane %s is dead: what ran in it has ended", o.Pane)
	}
	f.pane = panes[i]
	return f, nil
}

// guestSocket is the socket that is meant. On hob's own everything is kept already.
func (m *Manager) guestSocket(said string) (string, error) {
	socket := said
	if socket == "" {
		socket = tmux.UserSocket(m.getenv)
	}
	socket, err := filepath.Abs(socket)
	if err != nil {
		return "", err
	}
	own, err := m.socket()
	if err == nil && tmux.SameSocket(own, socket) {
		err = keptAlready()
	}
	return socket, err
}

func keptAlready() error {
	return usage("-S names the socket of your own tmux server", "this is hob's own tmux server, and what runs in it is kept already")
}

// whoServes finds out which process the tmux server is: by the number that it
// gives itself, and by the kernel's word for who listens on the socket.
func (m *Manager) whoServes(ctx context.Context, f *foundPane) error {
	if err := peerIs(ctx, f.srv.Socket, f.pane.ServerPID, m.Host.Facts().UID); err != nil {
		return err
	}
	ref, err := m.serverRef(f.pane.ServerPID)
	if err != nil {
		return err
	}
	f.server = ref
	for _, own := range m.ownServers() {
		if own.PID == ref.PID && m.finding(&own).Verdict == identity.Owned {
			return keptAlready()
		}
	}
	return nil
}

// ownServers are the tmux servers that hob has started, as far as is known.
func (m *Manager) ownServers() []identity.Ref {
	socket, err := m.socket()
	if err != nil {
		return nil
	}
	refs, _ := m.servers(socket)
	return refs
}

// peerIs refuses a server that is not the process it says it is, seen from here
// (in another container it is not), and one that is another user's.
func peerIs(ctx context.Context, socket string, says, uid int) error {
	pid, owner, err := listensOn(ctx, socket)
	switch {
	case errors.Is(err, identity.ErrUnsupported):
		return nil // it is looked at as a process
	case err != nil:
		return &Problem{Kind: ErrUnverified, Err: err}
	}
	return judgePeer(says, pid, owner, uid)
}

// judgePeer is pure.
func judgePeer(says, pid, owner, uid int) error {
	switch {
	case pid != says:
		return refused("it may run in another container: ask the hob there", "the tmux server calls itself pid %d, and the kernel says that %d listens there", says, pid)
	case uid != 0 && owner != uid:
		return unverified("", "the tmux server is of uid %d: hob cannot verify, nor end, what another user runs", owner)
	}
	return nil
}

// whoRuns decides which of the pane's processes is adopted, and pins it down.
func (m *Manager) whoRuns(ctx context.Context, f *foundPane) error {
	first, err := m.firstOf(f)
	if err != nil {
		return err
	}
	table, err := m.Host.Snapshot(ctx, identity.WantArgs)
	if err != nil {
		return err
	}
	f.first = first
	if f.chosen, err = chooseRoot(table.Procs, first.PID, lives(m.Host)); err != nil {
		return fmt.Errorf("pane %s: %w", f.pane.ID, err)
	}
	for i, pid := range append([]int{f.chosen.Command}, f.chosen.Others...) {
		ref, row, err := m.ours(pid)
		if err != nil {
			return fmt.Errorf("pane %s: %w", f.pane.ID, err)
		}
		if i == 0 {
			f.row = row
		}
		f.roots = append(f.roots, ref)
	}
	return nil
}

// firstOf is the pane's first process: a child of the tmux server, by its own row.
func (m *Manager) firstOf(f *foundPane) (identity.Ref, error) {
	ref, row, err := m.ours(f.pane.PID)
	switch {
	case err != nil:
		return ref, fmt.Errorf("pane %s: %w", f.pane.ID, err)
	case row.PPID != f.server.PID, m.finding(&f.server).Verdict != identity.Owned:
		return ref, refused("", "pane %s: its process %d is not a child of the tmux server %d", f.pane.ID, ref.PID, f.server.PID)
	}
	switch b := sweep.Boundary(row); b {
	case "":
		return ref, nil
	default: // a tmux server, too, before the exec of a pane that was just made
		return ref, refused("where the pane is new try again: its program may not have been started yet", "pane %s: its process %d is a %s, and what runs there is somebody's own work", f.pane.ID, ref.PID, b)
	}
}

// ours pins a process for a moment: who it is, and its row. One of another user
// could be named and never ended.
func (m *Manager) ours(pid int) (identity.Ref, identity.Process, error) {
	h, err := m.Host.Open(pid)
	if err != nil {
		return identity.Ref{}, identity.Process{}, err
	}
	defer h.Close()
	row, err := h.Read(identity.WantArgs | identity.WantUser | identity.WantStarted | identity.WantCwd)
	switch uid := m.Host.Facts().UID; {
	case err != nil:
	case row.Missing&identity.WantUser != 0:
		err = unverified("", "whose process %d is cannot be read", pid)
	case uid != 0 && row.UID != uid:
		err = unverified("sudo hob adopt does", "process %d runs as uid %d: hob cannot verify, nor end, what another user runs", pid, row.UID)
	}
	return h.Ref(), row, err
}
