//go:build unix

package sim

import (
	"slices"
	"syscall"
	"time"
)

func bit(s syscall.Signal) uint64 { return 1 << (uint(s) - 1) }

// Kill delivers a signal from somebody who is not the caller (a person, the
// terminal, the OOM killer). Tests use it to end keepers and servers by force.
func (w *World) Kill(p *Process, sig syscall.Signal) {
	w.note(evSignal, p, int(sig))
	p.take(sig)
}

// Hangup closes a terminal from its other side: the session leader gets HUP and
// CONT, and nobody in the session has a terminal any more.
func (w *World) Hangup(tty int) {
	for _, p := range slices.Clone(w.all) {
		if p.tty != tty || tty == 0 {
			continue
		}
		p.tty = 0
		if p.pid == p.sid {
			w.Kill(p, syscall.SIGHUP)
			w.Kill(p, syscall.SIGCONT)
		}
	}
}

func (w *World) signalGroup(pgid int) {
	for _, q := range slices.Clone(w.all) {
		if q.pgid == pgid && q.Alive() {
			w.Kill(q, syscall.SIGHUP)
			w.Kill(q, syscall.SIGCONT)
		}
	}
}

// take is what the kernel does with a signal for the process.
func (p *Process) take(sig syscall.Signal) {
	switch {
	case !p.Alive() || p.dying || p.kernel || p == p.w.init && sig != syscall.SIGHUP:
	case p.stuck:
		p.pending = append(p.pending, sig)
	case sig == syscall.SIGKILL:
		p.die()
	case p.frozen, p.waits():
		p.pending = append(p.pending, sig)
	case sig == syscall.SIGSTOP:
		p.state = stopped
	case sig == syscall.SIGCONT:
		p.resume()
	case p.ignored&bit(sig) != 0:
	case p.state == stopped:
		p.pending = append(p.pending, sig)
	default:
		p.handle(sig)
	}
}

func (p *Process) handle(sig syscall.Signal) {
	if p.handler(sig) || p == p.w.init {
		return
	}
	switch sig {
	case syscall.SIGCHLD, syscall.SIGURG, syscall.SIGWINCH:
	case syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
		p.state = stopped
	default:
		p.die()
	}
}

func (p *Process) handler(sig syscall.Signal) bool {
	for _, b := range p.do {
		if b.Signal != nil && b.Signal(p, sig) {
			return true
		}
	}
	return false
}

// die ends the process by a signal: at once, or after a moment in which it does
// nothing any more but is still there.
func (p *Process) die() {
	p.dying = true
	lag := p.w.src.Intn(8)
	if lag < 5 {
		p.Exit()
		return
	}
	p.w.At(time.Duration(lag)*200*time.Microsecond, p.Exit)
}

func (p *Process) resume() {
	if p.state != stopped {
		return
	}
	p.state = running
	p.run()
}

// Unstick brings a process back from its device driver. Pending signals arrive.
func (p *Process) Unstick() {
	p.stuck = false
	if p.due() != nil { // it comes out of the driver into the freezer
		p.freeze()
	}
	p.run()
}

// run delivers what was pending and does what was put off.
func (p *Process) run() {
	signals, later := p.pending, p.later
	p.pending, p.later = nil, nil
	for _, s := range signals {
		p.take(s)
	}
	for _, do := range later {
		p.when(do)
	}
}

// when does something as the process: now if it runs, once it runs again if it is
// stopped, stuck, frozen or in a vfork, never if it is dead.
func (p *Process) when(do func()) {
	switch {
	case !p.Alive() || p.dying:
	case p.state == stopped || p.stuck || p.frozen || p.waits():
		p.later = append(p.later, do)
	default:
		do()
	}
}

// After does something as the process after a while.
func (p *Process) After(d time.Duration, do func()) {
	p.w.At(d, func() { p.when(do) })
}
