package tmux

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// ErrReadOnly is a command that would change a server that is somebody else's.
var ErrReadOnly = errors.New("this tmux server is only read")

// Guest is Open for a server that a person has started, wherever its socket is:
// its folder may be anybody's, so whoever asks finds out by the socket's peer whose
// server answers. Only commands that read are run there.
func Guest(socket string) (*Server, error) {
	bin, err := exec.LookPath("tmux")
	if err != nil {
		return nil, fmt.Errorf("%w: install tmux %s or newer (%w)", ErrNoTmux, MinVersion, err)
	}
	if !filepath.IsAbs(socket) {
		return nil, fmt.Errorf("%w: %q is not an absolute path", ErrSocketPath, socket)
	}
	return &Server{Socket: socket, Bin: bin, guest: true}, nil
}

// reads reports whether the command at the front changes nothing of a server.
// Without -p a message is shown to the attached terminals, and what was captured
// becomes one of the server's buffers.
func reads(args []string) bool {
	switch args[0] {
	case "list-panes", "list-sessions":
		return true
	case "capture-pane", "display-message":
		return len(args) > 1 && args[1] == "-p"
	}
	return false
}

// mayRun refuses a socket that cannot be used, and on somebody else's server all
// that does not only read.
func (s *Server) mayRun(args []string) error {
	if !s.guest {
		return checkSocket(s.Socket)
	}
	start := true
	for i, a := range args {
		if start && !reads(args[i:]) {
			return fmt.Errorf("tmux %s on %s: %w", a, s.Socket, ErrReadOnly)
		}
		start = a == ";"
	}
	return nil
}

// UserSocket is where the tmux server is that a person means who says nothing: the
// one whose pane the caller is in ($TMUX), else the default one, as tmux finds it.
func UserSocket(getenv func(string) string) string {
	if head, _, ok := cutLast(getenv("TMUX")); ok {
		if path, _, ok := cutLast(head); ok && filepath.IsAbs(path) {
			return path
		}
	}
	dir := getenv("TMUX_TMPDIR")
	if info, err := os.Stat(dir); dir == "" || err != nil || !info.IsDir() {
		dir = "/tmp"
	}
	return filepath.Join(dir, "tmux-"+strconv.Itoa(os.Geteuid()), "default")
}

// IsPane reports whether a word is the id of a pane ("%7").
func IsPane(id string) bool { return paneID().MatchString(id) }

// SameSocket reports whether two paths are one socket.
func SameSocket(a, b string) bool { return resolved(a) == resolved(b) }

// CaptureCommand is what a person types to see what stands in a pane.
func CaptureCommand(socket, id string) string {
	return fmt.Sprintf("tmux -S %s capture-pane -p -J -S - -t %s", socket, id)
}
