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

// The signals of the keeper's own.
var (
	endSignals = []string{"HUP", "TERM", "INT", "QUIT"}
	// takenSignals it has no use for, and takes nevertheless: by them a Go program
	// ends, stops, or leaves them ignored. All the others Go catches by itself and
	// drops (os/signal, "Default behavior of signals in Go programs").
	takenSignals = []string{"ABRT", "PIPE", "TSTP", "TTIN", "TTOU", "CONT"}
)

// catchSignals takes every signal that can be taken. By Notify and never by
// Ignore: an ignored signal stays ignored in the command (execve(2)). tmux starts
// us with TTIN and TTOU ignored, and nohup(1) may have ignored HUP before that;
// what Go has a handler for, it sets to its default in the child. Each signal that
// is asked for costs two switches of threads, and there is a keeper in every pane:
// so none is asked for that Go catches without.
func catchSignals() *signals {
	s := &signals{end: make(chan os.Signal, 8), resize: make(chan os.Signal, 1)}
	rest := make(chan os.Signal, 1) // nobody reads it; what does not fit is dropped
	for n := syscall.Signal(1); n < 32; n++ {
		switch name := identity.SignalName(n); {
		case slices.Contains(endSignals, name):
			signal.Notify(s.end, n)
		case name == "WINCH":
			signal.Notify(s.resize, n)
		case slices.Contains(takenSignals, name):
			signal.Notify(rest, n)
		}
	}
	return s
}
