package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"hob/identity"
	"hob/identity/cut"
	"hob/sweep/gpu"
)

// Phases of a capture, as it says itself.
const (
	phaseRolling = "rolling"
	phaseStop    = "stop"
)

// A capture is taken in rounds until one adds nothing, within these bounds: a
// tree that outruns them is caught by the rounds of the force phase.
const (
	captureRounds = 20
	captureBound  = 250 * time.Millisecond
)

// blindLooks is how often one looks again at what could not be read, before it
// is taken for something that stays so.
const blindLooks = 5

// stopper carries one stop out: it looks, asks Plan, and does what it says.
type stopper struct {
	ctx context.Context
	tr  *tree
	fx  Effects
	o   Options

	taken   time.Time // of the capture on disk
	began   time.Time
	phase   Phase
	since   time.Time
	swept   time.Time // when the sweep began
	looks   int
	quiet   int
	stale   bool          // something was done or waited for since the last look
	cost    time.Duration // of the last look
	gpu     gpu.Reading   // before the stop
	gpus    []string      // on which members held memory
	saved   bool          // the capture has been written, or could not be
	saveErr error
	paneErr error
	unsure  bool // something of the tree may live that is not among the members
	onDisk  bool // the last capture that was saved has reached the disk

	noFreeze bool     // the cgroup cannot be frozen, or not all of it
	theirs   bool     // it was frozen already, by somebody else
	frozen   bool     // it may be frozen by us just now
	held     []string // notes of that time
}

func newStopper(ctx context.Context, h identity.Host, t Target, prev Capture, fx Effects, o Options) *stopper {
	s := &stopper{ctx: ctx, tr: newTree(h, t, prev, o.From), fx: fx, o: o, began: h.Now(), taken: prev.TakenAt}
	s.tr.done = fx.KeeperDone
	return s
}

// capture is step 2: rounds of the walk until one adds nothing.
func (s *stopper) capture() {
	s.rounds()
	s.tr.begun, s.tr.dirty = true, true
	s.weighGPU(s.ctx)
}

// rounds walks until a round adds nothing.
func (s *stopper) rounds() {
	limit := s.tr.h.Now().Add(captureBound)
	for range captureRounds {
		began := s.tr.h.Now()
		s.tr.look(s.ctx, nil)
		s.cost = s.tr.h.Now().Sub(began)
		if !s.tr.moved || s.tr.h.Now().After(limit) || s.ctx.Err() != nil {
			break
		}
	}
}

// run is steps 3 to 7.
func (s *stopper) run(first Phase) error {
	s.enter(first, s.tr.h.Now())
	for s.phase != PhaseDone || s.reopened() {
		if err := s.ctx.Err(); err != nil {
			s.save()
			return fmt.Errorf("the stop of %s/%s was cut, the next one goes on from its capture: %w", s.tr.t.Run, s.tr.t.Task, err)
		}
		if s.stale || s.phase == PhaseForce || s.phase == PhaseSweep {
			s.look()
		}
		if err := s.apply(Plan(s.seen())); err != nil {
			s.save()
			return err
		}
	}
	s.thawLeft()
	s.save()
	return errors.Join(s.saveErr, s.paneErr)
}

// reopened goes back to the sweep, within its bound, where somebody who was left alone
// has ended since the last look: what that one has forked meanwhile is below the keeper
// now, and nobody has seen it.
func (s *stopper) reopened() bool {
	if s.tr.outlived() || !s.tr.h.Now().Before(s.swept.Add(sweepBound)) {
		return false
	}
	s.phase, s.since, s.quiet, s.stale = PhaseSweep, s.swept, 0, true
	return true
}

func (s *stopper) enter(p Phase, at time.Time) {
	cut.Point("phase", string(p))
	s.phase, s.since, s.looks, s.quiet = p, at, 1, 0
	if p == PhaseSweep {
		s.swept = at
	}
}

// look is one round. In the last phases what is found is killed at once.
func (s *stopper) look() {
	if s.stale {
		s.looks++
	}
	var visit func(*node)
	if s.phase == PhaseForce || s.phase == PhaseSweep {
		visit = s.kill
	}
	if s.phase == PhaseForce {
		s.endCgroup()
	}
	began := s.tr.h.Now()
	s.tr.look(s.ctx, visit)
	s.cost = s.tr.h.Now().Sub(began)
	stirred := s.tr.moved || len(s.tr.blind) > 0 && s.looks <= blindLooks
	s.quiet = quietAfter(s.quiet, s.phase, s.anyLeft(), stirred, len(s.tr.live) > 0)
}

// quietAfter counts the rounds in a row that found nothing of ours alive. When
// nothing at all of the tree is left to look from, the whole host has been seen
// once, and more rounds could not find more.
func quietAfter(quiet int, phase Phase, left, moved, anything bool) int {
	switch {
	case left || moved:
		return 0
	case phase == PhaseSweep && !anything:
		return quietRounds
	}
	return quiet + 1
}

func (s *stopper) anyLeft() bool {
	for _, n := range s.tr.targets() {
		if n.refused == "" {
			return true
		}
	}
	return false
}

// seen is what the planner gets to see.
func (s *stopper) seen() Seen {
	tr := s.tr
	v := Seen{Phase: s.phase, Now: tr.h.Now(), Since: s.since, Looks: s.looks, Kind: tr.t.Kind, From: s.o.From,
		Policy: tr.t.Stop, InKeeper: s.o.InKeeper, Unsaved: tr.dirty, LastEnd: tr.lastEnd, Quiet: s.quiet,
		Blind: len(tr.blind) > 0, Keeper: s.seenKeeper()}
	if s.phase == PhaseForce {
		v.Empty = s.fx.KeeperDone()
	}
	cmd := tr.command()
	for _, n := range tr.nodes {
		v.Told = v.Told || s.phase == PhaseTerm && n.told("TERM", s.since)
		if n.living() {
			v.Procs = append(v.Procs, Proc{PID: n.Ref.PID, Depth: n.depth, Command: n == cmd, May: tr.may(n),
				Stopped: n.row.State == 'T', Refused: n.refused != "", Sent: names(n.Signals)})
		}
	}
	if cmd != nil {
		v.Asked = askedAt(cmd.Signals)
		if cmd.EndedAt != nil {
			v.CommandEnd = *cmd.EndedAt
		}
	}
	return v
}

func (s *stopper) seenKeeper() KeeperSeen {
	k := s.tr.keeper
	if k == nil {
		return KeeperSeen{}
	}
	return KeeperSeen{Alive: k.living(), Unknown: k.unknown(), Stopped: k.row.State == 'T', Sent: names(k.Signals)}
}

// askedAt is when the command had its stop signal: the first that is no CONT.
func askedAt(sent []Sent) time.Time {
	for _, s := range sent {
		if s.Signal != "CONT" {
			return s.At
		}
	}
	return time.Time{}
}

func names(sent []Sent) []string {
	out := make([]string, 0, len(sent))
	for _, s := range sent {
		out = append(out, s.Signal)
	}
	return out
}

// apply does what the planner wants. The signals of a batch are written down
// first, so that the Save in front of them has them; a phase that it enters has begun
// before them.
func (s *stopper) apply(actions []Action) error {
	began := s.tr.h.Now()
	s.stale = slices.ContainsFunc(actions, func(a Action) bool { return a.Do != Enter && a.Do != Save })
	for _, a := range actions {
		if a.Do == Send {
			s.intend(s.tr.live[a.PID], a.Signal)
		}
	}
	for _, a := range actions {
		if err := s.do(a, began); err != nil {
			return err
		}
	}
	return nil
}

func (s *stopper) do(a Action, began time.Time) error {
	switch a.Do {
	case Save:
		s.save()
	case Send:
		s.send(s.tr.live[a.PID], a.Signal)
	case Keep:
		s.signalKeeper(a.Signal)
	case Close:
		s.closePane()
	case Wait:
		return s.wait(a.Until)
	case Enter:
		s.enter(a.Phase, began)
	}
	return nil
}

// save writes the capture. When the disk refuses, the stop goes on from
// memory: not stopping would be worse, and the report says it.
func (s *stopper) save() {
	if !s.tr.dirty {
		return
	}
	s.tr.dirty, s.saved = false, true
	err := s.fx.SaveCapture(s.tr.capture(phaseStop))
	if s.onDisk = err == nil; err != nil && s.saveErr == nil {
		s.saveErr = fmt.Errorf("%w: %w", ErrNotSaved, err)
		s.note("%v; stopping %s/%s from memory", s.saveErr, s.tr.t.Run, s.tr.t.Task)
	}
}

// intend writes down a signal that is about to be sent.
func (s *stopper) intend(n *node, sig syscall.Signal) {
	name := identity.SignalName(sig)
	if name == "CONT" && n.was(name) {
		return
	}
	n.Signals = append(n.Signals, Sent{Signal: name, At: s.tr.h.Now()})
	s.tr.dirty = true
}

// send sends a signal that has been written down.
func (s *stopper) send(n *node, sig syscall.Signal) {
	if s.deliver(n, sig) {
		s.note("%s to %d", identity.SignalName(sig), n.Ref.PID)
	}
}

// deliver sends a signal, and takes it back from the record when it did not reach the
// process.
func (s *stopper) deliver(n *node, sig syscall.Signal) bool {
	name := identity.SignalName(sig)
	cut.Point("signal", name)
	err := n.pin.Signal(sig)
	cut.Point("signalled", name)
	if err == nil {
		n.refused = ""
		return true
	}
	if last := len(n.Signals) - 1; last >= 0 && n.Signals[last].Signal == name {
		n.Signals = n.Signals[:last]
		s.tr.dirty = true
	}
	if errors.Is(err, identity.ErrGone) || errors.Is(err, identity.ErrReused) {
		return false // the next look writes its end down
	}
	n.refused = fmt.Sprintf("%s refused: %v", name, err)
	s.note("%s to %d: %v", name, n.Ref.PID, err)
	return false
}

// kill is the force of steps 5 and 7: KILL at discovery, once in this stop. One
// that an earlier stop left stuck is told again.
func (s *stopper) kill(n *node) {
	if !s.tr.may(n) || n.told("KILL", s.began) || strings.HasPrefix(n.refused, "KILL") {
		return
	}
	if !s.saved {
		s.tr.dirty = true
		s.save() // nothing is signalled before the first save has returned
	}
	s.intend(n, syscall.SIGKILL)
	s.send(n, syscall.SIGKILL)
}

func (s *stopper) signalKeeper(sig syscall.Signal) {
	k := s.tr.keeper
	name := identity.SignalName(sig)
	k.Signals = append(k.Signals, Sent{Signal: name, At: s.tr.h.Now()})
	if err := k.pin.Signal(sig); err != nil {
		k.refused = fmt.Sprintf("%s refused: %v", name, err)
		return
	}
	s.fx.Note("%s to the keeper %d, whose tree is empty", name, k.Ref.PID)
}

func (s *stopper) closePane() {
	if err := s.fx.ClosePane(s.ctx); err != nil && s.paneErr == nil {
		s.paneErr = fmt.Errorf("closing the pane of %s/%s: %w", s.tr.t.Run, s.tr.t.Task, err)
	}
}

// wait blocks until something that is watched exits, or until the time. When
// the kernel cannot watch them all, it waits for the time alone; a host that
// cannot even do that ends the stop, which would else spin.
func (s *stopper) wait(until time.Time) error {
	err := s.tr.h.Wait(s.ctx, s.watched(), until)
	if err == nil {
		s.gather(until)
		return nil
	}
	if s.ctx.Err() != nil {
		return nil // the loop sees the context
	}
	s.tr.say("processes could not be watched, so their ends were looked for: " + err.Error())
	if err = s.tr.h.Wait(s.ctx, nil, until); err == nil || s.ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("the stop of %s/%s cannot wait, the next one goes on from its capture: %w", s.tr.t.Run, s.tr.t.Task, err)
}

// gather lets the other exits of a burst happen before the tree is looked at
// again: 200 processes that end one by one would else cost 200 looks at 200
// processes. It goes on while exits come, for ten times what a look costs.
func (s *stopper) gather(until time.Time) {
	if s.cost < time.Millisecond {
		return
	}
	limit := earliest(until, s.tr.h.Now().Add(10*s.cost))
	pins := s.watched()
	var last []identity.Handle // the keeper ends when all have
	if s.tr.keeperLives() && !s.o.InKeeper {
		last = append(last, s.tr.keeper.pin)
	}
	for before := -1; ; {
		pins = slices.DeleteFunc(pins, func(p identity.Handle) bool { return identity.Lives(p).Verdict != identity.Owned })
		now := s.tr.h.Now()
		if len(pins) == 0 || len(pins) == before || !now.Before(limit) {
			return
		}
		before = len(pins)
		_ = s.tr.h.Wait(s.ctx, last, earliest(limit, now.Add(s.cost/2)))
	}
}

// watched are the pins whose end is an event.
func (s *stopper) watched() []identity.Handle {
	var pins []identity.Handle
	for _, n := range s.tr.nodes {
		if n.living() {
			pins = append(pins, n.pin)
		}
	}
	if s.tr.keeperLives() && !s.o.InKeeper {
		pins = append(pins, s.tr.keeper.pin)
	}
	return pins
}

// scanContext is for the last look at the host, which is due also when the stop
// was cut: the report is complete in any case.
func (s *stopper) scanContext() context.Context {
	return context.WithoutCancel(s.ctx)
}
