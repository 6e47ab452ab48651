//go:build unix

package sim

import "hob/identity"

type identityRef = identity.Ref

// Cut is the panic with which the caller is cut off, as by SIGKILL. [World.Run]
// takes it.
type Cut struct {
	Step int
	Call string
}

// Endless is the panic that ends a caller which has passed Options.Steps points.
type Endless struct{ Steps int }

// Step is how many points have passed.
func (w *World) Step() int { return w.step }

// CutAfter has the caller cut off at the next point after n more. Negative: never.
func (w *World) CutAfter(n int) {
	w.cutAt = -1
	if n >= 0 {
		w.cutAt = w.step + n
	}
}

// AfterPoints does something at the next point after n more, in the middle of
// whatever the caller is doing then.
func (w *World) AfterPoints(n int, do func()) { w.hookAt, w.hook = w.step+n, do }

// Point is a point outside the Host: a test's Effects call it before and after
// what they do, so that the caller can be cut there too.
func (w *World) Point(what string) { w.point(what) }

// Run runs one invocation of hob and reports whether it was cut off. A caller that
// was cut off is dead, its pins are closed, and the next invocation has a process
// of its own.
func (w *World) Run(invocation func()) (cut bool) {
	defer func() {
		w.cutAt, w.cutOff = -1, false
		switch r := recover().(type) {
		case nil:
		case Cut:
			cut = true
			w.lose()
		default:
			panic(r)
		}
	}()
	invocation()
	w.turn++
	return false
}

// lose ends the caller by force.
func (w *World) lose() {
	w.open, w.fds, w.busy = 0, map[int]*Process{}, false
	w.turn++
	w.caller.Exit()
	w.caller = w.newCaller()
}

// newCaller is a hob that a person starts in a shell of their own.
func (w *World) newCaller() *Process {
	w.starting = true
	defer func() { w.starting = false }()
	for range 100 { // without a pidfs all numbers may have been held in this tick
		if p := w.create(w.init, Proc{Comm: "hob", Args: []string{"hob", "down"}, Setsid: true, User: w.o.UID, Stranger: true}); p != nil {
			return p
		}
		w.Pass(tick)
	}
	panic("sim: no number is free for hob")
}

// Truth is the process that a Ref was made of, or nil: by boot and pidfs inode
// where it has one, else by boot, number and token.
func (w *World) Truth(r identityRef) *Process {
	for _, p := range w.ever {
		if p.pid == r.PID && bootID(p.boot) == r.Boot && (r.PIDFS != nil && *r.PIDFS == p.inode || r.PIDFS == nil && r.Start == p.token()) {
			return p
		}
	}
	return nil
}
