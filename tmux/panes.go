package tmux

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// Pane is one pane as tmux describes it.
type Pane struct {
	ServerPID   int
	Session     string // "$3"
	SessionName string
	Window      string // "@4"
	WindowName  string
	ID          string // "%7"
	PID         int    // of the pane's first process; stale when Dead
	TTY         string
	Dead        bool
	DeadStatus  *int   // null when tmux does not know: Debian's 3.3a loses quick exits
	DeadSignal  string // as tmux says it, a number or a name; "" when it does not know
}

// listed is a row of Panes: nine fields without free text, then the length in
// bytes of the session's name and both names, which a person may have changed
// to anything.
const listed = spawned + "|#{pane_dead}|#{pane_dead_status}|#{pane_dead_signal}|#{n:session_name}|#{session_name}|#{window_name}"

// Panes lists every pane of the server; a pane that a person linked into a
// second session is listed once for each. ErrNoServer when none runs.
func (s *Server) Panes(ctx context.Context) ([]Pane, error) {
	if err := s.there(); err != nil {
		return nil, err
	}
	// The pid comes first as a proof that the server answered: list-panes of a
	// server without sessions fails.
	out, err := s.run(ctx, "/", "display-message", "-p", "#{pid}", ";", "list-panes", "-a", "-F", listed)
	answer, rows, _ := strings.Cut(out, "\n")
	if err != nil {
		if _, perr := parseID(answer); perr == nil && errors.Is(err, ErrNoTarget) {
			return nil, nil
		}
		return nil, err
	}
	if _, err := parseID(answer); err != nil {
		return nil, fmt.Errorf("list the panes of %s: the server's pid: %w", s.Socket, err)
	}
	panes, err := parsePanes(rows)
	if err != nil {
		return nil, fmt.Errorf("list the panes of %s: %w", s.Socket, err)
	}
	return panes, nil
}

// there is ErrNoServer where the socket is not there: tmux would say the same, and
// take a process to say it. Any other doubt is left to tmux.
func (s *Server) there() error {
	if err := s.mayRun([]string{"list-panes"}); err != nil {
		return err
	}
	if _, err := os.Lstat(s.Socket); errors.Is(err, fs.ErrNotExist) {
		return &Error{Args: []string{"list-panes"}, Err: fmt.Errorf("%w: %w", ErrNoServer, err)}
	}
	return nil
}

// PID is the server's process id. ErrNoServer when none runs.
func (s *Server) PID(ctx context.Context) (int, error) {
	out, err := s.run(ctx, "/", "display-message", "-p", "#{pid}")
	if err != nil {
		return 0, err
	}
	pid, err := parseID(strings.TrimSpace(out))
	if err != nil {
		return 0, fmt.Errorf("ask the tmux server on %s for its pid: %w", s.Socket, err)
	}
	return pid, nil
}

// Text is what stands in a pane and its history, long lines joined: what a
// program said that died before it could write anywhere else.
func (s *Server) Text(ctx context.Context, id string) (string, error) {
	if err := checkID("pane", paneID, id); err != nil {
		return "", err
	}
	return s.run(ctx, "/", "capture-pane", "-p", "-J", "-S", "-", "-t", id)
}

// StartCommand is the command line that a pane was made with, as tmux words it; ""
// when there is no such pane, or tmux does not know.
func (s *Server) StartCommand(ctx context.Context, id string) (string, error) {
	if err := checkID("pane", paneID, id); err != nil {
		return "", err
	}
	out, err := s.run(ctx, "/", "display-message", "-p", "-t", id, "#{pane_id} #{pane_start_command}")
	if err != nil {
		return "", err
	}
	command, _ := strings.CutPrefix(out, id+" ") // a target that is gone answers with blank fields
	if command == out {
		return "", nil
	}
	return strings.TrimSuffix(command, "\n"), nil
}

// parsePanes reads the rows of Panes. One row that cannot be read makes the
// whole list unreadable: a list that lacks a pane would say that it is gone.
func parsePanes(out string) ([]Pane, error) {
	var panes []Pane
	for line := range strings.Lines(out) {
		p, err := parsePane(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("row %q: %w", line, err)
		}
		panes = append(panes, p)
	}
	return panes, nil
}

func parsePane(row string) (Pane, error) {
	f := strings.SplitN(row, "|", 11)
	if len(f) != 11 {
		return Pane{}, fmt.Errorf("%d fields instead of 11", len(f))
	}
	p, err := parseIDs(f[:6])
	if err != nil {
		return Pane{}, err
	}
	p.Dead = f[6] == "1"
	if p.Dead {
		p.DeadStatus, p.DeadSignal = parseStatus(f[7]), f[8]
	}
	p.SessionName, p.WindowName = splitNames(f[9], f[10])
	return p, nil
}

func parseSpawned(out string) (Pane, error) {
	row, _, _ := strings.Cut(out, "\n")
	if row == "" {
		return Pane{}, errors.New("tmux printed no ids")
	}
	f := strings.Split(row, "|")
	if len(f) != 6 {
		return Pane{}, fmt.Errorf("tmux printed %q instead of the pane's ids", row)
	}
	return parseIDs(f)
}

// parseIDs reads the six fields that a spawn prints. A dead pane's tty and, from
// 3.8 on, its pid are blank.
func parseIDs(f []string) (Pane, error) {
	server, err := parseID(f[0])
	if err != nil {
		return Pane{}, fmt.Errorf("the server's pid: %w", err)
	}
	p := Pane{ServerPID: server, Session: f[1], Window: f[2], ID: f[3], TTY: f[5]}
	if !sessionID().MatchString(p.Session) || !windowID().MatchString(p.Window) || !paneID().MatchString(p.ID) {
		return Pane{}, fmt.Errorf("ids %q, %q, %q", p.Session, p.Window, p.ID)
	}
	if f[4] != "" {
		if p.PID, err = parseID(f[4]); err != nil {
			return Pane{}, fmt.Errorf("the pane's pid: %w", err)
		}
	}
	return p, nil
}

// parseID reads a process id.
func parseID(s string) (int, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0, err
	}
	if n < 1 {
		return 0, fmt.Errorf("%d is no process id", n)
	}
	return int(n), nil
}

// parseStatus reads an exit status; blank means that tmux does not know it.
func parseStatus(s string) *int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return nil
	}
	return &n
}

// splitNames parts "session|window" where the session's name is length bytes
// long. A length that does not fit (a tmux that does not know n:, a name that
// was altered on its way) leaves the first "|" as the border.
func splitNames(length, names string) (session, window string) {
	n, err := strconv.Atoi(length)
	if err == nil && n >= 0 && n < len(names) && names[n] == '|' {
		return names[:n], names[n+1:]
	}
	session, window, _ = strings.Cut(names, "|")
	return session, window
}
