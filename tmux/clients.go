package tmux

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/GianlucaP106/gotmux/gotmux"
)

// This file is the only one that uses gotmux (v0.5.0), and list-clients the only
// thing that it is used for. Everything else there meets one of its faults:
//
//   - targets are names that tmux matches by prefix (a stale kill of "web" ends
//     "web-prod"), so it makes, targets and kills nothing here;
//   - its lists of sessions, windows and panes carry titles, folders and command
//     lines, and a value with its separator in it ends the caller by a panic: a
//     program in a pane can do that with one escape sequence;
//   - its question for the server itself panics whenever a socket is given;
//   - a blank exit status is read as 0;
//   - stderr is dropped and there is no deadline.
//
// A client's row holds free text too: the names of its session, key table, user
// and terminal. So our own runner asks for these fields first, which also gives
// the deadline and tmux's words; gotmux reads only what it will not panic on.

// separator is what gotmux puts between the fields of a row.
const separator = "-:-"

// freeText are the fields of gotmux's list-clients that somebody else words.
var freeText = []string{
	"client_flags", "client_key_table", "client_last_session", "client_name", "client_session",
	"client_termname", "client_termfeatures", "client_termtype", "client_tty", "client_user",
}

// errFreeText is a client that gotmux cannot list.
var errFreeText = errors.New("an attached terminal's text cannot be parted into fields")

// Client is a terminal that is attached to the server.
type Client struct {
	PID     int
	TTY     string
	Session string // name of the session that it shows
	Control bool   // a program in control mode, not a terminal
}

// Clients lists the attached terminals. ErrNoServer when no server runs.
func (s *Server) Clients(ctx context.Context) ([]Client, error) {
	n, err := s.countClients(ctx)
	if err != nil || n == 0 {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	type answer struct {
		clients []Client
		err     error
	}
	done := make(chan answer, 1)
	go func() { // gotmux takes no context: a tmux that hangs is left behind
		clients, err := listClients(s.Socket)
		done <- answer{clients, err}
	}()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("list the terminals attached to %s: %w", s.Socket, ctx.Err())
	case a := <-done:
		return a.clients, a.err
	}
}

// countClients counts the clients, and refuses rows that gotmux would panic on.
func (s *Server) countClients(ctx context.Context) (int, error) {
	fields := "#{" + strings.Join(freeText, "}"+separator+"#{") + "}"
	out, err := s.run(ctx, "/", "display-message", "-p", "#{pid}", ";", "list-clients", "-F", fields)
	_, rows, answered := strings.Cut(out, "\n")
	if answered && errors.Is(err, ErrNoTarget) {
		return 0, nil // a server without sessions
	}
	if err != nil {
		return 0, err
	}
	return countRows(rows)
}

func countRows(rows string) (n int, err error) {
	for line := range strings.Lines(rows) {
		n++
		if strings.Count(line, separator) != len(freeText)-1 {
			return 0, fmt.Errorf("list the attached terminals: %w", errFreeText)
		}
	}
	return n, nil
}

// listClients asks gotmux. NewTmux would need a live server, so the socket is
// set directly. A client that came since the look above may still make it panic.
func listClients(socket string) (clients []Client, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("list the attached terminals: %w: %v", errFreeText, r)
		}
	}()
	tmux := &gotmux.Tmux{Socket: &gotmux.Socket{Path: socket}}
	rows, err := tmux.ListClients()
	if err != nil {
		return nil, fmt.Errorf("list the terminals attached to %s: %w", socket, err)
	}
	for _, c := range rows {
		clients = append(clients, Client{PID: int(c.Pid), TTY: c.Tty, Session: c.Session, Control: c.ControlMode})
	}
	return clients, nil
}
