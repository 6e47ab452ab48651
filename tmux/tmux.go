// Package tmux drives hob's own tmux server: sessions, windows, panes, targets.
// It never touches the user's server or configuration, and acts only on ids.
//
// Every command is one run of the tmux program with `-S SOCKET -f /dev/null`, an
// environment of its own (a server keeps its first client's for life), a
// deadline, and tmux's own words kept in [Error]. Exit code 0 proves nothing
// here: some tmux versions answer 0 when the socket's folder is missing or the
// target is gone, so whatever must have happened has to print its ids.
//
// spawn*.go makes panes and kill.go ends them, panes.go and survey.go list them,
// attach.go and dress.go are for the person who looks at them, guest.go is for servers
// that are somebody else's and only read. run.go is the one place that runs tmux.
//
// Ids restart with a new server. Whoever writes a pane down writes the server's
// process down with it, and checks that before acting on the id.
package tmux

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Errors, to be matched with errors.Is.
var (
	ErrNoTmux     = errors.New("tmux is not installed")
	ErrTooOld     = errors.New("tmux is too old")
	ErrNoServer   = errors.New("no tmux server on the socket")
	ErrNoTarget   = errors.New("no such tmux session, window or pane")
	ErrOther      = errors.New("the tmux id belongs to another pane now")
	ErrExists     = errors.New("a tmux session has this name")
	ErrIndex      = errors.New("another window has this index")
	ErrName       = errors.New("not usable as a tmux name or id")
	ErrSocketPath = errors.New("socket path cannot be used")
	ErrMismatch   = errors.New("the tmux server is of another version than the tmux program")
	// ErrLost is a connection that broke while the server may be well: a client
	// up to 3.5a says "server exited unexpectedly" of a healthy server from 3.6
	// on. It never means that there is no server.
	ErrLost = errors.New("the connection to the tmux server was lost")
	// ErrSilent is a server that is there and has not answered in time: it is
	// stopped, or hangs. It is a context.DeadlineExceeded, too.
	ErrSilent = errors.New("the tmux server does not answer")
	// ErrSessions is a server that still has sessions.
	ErrSessions = errors.New("the tmux server has sessions")
)

// Error is a tmux command that failed, with tmux's own words.
type Error struct {
	Args   []string
	Stderr string
	Err    error // cause: one of the errors above, a context error, or *exec.ExitError
}

// Error names the commands, the cause and what tmux said. The arguments stay in
// Args: in a line for people they would hide the words that matter.
func (e *Error) Error() string {
	said := strings.TrimSpace(e.Stderr)
	if said == "" {
		return fmt.Sprintf("tmux %s: %v", e.verb(), e.Err)
	}
	return fmt.Sprintf("tmux %s: %v (tmux: %s)", e.verb(), e.Err, said)
}

func (e *Error) Unwrap() error { return e.Err }

// verb is the last command of the sequence, the one that the others prepare.
func (e *Error) verb() string {
	verb, start := "", true
	for _, a := range e.Args {
		if a == "--" {
			break
		}
		if start {
			verb = a
		}
		start = a == ";"
	}
	return verb
}

// Server is the tmux server on one socket; it may not be running.
type Server struct {
	Socket string
	Bin    string // path of the tmux program

	guest bool // somebody else's: it is only read
}

// New checks the tmux program (present, ≥ MinVersion) and the socket path
// (≤ 100 bytes, in a folder that is 0700 and ours; a missing folder is made).
// It starts nothing. Whoever makes panes begins here.
func New(ctx context.Context, socket string) (*Server, error) {
	s, err := Open(socket)
	if err != nil {
		return nil, err
	}
	if err := makeFolder(socket); err != nil {
		return nil, err
	}
	v, err := programVersion(ctx, s.Bin)
	if err != nil {
		return nil, err
	}
	return s, v.check(s.Bin)
}

// Open is New for those who only look at or end what is there: it makes no
// folder and does not run the program to ask its version.
func Open(socket string) (*Server, error) {
	bin, err := exec.LookPath("tmux")
	if err != nil {
		return nil, fmt.Errorf("%w: install tmux %s or newer (%w)", ErrNoTmux, MinVersion, err)
	}
	if err := checkSocket(socket); err != nil {
		return nil, err
	}
	return &Server{Socket: socket, Bin: bin}, nil
}
