package tasks

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hob/identity"
	"hob/tmux"
)

// What the records say of hob's tmux server, and how it is found again.

// lastServer writes down the server that is used.
func (m *Manager) lastServer(socket string, ref identity.Ref) error {
	last, err := m.Store.ReadServer()
	if err == nil && last.Socket == socket && last.Server.PID == ref.PID && last.Server.Boot == ref.Boot && last.Server.Start == ref.Start {
		return nil
	}
	return m.Store.WriteServer(Server{Socket: socket, Server: ref, UpdatedAt: m.now()})
}

// serverRef is the Ref of a tmux server. A server in another pid namespace names
// itself by a number that is nobody's, or somebody else's, in ours.
func (m *Manager) serverRef(pid int) (identity.Ref, error) {
	h, err := m.Host.Open(pid)
	if err == nil && h.Verify().Verdict == identity.Gone {
		err = errors.Join(identity.ErrGone, h.Close()) // a zombie
	}
	if err != nil {
		return identity.Ref{}, &Problem{Kind: ErrRefused, Err: fmt.Errorf("the tmux server calls itself pid %d: %w", pid, err),
			Tip: "it may run in another container: use another state folder with --home"}
	}
	defer h.Close()
	p, err := h.Read(0)
	if err == nil && !strings.HasPrefix(p.Comm, "tmux") {
		return identity.Ref{}, refused("it may run in another container: use another state folder with --home",
			"the tmux server calls itself pid %d, and that is %s here", pid, m.describe(pid))
	}
	return h.Ref(), err
}

// livePanes lists the panes of hob's tmux server, none when there is no server.
// A server whose socket file was deleted is told to bind it anew: otherwise a
// second one would be started, and the first, with its panes, orphaned.
func (m *Manager) livePanes(ctx context.Context, srv *tmux.Server) ([]tmux.Pane, error) {
	panes, err := m.listPanes(ctx, srv)
	if !errors.Is(err, tmux.ErrNoServer) {
		return panes, err
	}
	again, err := m.rebind(ctx, srv)
	if err != nil || !again {
		return nil, err
	}
	return srv.Panes(ctx)
}

// listPanes is Panes, asked again if the connection was lost to a server that
// was about to end.
func (m *Manager) listPanes(ctx context.Context, srv *tmux.Server) ([]tmux.Pane, error) {
	panes, err := srv.Panes(ctx)
	if err == nil {
		return panes, nil
	}
	refs, _ := m.servers(srv.Socket)
	if !errors.Is(err, tmux.ErrLost) {
		return panes, m.silent(err, srv.Socket, refs...)
	}
	for _, ref := range refs {
		m.dies(ctx, ref)
	}
	return srv.Panes(ctx)
}

// dies waits a little for a server that may be about to end, and reports whether
// it has ended.
func (m *Manager) dies(ctx context.Context, ref identity.Ref) bool {
	return m.diesBy(ctx, ref, m.Host.Now().Add(dyingDeadline))
}

// diesBy waits for the end of a process until the deadline, and reports whether
// it has ended.
func (m *Manager) diesBy(ctx context.Context, ref identity.Ref, deadline time.Time) bool {
	h, f := m.Host.Verify(ref)
	if h == nil {
		return f.Verdict != identity.Unverifiable
	}
	defer h.Close()
	return m.Host.Wait(ctx, []identity.Handle{h}, deadline) == nil && h.Verify().Verdict == identity.Gone
}

// dyingDeadline is how long a server that loses its clients may take to end, and
// a command whose keeper was killed.
const dyingDeadline = 2 * time.Second

// servers are the tmux servers that the records name for a socket: the one that
// was last used, and those of the runs. The error names a record that might have
// named another.
func (m *Manager) servers(socket string) ([]identity.Ref, error) {
	var refs []identity.Ref
	last, err := m.Store.ReadServer()
	if err == nil && last.Socket == socket {
		refs = append(refs, last.Server)
	}
	runs, _ := m.Store.Runs()
	for _, name := range runs {
		if run, err := m.Store.Run(name).Read(); err == nil && run.Tmux.Server != nil && run.Tmux.Socket == socket {
			refs = append(refs, *run.Tmux.Server)
		}
	}
	return refs, trouble(err)
}

// keptServers are the servers that the keepers name whose panes are theirs. The first
// keeper of a server may come up before any other record tells of that, and whoever
// was to write it may have been killed.
func (m *Manager) keptServers(socket string) []identity.Ref {
	var refs []identity.Ref
	runs, _ := m.Store.Runs()
	for _, name := range runs {
		r := m.Store.Run(name)
		if run, err := r.Read(); err != nil || run.Tmux.Socket != socket {
			continue
		}
		tasks, _ := r.Tasks()
		for _, task := range tasks {
			if k, err := r.Task(task).ReadKeeper(); err == nil && k.Tmux != nil && !slices.ContainsFunc(refs, sameProcess(*k.Tmux)) {
				refs = append(refs, *k.Tmux)
			}
		}
	}
	return refs
}

// sameProcess reports whether a Ref is of the same process as another.
func sameProcess(a identity.Ref) func(identity.Ref) bool {
	return func(b identity.Ref) bool { return a.PID == b.PID && a.Boot == b.Boot && a.Start == b.Start }
}

// serverLives reports whether a server of this socket is written down and lives.
func (m *Manager) serverLives(socket string) (bool, error) {
	refs, err := m.servers(socket)
	owned := func(ref identity.Ref) bool { return m.finding(&ref).Verdict == identity.Owned }
	return slices.ContainsFunc(refs, owned) || slices.ContainsFunc(m.keptServers(socket), owned), err
}

// rebind looks for a living server of this socket in the records, and has it make
// its socket again (SIGUSR1, tmux(1)).
func (m *Manager) rebind(ctx context.Context, srv *tmux.Server) (bool, error) {
	refs, unknown := m.servers(srv.Socket)
	for _, ref := range append(refs, m.keptServers(srv.Socket)...) {
		if again, err := m.rebindOne(ctx, srv, ref); again || err != nil {
			return again, err
		}
	}
	return false, unknown
}

func (m *Manager) rebindOne(ctx context.Context, srv *tmux.Server, ref identity.Ref) (bool, error) {
	h, _ := m.Host.Verify(ref)
	if h == nil {
		return false, nil
	}
	defer h.Close()
	// One at a time: a server that binds anew drops those who are just connecting.
	unlock, err := lock(ctx, filepath.Join(m.Store.Home, "socket.lock"))
	if err != nil {
		return false, err
	}
	defer unlock()
	if srv.Answers(ctx) {
		return true, nil // another hob has just had it do so
	}
	usr1, err := signalNamed("USR1")
	if err == nil {
		err = srv.MakeFolder()
	}
	if err == nil {
		err = h.Signal(usr1)
	}
	if err == nil {
		err = srv.WaitAnswer(ctx)
	}
	if err != nil && h.Verify().Verdict != identity.Owned {
		return false, nil // it was about to end anyway
	}
	if err != nil {
		return false, fmt.Errorf("have the tmux server %d bind %s again: %w", ref.PID, srv.Socket, err)
	}
	return true, nil
}

// silent says which process a tmux server is that does not answer, in which state it
// is, and what a person can do about it. It is found by the records, else by its
// socket.
func (m *Manager) silent(err error, socket string, servers ...identity.Ref) error {
	if !errors.Is(err, tmux.ErrSilent) || advice(err, "") != "" {
		return err
	}
	for _, ref := range servers {
		if pin, _ := m.Host.Verify(ref); pin != nil {
			return itsState(err, pin, hangs)
		}
	}
	return m.silentGuest(err, socket, hangs)
}

// hangs is what to do about a server of hob's that is not stopped.
const hangs = "if it hangs, kill %d ends it with its panes, and each keeper stops its task"

// silentGuest is silent for a server that may be somebody else's; otherwise says what
// to do about one that is not stopped, and has a place for its number.
func (m *Manager) silentGuest(err error, socket, otherwise string) error {
	if !errors.Is(err, tmux.ErrSilent) {
		return err
	}
	pid, _, listenErr := listensOn(bg, socket)
	if listenErr != nil || pid <= 0 {
		return err
	}
	pin, openErr := m.Host.Open(pid)
	if openErr != nil {
		return err
	}
	return itsState(err, pin, otherwise)
}

func itsState(err error, pin identity.Handle, otherwise string) error {
	pid := pin.Ref().PID
	row, readErr := pin.Read(0)
	_ = pin.Close()
	p := &Problem{Msg: fmt.Sprintf("the tmux server is process %d", pid), Err: err}
	if otherwise != "" {
		p.Tip = fmt.Sprintf(otherwise, pid)
	}
	switch {
	case readErr != nil:
	case row.State == 'T':
		p.Msg, p.Tip = fmt.Sprintf("the tmux server, process %d, is stopped (T)", pid), fmt.Sprintf("kill -CONT %d lets it go on", pid)
	default:
		p.Msg += fmt.Sprintf(" (%c)", row.State)
	}
	return p
}
