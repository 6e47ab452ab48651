package tasks

import (
	"context"
	"errors"

	"hob/identity"
	"hob/identity/cut"
	"hob/tmux"
)

// The end of hob's tmux server, with its last pane.

// endServer ends hob's tmux server when no pane is left in it, and returns the
// panes that are.
func (m *Manager) endServer(ctx context.Context) ([]tmux.Pane, error) {
	socket, err := m.socket()
	if err != nil {
		return nil, err
	}
	return m.endServerOn(ctx, socket)
}

func (m *Manager) endServerOn(ctx context.Context, socket string) ([]tmux.Pane, error) {
	srv, err := tmux.Open(socket)
	if err != nil {
		return nil, err
	}
	unlock, err := m.serverLock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	// The server itself decides whether it is empty. Where it is not, or did not
	// answer, its panes are listed: it may have lost its socket.
	if err := m.killServer(ctx, srv); err == nil {
		return nil, m.forgetSocket(srv)
	} else if errors.Is(err, tmux.ErrSilent) {
		refs, _ := m.servers(srv.Socket)
		return nil, m.silent(err, srv.Socket, refs...)
	}
	panes, err := m.livePanes(ctx, srv)
	if len(panes) > 0 {
		panes = m.closeDeadPanes(ctx, srv, panes)
	}
	if err != nil || len(panes) > 0 {
		return panes, err
	}
	err = m.killServer(ctx, srv)
	if errors.Is(err, tmux.ErrSessions) { // somebody made one since the panes were listed
		return m.listPanes(ctx, srv)
	}
	if err != nil && !errors.Is(err, tmux.ErrNoServer) {
		return nil, err
	}
	return nil, m.forgetSocket(srv)
}

// forgetSocket removes what a server that has ended leaves in the socket's folder.
// A server that the records name, lives, and has lost its socket binds it anew
// when it is asked: that one's is left.
func (m *Manager) forgetSocket(srv *tmux.Server) error {
	refs, err := m.servers(srv.Socket)
	if err != nil {
		return nil //nolint:nilerr // there may be one that the record would name
	}
	for _, ref := range refs {
		if v := m.finding(&ref).Verdict; v == identity.Owned || v == identity.Unverifiable {
			return nil
		}
	}
	_ = srv.ForgetOthers(m.now()) // what others have left is no fault of this verb
	return srv.Forget()
}

// killServer ends the server if it is empty, and waits for its process, so that the
// next `up` does not meet one that is about to end.
func (m *Manager) killServer(ctx context.Context, srv *tmux.Server) error {
	var pins []identity.Handle
	refs, _ := m.servers(srv.Socket)
	for _, ref := range refs {
		if h, _ := m.Host.Verify(ref); h != nil {
			pins = append(pins, h)
			defer h.Close()
		}
	}
	cut.Point("tmux", "kill-server")
	err := srv.KillEmpty(ctx)
	if err != nil || len(pins) == 0 {
		return m.silent(err, srv.Socket, refs...)
	}
	return m.Host.Wait(ctx, pins, m.Host.Now().Add(serverDeadline))
}
