//go:build unix

package sim

import (
	"slices"
	"syscall"
	"time"
)

// Behaviour is what a process does: at its start, on a signal (true: handled, so
// the default action does not happen), and when a child has died. Fork does not
// hand it on, and exec drops it.
type Behaviour struct {
	Start  func(p *Process)
	Signal func(p *Process, sig syscall.Signal) bool
	Child  func(p, child *Process)
}

// Fork starts a child.
func (p *Process) Fork(d Proc) *Process { return p.w.Spawn(p, d) }

// ExitAfter ends the process by itself after a while.
func ExitAfter(d time.Duration) Behaviour {
	return Behaviour{Start: func(p *Process) { p.After(d, p.Exit) }}
}

// ExitOn handles a signal by ending after a while (a server that cleans up).
func ExitOn(sig syscall.Signal, d time.Duration) Behaviour {
	return Behaviour{Signal: func(p *Process, s syscall.Signal) bool {
		if s == sig {
			p.After(d, p.Exit)
		}
		return s == sig
	}}
}

// Swallow handles signals by doing nothing. Unlike Ignore it does not show in SigIgn.
func Swallow(sigs ...syscall.Signal) Behaviour {
	return Behaviour{Signal: func(_ *Process, s syscall.Signal) bool { return slices.Contains(sigs, s) }}
}

// ForkOn handles a signal by starting a child, and stays.
func ForkOn(sig syscall.Signal, child Proc) Behaviour {
	return Behaviour{Signal: func(p *Process, s syscall.Signal) bool {
		if s == sig {
			p.Fork(child)
		}
		return s == sig
	}}
}

// LeaveOn handles a signal by starting a child and ending: the child is an orphan.
func LeaveOn(sig syscall.Signal, child Proc) Behaviour {
	return Behaviour{Signal: func(p *Process, s syscall.Signal) bool {
		if s == sig {
			p.Fork(child)
			p.Exit()
		}
		return s == sig
	}}
}

// Fan starts so many children, one after each gap (0: all at once).
func Fan(n int, gap time.Duration, child Proc) Behaviour {
	var next func(p *Process, left int)
	next = func(p *Process, left int) {
		if left > 0 {
			p.Fork(child)
			p.After(gap, func() { next(p, left-1) })
		}
	}
	return Behaviour{Start: func(p *Process) {
		if gap == 0 {
			for range n {
				p.Fork(child)
			}
			return
		}
		p.After(gap, func() { next(p, n) })
	}}
}

// Respawn keeps one child alive: when it dies another is started, after a pause.
// It gives up after so many.
func Respawn(times int, pause time.Duration, child Proc) Behaviour {
	left := times
	again := func(p *Process) {
		if left > 0 {
			left--
			p.Fork(child)
		}
	}
	return Behaviour{Start: again, Child: func(p, _ *Process) { p.After(pause, func() { again(p) }) }}
}

// Chain is a process that starts its successor after a while and ends: so many links.
func Chain(links int, gap time.Duration, d Proc) Proc {
	own := d.Do
	d.Do = append(slices.Clone(own), Behaviour{Start: func(p *Process) {
		p.After(gap, func() {
			if links > 1 {
				rest := d
				rest.Do = own
				p.Fork(Chain(links-1, gap, rest))
			}
			p.Exit()
		})
	}})
	return d
}

// Daemon forks twice: the child makes a session of its own, starts the daemon, and
// ends. Between the steps pass gaps.
func Daemon(gap time.Duration, daemon Proc) Behaviour {
	return Behaviour{Start: func(p *Process) {
		p.Fork(Proc{Do: []Behaviour{{Start: func(mid *Process) {
			mid.After(gap, func() {
				mid.Setsid()
				mid.After(gap, func() {
					mid.Fork(daemon)
					mid.Exit()
				})
			})
		}}}})
	}}
}

// Retitle does what setproctitle does: another command line, and the environment
// overwritten.
func (p *Process) Retitle(title string) { p.args, p.env = []string{title}, nil }

// Setuid changes the user.
func (p *Process) Setuid(uid int) { p.uid = uid }

// Stop stops the process, as SIGSTOP does.
func (p *Process) Stop() { p.take(syscall.SIGSTOP) }

// Keeper starts a process like hob's keeper: first of its terminal, subreaper,
// untouched by HUP and TERM. With EndsEmpty it is gone a moment after wait has said
// ECHILD.
func (w *World) Keeper(parent *Process, tty int, d Proc) *Process {
	d.Setsid, d.TTY, d.Subreaper = true, tty, true
	d.Do = append(d.Do, Swallow(syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGTTIN, syscall.SIGTTOU))
	return w.Spawn(parent, d)
}

// Tmux starts a process like a tmux server: a daemon in a session of its own that
// ignores HUP and whose panes are its children.
func (w *World) Tmux(parent *Process, d Proc) *Process {
	d.Comm, d.Setsid = or(d.Comm, "tmux: server"), true
	if d.Args == nil {
		d.Args = []string{"tmux", "-S", "/tmp/tmux.sock", "new-session", "-d"}
	}
	d.Ignore = append(d.Ignore, syscall.SIGHUP)
	return w.Spawn(parent, d)
}

// EndsEmpty says whether the process ends once wait has said ECHILD.
func (p *Process) EndsEmpty(on bool) { p.endsEmpty = on }

// Spare makes the process one that is never to be signalled, and what it forks
// from now on.
func (p *Process) Spare() { p.spared = true }
