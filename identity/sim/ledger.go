//go:build unix

package sim

import (
	"fmt"
	"syscall"
	"time"
)

// Ledger is what really happened, by true identities.
type Ledger struct {
	Deliveries []Delivery
	Saves      []Save
	Freezes    []Freeze
}

// Delivery is one signal that the caller sent.
type Delivery struct {
	Step   int // the Host call in which it was sent
	Turn   int // the invocation that sent it
	At     time.Time
	Sig    syscall.Signal
	To     *Process // who really got it, nil when nobody had the number
	PID    int
	Alive  bool          // it was alive then
	Denied bool          // the kernel refused it (EPERM): nothing was delivered
	Spared bool          // it was not to be signalled then, though of the tree
	Below  int           // how many living processes were below it
	Early  time.Duration // how long the caller had been waiting for its cgroup to be frozen, which it was not yet; 0: it was not, or it was through
}

// Freeze is one write of the caller's to a cgroup.freeze.
type Freeze struct {
	At     time.Time
	On     bool
	Theirs bool // somebody else had frozen it, and the caller could see that
}

// Save is one capture that the test's Effects wrote to the simulated disk.
type Save struct {
	Step, Turn int
	Serials    []uint64 // who was in it, by the truth
}

func (d Delivery) String() string {
	return fmt.Sprintf("step %d, invocation %d: %v to pid %d = %v, tree %q", d.Step, d.Turn, d.Sig, d.PID, d.To, d.To.tree)
}

// Strays are the signals that were sent to a process outside the tree, or that
// reached a spared one of it, dead or alive.
func (l *Ledger) Strays(tree string) []Delivery {
	var out []Delivery
	for _, d := range l.Deliveries {
		if d.To != nil && (d.To.tree != tree || d.Spared && !d.Denied) {
			out = append(out, d)
		}
	}
	return out
}

// Saved is for Effects to say that a capture is on the disk now.
func (w *World) Saved(refs []identityRef) {
	s := Save{Step: w.step, Turn: w.turn}
	for _, r := range refs {
		if p := w.Truth(r); p != nil {
			s.Serials = append(s.Serials, p.serial)
		}
	}
	w.ledger.Saves = append(w.ledger.Saves, s)
}

// kind of an event in the trace.
type kind int

const (
	evFork kind = iota
	evExec
	evExit
	evReap
	evReparent
	evSetsid
	evThread
	evHeadOff
	evSignal
	evSent
	evCut
	evReboot
	evNote
)

var kindNames = [...]string{"fork", "exec", "exit", "reaped", "reparented to", "setsid", "thread", "leader thread ended", "signal from others", "signal from the caller", "caller cut", "reboot", ""}

// event is kept as numbers, since a trace is made for every schedule and read
// for those that fail.
type event struct {
	step int
	at   time.Duration
	kind kind
	p    *Process
	pid  int // of its parent at the time
	n    int
	text string
}

func (w *World) note(k kind, p *Process, n int) {
	e := event{step: w.step, at: w.now, kind: k, p: p, n: n}
	if p != nil && p.parent != nil {
		e.pid = p.parent.pid
	}
	w.events = append(w.events, e)
}

// Note adds a line to the trace.
func (w *World) Note(format string, args ...any) {
	w.events = append(w.events, event{step: w.step, at: w.now, kind: evNote, text: fmt.Sprintf(format, args...)})
}

// Trace is everything that happened, one line an event.
func (w *World) Trace() []string {
	lines := make([]string, 0, len(w.events))
	for _, e := range w.events {
		line := fmt.Sprintf("%5d %10v ", e.step, e.at-time.Minute)
		if e.p != nil {
			line += fmt.Sprintf("%v ppid %d: ", e.p, e.pid)
		}
		line += kindNames[e.kind] + e.text
		if e.kind == evSignal || e.kind == evSent {
			line += fmt.Sprintf(" %v", syscall.Signal(e.n))
		} else if e.n != 0 {
			line += fmt.Sprintf(" %d", e.n)
		}
		lines = append(lines, line)
	}
	return lines
}
