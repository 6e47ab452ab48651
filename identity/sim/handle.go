package sim

import (
	"fmt"
	"syscall"

	"hob/identity"
)

const contSignal = syscall.SIGCONT

// Open pins whatever process has the number now.
func (h host) Open(pid int) (identity.Handle, error) {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.point("Open")
	p := w.byPID[pid]
	switch {
	case p == nil && w.byTID[pid] != nil:
		return nil, fmt.Errorf("open process %d: %w: the number is a thread", pid, identity.ErrGone)
	case p == nil:
		return nil, fmt.Errorf("open process %d: %w", pid, identity.ErrGone)
	case w.o.MaxPins > 0 && w.pins >= w.o.MaxPins:
		return nil, fmt.Errorf("open process %d: %w: too many open files", pid, identity.ErrUnverifiable)
	case w.o.NoPidfd && (w.sightless() || w.unseen(p) || p.hidden):
		return nil, fmt.Errorf("open process %d: %w: its row cannot be read", pid, identity.ErrUnverifiable)
	}
	return w.pin(p), nil
}

func (w *World) pin(p *Process) *handle {
	w.pins++
	return &handle{w: w, p: p, turn: w.turn, ref: w.readRef(p)}
}

// readRef is what the caller can write down: without a readable row there is no
// start token.
func (w *World) readRef(p *Process) identity.Ref {
	r := w.ref(p)
	r.Boot = w.facts().Boot
	if w.sightless() || w.unseen(p) || p.hidden {
		r.Start, r.UID = "", nil
	}
	return r
}

// handle pins p. Without pidfd it only remembers the number and the token.
type handle struct {
	w      *World
	p      *Process
	turn   int
	ref    identity.Ref
	closed bool
}

// now is the process that the handle reaches: the pinned one, or whoever has the
// number.
func (h *handle) now() *Process {
	if !h.w.o.NoPidfd {
		return h.p
	}
	if p := h.w.byPID[h.p.pid]; p != nil {
		return p
	}
	return h.p
}

func (h *handle) Ref() identity.Ref { return h.ref }

func (h *handle) enter(what string) func() {
	h.w.mu.Lock()
	if h.closed {
		h.w.mu.Unlock()
		panic("sim: " + what + " on a closed handle of " + h.p.String())
	}
	return h.w.mu.Unlock
}

func (h *handle) Verify() identity.Finding {
	defer h.enter("Verify")()
	h.w.point("Handle.Verify")
	return h.verify()
}

// verify looks through the pin, or without one at the number.
func (h *handle) verify() identity.Finding {
	if h.w.o.NoPidfd {
		_, f := h.w.judge(h.ref)
		return f
	}
	return poll(h.p)
}

func (h *handle) Read(want identity.Field) (identity.Process, error) {
	defer h.enter("Read")()
	w := h.w
	w.point("Handle.Read")
	p := h.now()
	switch {
	case p.state == reaped || p != h.p && h.ref.Start != p.token():
		return identity.Process{}, fmt.Errorf("read process %d: %w", h.p.pid, identity.ErrGone)
	case w.sightless(), w.unseen(p), p.hidden, w.chance(w.o.Chaos.RowFails):
		return identity.Process{}, fmt.Errorf("read process %d: %w", h.p.pid, identity.ErrUnverifiable)
	}
	return w.row(p, want), nil
}

func (h *handle) Signal(sig syscall.Signal) error {
	defer h.enter("Signal")()
	w := h.w
	w.point("Signal")
	if f := h.verify(); f.Verdict != identity.Owned {
		return verdictError(h.p.pid, f)
	}
	if w.o.NoPidfd && w.o.Window {
		w.stir(w.o.Chaos.Density)
	}
	return w.send(h.now(), sig)
}

// send is the caller's signal reaching whom it reaches.
func (w *World) send(p *Process, sig syscall.Signal) error {
	if p.state == reaped {
		return fmt.Errorf("signal %d: %w", p.pid, identity.ErrGone)
	}
	denied := w.caller.uid != 0 && p.uid != w.caller.uid
	w.ledger.Deliveries = append(w.ledger.Deliveries, Delivery{
		Step: w.step, Turn: w.turn, At: w.Now(), Sig: sig, To: p, PID: p.pid, Alive: p.Alive(), Denied: denied,
	})
	w.note(evSent, p, int(sig))
	if denied {
		return fmt.Errorf("signal %d with %v: %w", p.pid, sig, identity.ErrNotPermitted)
	}
	p.signals = append(p.signals, sig)
	p.take(sig)
	return nil
}

// KillNumber signals by bare number, as tools that hob is not do. Planted faults
// use it.
func (w *World) KillNumber(pid int, sig syscall.Signal) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.point("kill")
	p := w.byPID[pid]
	if p == nil {
		p = w.byTID[pid]
	}
	if p == nil {
		return identity.ErrGone
	}
	return w.send(p, sig)
}

func (h *handle) Close() error {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if !h.closed && h.turn == h.w.turn {
		h.w.pins--
	}
	h.closed = true
	return nil
}

func verdictError(pid int, f identity.Finding) error {
	cause := identity.ErrUnverifiable
	switch f.Verdict {
	case identity.Gone:
		cause = identity.ErrGone
	case identity.Foreign:
		cause = identity.ErrReused
	}
	return fmt.Errorf("signal %d: %w: %s", pid, cause, f.Reason)
}
