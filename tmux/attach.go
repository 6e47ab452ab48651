package tmux

import (
	"path/filepath"
	"strconv"
	"strings"
)

// AttachArgs is the argv (and the environment changes) with which a terminal
// attaches to a pane: attach-session, or switch-client when it is already a
// client of this server. insideTMUX is the caller's $TMUX.
//
// In another tmux's pane $TMUX and $TMUX_PANE must go, or tmux refuses to nest;
// within hob's own they must stay, since they name the client to switch.
func (s *Server) AttachArgs(pane Pane, insideTMUX string) (argv []string, unset []string) {
	// -u: a terminal of today is UTF-8, and a container's shell often has no
	// locale, in which tmux would draw "_" for all but ASCII.
	// -N: attach-session would start a server where the socket has just been deleted.
	argv = []string{s.Bin, "-N", "-u", "-S", s.Socket, "-f", "/dev/null"}
	target := pane.Session + ":" + pane.Window + "." + pane.ID
	if s.inside(pane, insideTMUX) {
		return append(argv, "switch-client", "-t", target), nil
	}
	return append(argv, "attach-session", "-t", target), []string{"TMUX", "TMUX_PANE"}
}

// inside reports whether $TMUX ("socket,pid,session") names this very server.
func (s *Server) inside(pane Pane, tmux string) bool {
	head, _, ok := cutLast(tmux)
	if !ok {
		return false
	}
	socket, pid, ok := cutLast(head)
	if !ok || resolved(socket) != resolved(s.Socket) {
		return false
	}
	return pane.ServerPID == 0 || pid == strconv.Itoa(pane.ServerPID)
}

// cutLast parts a text at its last comma.
func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndex(s, ",")
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}
