package sweep

import (
	"context"
	"reflect"

	"hob/identity"
)

// Watch is the rolling capture of a task: look after look at the tree below its
// keeper. It keeps what it has pinned, so that a look at a tree at rest costs a
// fraction of the first; each says what one that begins anew would say.
type Watch struct {
	h    identity.Host
	tr   *tree   // nil: the next look begins anew
	last Capture // what the last look returned
}

// NewWatch makes one. Close it.
func NewWatch(h identity.Host) *Watch { return &Watch{h: h} }

// Close gives the pins back. The next look begins anew.
func (w *Watch) Close() {
	if w.tr != nil {
		w.tr.close()
	}
	w.tr, w.last = nil, Capture{}
}

// Each verifies the members that the last look left alive, and hands out the pin of
// each that lives, which stays the Watch's. ok is false when there was no look.
func (w *Watch) Each(each func(identity.Handle)) (unknown, ok bool) {
	if w.tr == nil {
		return false, false
	}
	for _, n := range w.tr.nodes {
		switch {
		case n.EndedAt != nil:
		case n.pin == nil:
			unknown = true
		default:
			v := n.pin.Verify().Verdict
			unknown = unknown || v == identity.Unverifiable
			if v == identity.Owned {
				each(n.pin)
			}
		}
	}
	return unknown, true
}

// observeRounds bounds a round of the rolling capture: a tree that moves faster
// is seen again by the next one.
const observeRounds = 3

// Look is one round: the tree below the keeper now, merged into prev, which need not
// be what the last look returned. changed reports whether there is something new to
// write. The error says what of the tree could not be seen; c is what could. A
// capture of a stop that was cut stays one, and loses nobody.
func (w *Watch) Look(ctx context.Context, t Target, prev Capture) (c Capture, changed bool, err error) {
	if w.tr == nil || !w.tr.resumable(t) || !sameCapture(prev, w.last) {
		w.Close()
		w.tr = newTree(w.h, t, prev, StepAll)
	} else {
		w.tr.resume()
	}
	tr := w.tr
	for range observeRounds {
		tr.look(ctx, nil)
		if !tr.moved {
			break
		}
	}
	phase := phaseStop
	if prev.Phase != phaseStop {
		phase = phaseRolling
		tr.prune()
	}
	changed, tr.dirty = tr.dirty, false
	w.last = tr.capture(phase)
	return w.last, changed, tr.blindness()
}

// Observe is one look of a Watch that ends with it.
func Observe(ctx context.Context, h identity.Host, t Target, prev Capture) (c Capture, changed bool, err error) {
	w := NewWatch(h)
	defer w.Close()
	return w.Look(ctx, t, prev)
}

// sameCapture reports whether nobody has changed a capture since it was made.
func sameCapture(a, b Capture) bool {
	return a.TakenAt.Equal(b.TakenAt) && a.Phase == b.Phase && a.Cgroup == b.Cgroup && a.FrozenAt == b.FrozenAt && len(a.Guests) == len(b.Guests) &&
		len(a.Members) == len(b.Members) && (len(a.Members) == 0 || &a.Members[0] == &b.Members[0])
}

// resumable reports whether the tree can be looked at again for the same task. One
// whose keeper or command has to be verified anew cannot.
func (tr *tree) resumable(t Target) bool {
	return (tr.keeper == nil || tr.keeper.pin != nil) && (t.Command == nil || tr.command() != nil) && reflect.DeepEqual(tr.t, t)
}

// resume forgets what a look begins without: what is known of one process from the
// one before is its pin, and what the capture says.
func (tr *tree) resume() {
	clear(tr.corpses)
	for _, n := range tr.nodes {
		n.parent, n.depth, n.vague = nil, 0, 0
	}
	tr.link()
	if tr.home != nil {
		tr.home.mixed = mixedBy(tr.guests)
	}
}
