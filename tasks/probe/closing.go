package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"hob/identity"
)

// errHungUp is a connection that was taken and closed before it could be seen whose
// socket took it.
var errHungUp = errors.New("the server closed the connection at once")

// port checks that the task's port is answered, and by the task. Without a port
// there is nothing to check.
func (a attempt) port(ctx context.Context, port int) error {
	if port == 0 {
		return nil
	}
	conn, err := a.connect(ctx, target{port: port})
	if errors.Is(err, syscall.ECONNRESET) && !a.check.AnyOwner {
		return a.closing(ctx, port)
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	if a.check.AnyOwner {
		return nil
	}
	if err = a.accepted(ctx, conn, hearing(conn)); errors.Is(err, errHungUp) {
		return a.closing(ctx, port)
	}
	return err
}

// closing is for a server that says nothing and closes each connection, as some do
// to whoever does not speak first. What took the connection is gone before it can
// be looked up; but a connection can only be taken from a socket that listens, and
// nobody but the task has one, before as after.
func (a attempt) closing(ctx context.Context, port int) error {
	before, err := a.listeners(ctx, port)
	if err != nil {
		return err
	}
	if err := hangsUp(ctx, reach(before), port); err != nil {
		return err
	}
	after, err := a.listeners(ctx, port)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(before, after, sameSocket) {
		return fmt.Errorf("%w, and who listens on port %d has changed meanwhile", errHungUp, port)
	}
	return nil
}

func sameSocket(a, b identity.Socket) bool {
	return a.Inode == b.Inode && a.PID == b.PID && a.Local == b.Local
}

// hangsUp connects and waits until the far end closes. A connection that is reset
// while it is made was there already: without a listener it is refused.
func hangsUp(ctx context.Context, at []netip.Addr, port int) error {
	conn, err := dial(ctx, at, port)
	if errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	for hear := hearing(conn); ; {
		if err := hear(ctx, 100*time.Millisecond); errors.Is(err, errHungUp) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%w on %v: the server listens and takes no connection", errNotAccepted, conn.RemoteAddr())
		}
	}
}

// pauser waits a little between two looks at who accepted a connection. An error
// ends the looking.
type pauser func(ctx context.Context, pause time.Duration) error

// resting is a pauser of a connection that somebody else reads from.
func resting(ctx context.Context, pause time.Duration) error {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// hearing is a pauser that listens meanwhile to what the far end does: whether it
// closes the connection. What it says is of no interest.
func hearing(conn net.Conn) pauser {
	var one [1]byte
	return func(ctx context.Context, pause time.Duration) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := time.Now().Add(pause)
		if limit, ok := ctx.Deadline(); ok && limit.Before(end) {
			end = limit
		}
		if err := conn.SetReadDeadline(end); err != nil {
			return err
		}
		switch _, err := conn.Read(one[:]); {
		case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
			return errHungUp
		case err == nil: // it speaks, so it was accepted: the next look sees by whom
			return resting(ctx, time.Millisecond)
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		}
		return ctx.Err()
	}
}
