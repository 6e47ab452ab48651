//go:build unix

package sim

import (
	"syscall"

	"hob/identity"
)

const contSignal = syscall.SIGCONT

// Verify looks at a recorded process.
func (h host) Verify(ref identity.Ref) (identity.Handle, identity.Finding) {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.point("Verify")
	got, f := w.decider().Verify(ref)
	if got == nil {
		return nil, f
	}
	return w.wrap(got), f
}

// Open pins whatever process has the number now.
func (h host) Open(pid int) (identity.Handle, error) {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.point("Open")
	got, err := w.decider().Open(pid, w.Now())
	if err != nil {
		return nil, err
	}
	return w.wrap(got), nil
}

// OpenRead is Open with a first Read and Verify: the world moves on in between.
func (h host) OpenRead(pid int, want identity.Field) (identity.Handle, identity.Process, identity.Finding, error) {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.point("OpenRead")
	got, row, f, err := w.decider().OpenRead(pid, want, w.Now())
	if err != nil {
		return nil, row, f, err
	}
	return w.wrap(got), row, f, nil
}

// decider is the real verdict table over the simulated kernel.
func (w *World) decider() identity.Decider { return identity.NewDecider(kernel{w}, w.facts()) }

func (w *World) wrap(got identity.Handle) *handle {
	w.open++
	return &handle{w: w, real: got, p: w.reached, turn: w.turn}
}

// handle is one of package identity's, on a simulated kernel. It knows which
// process it is of.
type handle struct {
	w      *World
	real   identity.Handle
	p      *Process
	turn   int
	closed bool
}

// enter lets the world move on. A closed handle's number may stand for another
// process already, so its use is a fault of the caller.
func (h *handle) enter(what string) {
	if h.closed {
		panic("sim: " + what + " on a closed handle of " + h.p.String())
	}
	h.w.point(what)
}

func (h *handle) Ref() identity.Ref { return h.real.Ref() }

func (h *handle) Verify() identity.Finding {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.enter("Handle.Verify")
	return h.real.Verify()
}

func (h *handle) Read(want identity.Field) (identity.Process, error) {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.enter("Handle.Read")
	return h.real.Read(want)
}

func (h *handle) Signal(sig syscall.Signal) error {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.enter("Signal")
	return h.real.Signal(sig)
}

func (h *handle) Close() error {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	if h.turn != h.w.turn {
		return nil // its hob was cut off, and the kernel closed what it had open
	}
	h.w.open--
	return h.real.Close()
}

// ended reports whether a wait on the handle is over.
func (h *handle) ended() bool {
	p := h.p
	return !p.Alive() || h.w.o.NoPidfd && h.w.byPID[p.pid] != p
}
