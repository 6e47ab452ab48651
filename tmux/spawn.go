package tmux

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Spawn says what pane to make.
type Spawn struct {
	Session string   // its name, if the session is to be made; else its id "$3", or "=name" for just that name
	New     bool     // make the session
	Join    bool     // start no server: ErrNoServer where none answers
	Window  string   // name of a new window; or, with Split, what to split: the id "@4", "%7" or "@4.%7"
	Index   int      // of a new window, from 1, so that windows have an order; 0: the next one
	Split   bool     // split Window instead of making one
	Before  bool     // the new pane comes in front of the split one, else after it
	Layout  string   // of the split window, one of Layouts; "" is tiled
	Dir     string   // "" is "/": the keeper changes to the task's folder itself
	Argv    []string // at least two elements, executed as they are
	Width   int      // 0: 200
	Height  int      // 0: 50
}

// Layouts are tmux's own arrangements of a window's panes.
var Layouts = []string{"tiled", "even-horizontal", "even-vertical", "main-horizontal", "main-vertical"}

// setup makes the server and its global options what hob needs, before the pane
// exists, in the same invocation: a pane that ends at once is lost otherwise.
// -q lets a tmux that does not know an option pass over it.
var setup = []string{
	"set-option", "-sq", "exit-empty", "off", ";", // the server is ended by hob, with its last pane
	"set-option", "-gwq", "remain-on-exit", "on", ";", // the exit status of a quick exit is read from the dead pane
	"set-option", "-gwq", "automatic-rename", "off", ";", // windows keep the names that hob gave
	"set-option", "-gwq", "allow-rename", "off", ";",
	"set-option", "-gq", "history-limit", "10000", ";", // the whole output is in the task's log
	"set-option", "-gq", "update-environment", "", ";", // an attaching terminal brings nothing with it
	"set-option", "-gq", "default-command", "", ";",
	"set-option", "-gq", "destroy-unattached", "off", ";",
	"set-option", "-gq", "detach-on-destroy", "on", ";",
}

// spawned is what a spawn prints: ids and a path that the system made, no free text.
const spawned = "#{pid}|#{session_id}|#{window_id}|#{pane_id}|#{pane_pid}|#{pane_tty}"

// Spawn makes a pane in one tmux invocation (server options, session or window,
// ids printed), starting the server when there is none.
//
// An error that is a context error leaves open whether the pane was made; Panes
// tells. With New and a running server whose socket file was deleted, a second
// server is started and the first one orphaned, unless Join says that there is
// one: who has written a server down looks first whether it lives, has it bind
// its socket anew (SIGUSR1, see [Server.WaitAnswer]), and then joins it.
func (s *Server) Spawn(ctx context.Context, r Spawn) (Pane, error) {
	panes, err := s.SpawnAll(ctx, []Spawn{r})
	if len(panes) == 1 {
		return panes[0], nil
	}
	return Pane{}, err
}

// SpawnLine is the argv that Spawn would run, to be shown. Nothing in it is checked.
func (s *Server) SpawnLine(r Spawn) []string {
	return slices.Concat([]string{s.Bin}, s.global(), setup, r.command())
}

// check refuses what tmux would misread, or take without doing it.
func (r Spawn) check() error {
	if len(r.Argv) < 2 {
		// tmux gives a single argument to a shell.
		return fmt.Errorf("%w: a pane's command needs at least two arguments, has %d", ErrName, len(r.Argv))
	}
	if slices.ContainsFunc(r.Argv, func(a string) bool { return strings.ContainsRune(a, 0) }) {
		return fmt.Errorf("%w: an argument of the pane's command holds a NUL byte", ErrName)
	}
	if r.Dir != "" {
		// tmux starts the pane in the home folder if it cannot enter this one.
		if info, err := os.Stat(r.Dir); err != nil {
			return fmt.Errorf("start a pane in %s: %w", r.Dir, err)
		} else if !info.IsDir() {
			return fmt.Errorf("start a pane in %s: not a folder", r.Dir)
		}
	}
	return errors.Join(r.checkSession(), r.checkWindow())
}

func (r Spawn) checkSession() error {
	switch {
	case r.New:
		return checkName("session", r.Session)
	case r.Split && r.Session == "":
		return nil // the window's id says it
	case strings.HasPrefix(r.Session, "="):
		return checkName("session", r.Session[1:])
	}
	return checkID("session", sessionID, r.Session)
}

func (r Spawn) checkWindow() error {
	switch {
	case r.Split && r.New:
		return fmt.Errorf("%w: a new session has no window to split", ErrName)
	case r.Split && r.Layout != "" && !slices.Contains(Layouts, r.Layout):
		return fmt.Errorf("%w: layout %q: one of %s", ErrName, r.Layout, strings.Join(Layouts, ", "))
	case r.Split:
		return checkSplit(r.Window)
	case r.Window == "":
		return nil
	}
	return checkWindowName(r.Window)
}

// checkSplit checks the ids of a window, of a pane, or of both.
func checkSplit(target string) error {
	window, pane, both := strings.Cut(target, ".")
	switch {
	case both && paneID().MatchString(pane), !paneID().MatchString(target):
		return checkID("window", windowID, window)
	case both:
		return checkID("pane", paneID, pane)
	}
	return nil
}

// splits is the target of a split. Ids begin anew with a server: in a session that
// is named they are found only if they are of that session.
func (r Spawn) splits() string {
	if strings.HasPrefix(r.Session, "=") {
		return r.Session + ":" + r.Window
	}
	return r.Window
}

// command is the tmux command that makes the pane. The folder is not in it (-c
// expands formats and runs "#(…)"): tmux takes it from the client's own.
func (r Spawn) command() []string {
	var args []string
	switch {
	case r.Split:
		args = r.split()
	case r.New:
		args = []string{"new-session", "-d", "-s", r.Session, "-x", size(r.Width, 200), "-y", size(r.Height, 50)}
		if r.Index > 0 {
			args = append([]string{"set-option", "-gq", "base-index", strconv.Itoa(r.Index - 1), ";"}, args...)
		}
	case r.Index > 0:
		args = []string{"new-window", "-d", "-t", r.Session + ":" + strconv.Itoa(r.Index-1)}
	default:
		args = []string{"new-window", "-d", "-t", r.Session + ":"}
	}
	if !r.Split && r.Window != "" {
		args = append(args, "-n", literal(r.Window))
	}
	args = append(args, "-P", "-F", spawned, "--")
	args = append(args, literals(r.Argv)...)
	switch {
	case r.Split:
		args = append(args, ";", "select-layout", "-t", r.splits(), cmp.Or(r.Layout, "tiled"))
	case r.New && r.Index > 0:
		args = append(args, ";", "set-option", "-gq", "base-index", "0")
	}
	return args
}

// split is the command for a pane in a window that is there. It is tiled before,
// whatever its layout: without that the sixth pane has no room.
func (r Spawn) split() []string {
	args := []string{"select-layout", "-t", r.splits(), "tiled", ";", "split-window", "-d", "-t", r.splits()}
	if r.Before {
		args = append(args, "-b")
	}
	return args
}

// names are the names that the spawn gave; a split has those of its window,
// which Panes tells.
func (r Spawn) names() (session, window string) {
	if r.New {
		session = r.Session
	}
	if !r.Split {
		window = r.Window
	}
	return session, window
}

func size(n, otherwise int) string {
	if n <= 0 {
		n = otherwise
	}
	return strconv.Itoa(n)
}
