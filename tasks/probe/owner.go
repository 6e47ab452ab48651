package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"hob/identity"
	"hob/sweep"
)

// strangerError is a port that somebody else holds.
type strangerError struct {
	pid  int // 0 when not known
	text string
}

func (e *strangerError) Error() string { return e.text }

// errNotAccepted is a connection that waits in the listener's queue.
var errNotAccepted = errors.New("the connection was not accepted")

// errElsewhere is a connection of ours that is not in the task's table. One that
// was reset is in none.
var errElsewhere = errors.New("the task is in another network namespace than hob: its port cannot be probed from here")

// listeners finds the task's listeners on a port, and errors if there is none,
// if somebody else's could answer in their place, or if that cannot be told.
func (a attempt) listeners(ctx context.Context, port int) ([]identity.Socket, error) {
	all, err := a.host.Sockets(ctx, a.subject.Command)
	if err != nil {
		return nil, fmt.Errorf("cannot tell who listens on port %d: %w", port, err)
	}
	on := listening(all, port)
	if len(on) == 0 {
		return nil, fmt.Errorf("nothing listens on port %d yet", port)
	}
	held, err := a.host.Holders(ctx, inodes(on), a.subject.Tree)
	if err != nil {
		return nil, fmt.Errorf("cannot tell who listens on port %d: %w", port, err)
	}
	ours, rivals := part(on, held, a.subject.Tree)
	if len(rivals) == 0 {
		return ours, nil
	}
	if len(held.Unreadable) > 0 {
		return nil, fmt.Errorf("cannot tell whether the listener on port %d is this task's: the open files of %s cannot be read",
			port, pids(held.Unreadable))
	}
	if len(ours) > 0 {
		return nil, a.stranger(ctx, rivals[0], fmt.Sprintf("port %d is also held by %%s, not by this task alone", port))
	}
	return nil, a.stranger(ctx, rivals[0], fmt.Sprintf("port %d is held by %%s, not by this task", port))
}

// listening are the sockets that listen on the port.
func listening(all []identity.Socket, port int) (on []identity.Socket) {
	for _, s := range all {
		if s.Listen && int(s.Local.Port()) == port {
			on = append(on, s)
		}
	}
	return on
}

func inodes(sockets []identity.Socket) (out []uint64) {
	for _, s := range sockets {
		if s.Inode != 0 {
			out = append(out, s.Inode)
		}
	}
	return out
}

// part tells the task's listeners from those of others that could take a
// connection meant for it. held says who of the tree has what open.
func part(on []identity.Socket, held identity.Holders, tree []int) (ours, rivals []identity.Socket) {
	var others []identity.Socket
	for _, s := range on {
		if len(held.ByInode[s.Inode]) > 0 || s.PID != 0 && slices.Contains(tree, s.PID) {
			ours = append(ours, s)
		} else {
			others = append(others, s)
		}
	}
	for _, s := range others {
		if len(ours) == 0 || slices.ContainsFunc(ours, func(o identity.Socket) bool {
			return compete(s.Local.Addr(), o.Local.Addr())
		}) {
			rivals = append(rivals, s)
		}
	}
	return ours, rivals
}

// compete reports whether two listeners on one port can answer for each other:
// one address is the same or stands for all of them, or both are what
// "localhost" may mean. A reverse proxy on the machine's outer address, before a
// server on loopback, does not compete with it.
func compete(a, b netip.Addr) bool {
	return a == b || a.IsUnspecified() || b.IsUnspecified() || a.IsLoopback() && b.IsLoopback()
}

// accepted waits until the connection was accepted by a socket that a process of
// the task has open. Until then the kernel shows its far end without an inode.
func (a attempt) accepted(ctx context.Context, conn net.Conn, rest pauser) error {
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		err := a.acceptor(ctx, conn)
		last := errors.Is(err, errElsewhere) || unfound(err) // or closed, before or between the two looks
		if !errors.Is(err, errNotAccepted) && !last {
			return err
		}
		if over := rest(ctx, pause); errors.Is(over, errHungUp) {
			return over
		} else if over != nil || last { // the reason is what the last look found
			return err
		}
	}
}

// unfound reports whether a socket was there, and nobody who holds it.
func unfound(err error) bool {
	var s *strangerError
	return errors.As(err, &s) && s.pid == 0
}

// acceptor looks once who accepted the connection.
func (a attempt) acceptor(ctx context.Context, conn net.Conn) error {
	near, far := addr(conn.LocalAddr()), addr(conn.RemoteAddr())
	all, err := a.host.Sockets(ctx, a.subject.Command)
	if ctx.Err() != nil {
		return fmt.Errorf("%w by anybody on %v in time", errNotAccepted, far)
	}
	if err != nil {
		return fmt.Errorf("cannot tell who answers on %v: %w", far, err)
	}
	peer, err := farEnd(all, near, far)
	if err != nil {
		return err
	}
	held, err := a.host.Holders(ctx, inodes([]identity.Socket{peer}), a.subject.Tree)
	switch {
	case len(held.ByInode[peer.Inode]) > 0 || peer.PID != 0 && slices.Contains(a.subject.Tree, peer.PID):
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w by anybody of this task on %v in time", errNotAccepted, far)
	case err != nil:
		return fmt.Errorf("cannot tell who answers on %v: %w", far, err)
	case len(held.Unreadable) > 0:
		return fmt.Errorf("cannot tell whether this task answers on %v: the open files of %s cannot be read", far, pids(held.Unreadable))
	}
	return a.stranger(ctx, peer, fmt.Sprintf("the connection to %v was accepted by %%s, not by this task", far))
}

// farEnd is the server's end of a connection that both ends of which must stand
// in one table: else the table is that of another network namespace.
func farEnd(all []identity.Socket, near, far netip.AddrPort) (identity.Socket, error) {
	var mine, found bool
	var peer identity.Socket
	for _, s := range all {
		switch {
		case s.Listen:
		case s.Local == near && s.Remote == far:
			mine = true
		case s.Local == far && s.Remote == near:
			peer, found = s, true
		}
	}
	switch {
	case !mine:
		return peer, errElsewhere
	case !found || peer.Inode == 0 && peer.PID == 0:
		// In the queue (or, with TCP_DEFER_ACCEPT, not even there), or closed already.
		return peer, fmt.Errorf("%w on %v: the server listens and takes no connection", errNotAccepted, far)
	}
	return peer, nil
}

// stranger names who holds a socket that the tree does not hold. format has one
// %s for them.
func (a attempt) stranger(ctx context.Context, s identity.Socket, format string) error {
	pid, unreadable := s.PID, 0
	if pid == 0 && s.Inode != 0 {
		held, err := a.host.Holders(ctx, []uint64{s.Inode}, nil)
		if err != nil {
			return &strangerError{text: fmt.Sprintf(format, "somebody")}
		}
		if by := held.ByInode[s.Inode]; len(by) > 0 {
			pid = slices.Min(by)
		}
		unreadable = len(held.Unreadable)
	}
	switch {
	case pid == 0 && unreadable > 0:
		return &strangerError{text: fmt.Sprintf(format, fmt.Sprintf("a process of uid %d whose open files cannot be read", s.UID))}
	case pid == 0:
		return &strangerError{text: fmt.Sprintf(format, "a process that cannot be found")}
	case a.descends(pid):
		return fmt.Errorf("pid %d of this task was not in the last look at its tree", pid)
	}
	return &strangerError{pid: pid, text: fmt.Sprintf(format, a.describe(pid))}
}

// descends reports whether pid is below the tree: a child that was started after
// the tree was last walked is no stranger, and not proven ours either.
func (a attempt) descends(pid int) bool {
	for range 64 {
		if slices.Contains(a.subject.Tree, pid) {
			return true
		}
		row, err := a.read(pid, 0)
		if err != nil || row.PPID < 2 {
			return false
		}
		pid = row.PPID
	}
	return false
}

func (a attempt) read(pid int, want identity.Field) (identity.Process, error) {
	h, err := a.host.Open(pid)
	if err != nil {
		return identity.Process{}, err
	}
	defer h.Close()
	return h.Read(want)
}

// describe names a process by its pid and as much of its command line as helps.
func (a attempt) describe(pid int) string {
	const most = 100
	row, err := a.read(pid, identity.WantArgs)
	if err != nil {
		return fmt.Sprintf("pid %d", pid)
	}
	text := sweep.CommandLine(row.Args) // a stranger's: it must not write to a terminal
	if text == "" {
		text = sweep.CommandLine([]string{row.Comm})
	}
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return fmt.Sprintf("pid %d (%s)", pid, text)
}

func pids(list []int) string {
	words := make([]string, len(list))
	for i, pid := range list {
		words[i] = fmt.Sprint(pid)
	}
	if len(words) == 1 {
		return "pid " + words[0]
	}
	return "pids " + strings.Join(words, ", ")
}

// addr is a connection's end as the socket tables show it.
func addr(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
}
