// Package tmux drives hob's own tmux server: sessions, windows, panes, targets.
// It never touches the user's server or configuration, and acts only on ids.
package tmux

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// MinVersion is the oldest tmux that hob works with.
const MinVersion = "3.2"

// Errors, to be matched with errors.Is.
var (
	ErrNoTmux     = errors.New("tmux is not installed")
	ErrTooOld     = errors.New("tmux is too old")
	ErrNoServer   = errors.New("no tmux server on the socket")
	ErrNoTarget   = errors.New("no such tmux session, window or pane")
	ErrSocketPath = errors.New("socket path cannot be used")
)

// Error is a tmux command that failed, with tmux's own words.
type Error struct {
	Args   []string
	Stderr string
	Err    error // cause: one of the errors above, a context error, or *exec.ExitError
}

func (e *Error) Error() string {
	return fmt.Sprintf("tmux %s: %s: %v", strings.Join(e.Args, " "), strings.TrimSpace(e.Stderr), e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Server is the tmux server on one socket; it may not be running.
type Server struct {
	Socket string
	Bin    string // path of the tmux program
}

// New checks the tmux program (present, ≥ MinVersion) and the socket path
// (≤ 100 bytes, in a folder that is 0700 and ours). It starts nothing.
func New(ctx context.Context, socket string) (*Server, error) { panic("not written yet") }

// DefaultSocket is where the server of a state folder listens:
// $XDG_RUNTIME_DIR/hob/<hash>.sock, else hob-<uid>/<hash>.sock in the temp folder.
func DefaultSocket(home string, getenv func(string) string) (string, error) { panic("not written yet") }

// Spawn says what pane to make.
type Spawn struct {
	Session string   // its name, if the session is to be made; else its id "$3"
	New     bool     // make the session
	Window  string   // name of a new window; or, with Split, the id "@4" or pane id "%7" to split
	Split   bool     // split Window instead of making one
	Dir     string   // "" is "/": the keeper changes to the task's folder itself
	Argv    []string // at least two elements, executed as they are
	Width   int      // 0: 200
	Height  int      // 0: 50
}

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
	DeadStatus  *int   // null when tmux does not know
	DeadSignal  string // "" when it does not know
}

// Spawn makes a pane in one tmux invocation (server options, session or window,
// ids printed), starting the server when there is none.
func (s *Server) Spawn(ctx context.Context, r Spawn) (Pane, error) { panic("not written yet") }

// Panes lists every pane of the server. ErrNoServer when none runs.
func (s *Server) Panes(ctx context.Context) ([]Pane, error) { panic("not written yet") }

// PID is the server's process id. ErrNoServer when none runs.
func (s *Server) PID(ctx context.Context) (int, error) { panic("not written yet") }

// KillPane kills the pane with this id ("%7"). ErrNoTarget when there is none.
func (s *Server) KillPane(ctx context.Context, id string) error { panic("not written yet") }

// KillServer ends the server and waits until its socket answers no more.
func (s *Server) KillServer(ctx context.Context) error { panic("not written yet") }

// AttachArgs is the argv (and the environment changes) with which a terminal
// attaches to a pane: attach-session, or switch-client when it is already a client of this server.
func (s *Server) AttachArgs(pane Pane, insideTMUX string) (argv []string, unset []string) {
	panic("not written yet")
}
