package tasks

import (
	"os"
	"os/signal"
	"slices"
	"syscall"

	"hob/identity"
)

// signals are what the keeper is told by signals.
type signals struct {
	end    chan os.Signal // HUP, TERM, INT, QUIT
	resize chan os.Signal // WINCH
}

// catchSignals takes every signal that can be taken. By Notify and never by
// Ignore: an ignored signal stays ignored in the command (execve(2)). For the
// same reason it takes those that the keeper has no use for: tmux starts us with
// TTIN and TTOU ignored, and nohup(1) may have ignored HUP before that; what Go
// has a handler for, it sets to its default in the child.
func catchSignals() *signals {
	s := &signals{end: make(chan os.Signal, 8), resize: make(chan os.Signal, 1)}
	rest := make(chan os.Signal, 1) // nobody reads it; what does not fit is dropped
	for n := syscall.Signal(1); n < 65; n++ {
		switch name := identity.SignalName(n); {
		case slices.Contains([]string{"KILL", "STOP", "URG"}, name): // cannot be caught; the Go runtime's own
		case slices.Contains([]string{"HUP", "TERM", "INT", "QUIT"}, name):
			signal.Notify(s.end, n)
		case name == "WINCH":
			signal.Notify(s.resize, n)
		default:
			signal.Notify(rest, n)
		}
	}
	return s
}
