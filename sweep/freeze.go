package sweep

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"hob/identity"
	"hob/identity/cut"
)

// What forks faster than one can look is ended while its cgroup is frozen: then nobody
// in it forks, moves or ends by itself, and whoever is in it can be pinned, verified
// and signalled one by one. Nothing rests on its being so: somebody who is moved in,
// or a thaw by another hand, only means that the rounds which follow find more.

const (
	// freezeBound is how long the processes of a cgroup get to come out of the kernel.
	freezeBound = 500 * time.Millisecond
	// frozenRounds are looks at a frozen cgroup. The second finds only who was moved in.
	frozenRounds = 3
)

// occupant is a process in the task's cgroup as the decision to freeze it sees it.
type occupant struct {
	pid  int
	gone bool // it has ended since it was listed
	may  bool // a member: evidence, verdict and rules permit a signal
}

// vetoOf decides whether the cgroup may be frozen: every process in it and below it is
// owned, and none is the keeper, the caller, a boundary or spared, which no rule
// permits to touch. It returns what stands in the way.
func vetoOf(in []occupant) error {
	for _, o := range in {
		if !o.gone && !o.may {
			return fmt.Errorf("%w: process %d in it may not be signalled", errVeto, o.pid)
		}
	}
	return nil
}

var errVeto = errors.New("not all of the cgroup is the task's to end")

// endCgroup freezes the task's cgroup and ends who is in it, each through its pin.
// When it may not be done, or cannot, the rounds end one by one what may be ended.
func (s *stopper) endCgroup() {
	h := s.tr.home
	if h == nil || h.gone || s.noFreeze {
		return
	}
	s.tr.look(s.ctx, nil)
	if h.group == nil || !h.listed || len(h.procs) == 0 || vetoOf(s.occupants(h.procs)) != nil {
		return
	}
	told := s.condemn(h.procs)
	if len(told) == 0 {
		return // it was done, and they are ending
	}
	if !s.freeze() {
		for _, n := range told {
			s.pardon(n)
		}
		return
	}
	defer s.thaw()
	s.endFrozen(told)
}

// endFrozen sends KILL to those that have been condemned, and to whom a look at the
// frozen cgroup finds besides, until one finds nobody.
func (s *stopper) endFrozen(told []*node) {
	ended := 0
	for range frozenRounds {
		told = append(told, s.frozenRest()...)
		if len(told) == 0 {
			break
		}
		for _, n := range told {
			if !s.tr.may(n) { // it has ended, or become a boundary
				s.pardon(n)
			} else if s.deliver(n, syscall.SIGKILL) {
				ended++
			}
		}
		told = nil
	}
	switch ended {
	case 0:
	case 1:
		s.note("KILL to one process of the frozen cgroup")
	default:
		s.note("KILL to %d processes of the frozen cgroup", ended)
	}
}

// frozenRest lists the frozen cgroup, and condemns who may be ended and has not been.
// Who is not known is judged by the rules of any look.
func (s *stopper) frozenRest() []*node {
	in, ok := s.tr.roster()
	if ok && vetoOf(s.occupants(in)) != nil {
		s.tr.look(s.ctx, nil)
		in, ok = s.tr.home.procs, s.tr.home.listed
	}
	if !ok {
		return nil
	}
	return s.condemn(in)
}

// freeze freezes the task's cgroup, and waits until nobody in it runs. That it does
// so is on disk before, with whom it ends: a hob that is cut off leaves it frozen, and
// the next one must know that it was not somebody else who froze it. What somebody
// else has frozen stays so afterwards.
func (s *stopper) freeze() bool {
	tr := s.tr
	was := tr.frozenAt
	on, err := tr.home.group.Frozen()
	if err == nil {
		s.theirs = on && was == nil
		err = s.writeFreeze()
	}
	if err == nil {
		cut.Point("freeze", "cgroup")
		s.frozen = true
		if !s.theirs {
			err = tr.home.group.Freeze()
		}
		cut.Point("froze", "cgroup")
	}
	if err != nil {
		s.noFreeze, tr.frozenAt, tr.dirty, s.frozen = true, was, true, false
		if !errors.Is(err, identity.ErrUnsupported) && !errors.Is(err, identity.ErrGone) {
			s.note("the cgroup cannot be frozen, so its processes are ended one by one: %v", err)
		}
		return false
	}
	return s.awaitFrozen()
}

// writeFreeze saves the capture, which says from now on that the cgroup is being frozen.
func (s *stopper) writeFreeze() error {
	if now := s.tr.h.Now(); !s.theirs {
		s.tr.frozenAt = &now
	}
	s.tr.dirty = true
	if s.save(); !s.onDisk {
		return fmt.Errorf("a hob that was cut off would leave it frozen, with no record of it: %w", s.saveErr)
	}
	return nil
}

// awaitFrozen waits until nobody in the cgroup runs. One that is held up in the kernel
// cannot fork there either; so the others are ended all the same.
func (s *stopper) awaitFrozen() bool {
	still, err := s.tr.home.group.AwaitFrozen(s.ctx, s.tr.h.Now().Add(freezeBound))
	switch {
	case s.ctx.Err() != nil:
		s.thaw()
		return false
	case !still:
		s.noFreeze = true
		s.tr.say(s.unfrozen(err))
	}
	cut.Point("frozen", "cgroup")
	return true
}

// unfrozen says why the cgroup did not freeze.
func (s *stopper) unfrozen(err error) string {
	if err != nil {
		return fmt.Sprintf("whether the task's cgroup was frozen could not be told: %v", err)
	}
	text := fmt.Sprintf("the task's cgroup did not freeze within %v", freezeBound)
	for _, pid := range s.tr.home.procs {
		if n := s.tr.live[pid]; n != nil && n.living() {
			if row, err := n.pin.Read(identity.WantWchan); err == nil && (row.State == 'D' || row.State == 'R') {
				return fmt.Sprintf("%s: process %d is held up in state %c, in %s", text, pid, row.State, row.Wchan)
			}
		}
	}
	return text
}

// thaw lets go on who is left in the cgroup.
func (s *stopper) thaw() {
	defer s.noteHeld()
	if s.theirs {
		s.tr.say("the task's cgroup was frozen by somebody else, so nobody in it could answer a signal but KILL, and it stays so")
		return
	}
	cut.Point("thaw", "cgroup")
	err := s.tr.home.group.Thaw()
	cut.Point("thawed", "cgroup")
	if err != nil && !errors.Is(err, identity.ErrGone) {
		s.tr.say(fmt.Sprintf("the task's cgroup stays frozen, until the next look at it: %v", err))
		return
	}
	s.tr.frozenAt, s.tr.dirty = nil, true
}

// note is a step for who watches. While the cgroup is frozen it is kept: nothing may
// stand between a freeze and its thaw that can wait for a process in it, as a keeper
// does that was just about to start one there.
func (s *stopper) note(format string, args ...any) {
	if s.frozen {
		s.held = append(s.held, fmt.Sprintf(format, args...))
		return
	}
	s.fx.Note(format, args...)
}

// noteHeld hands on what was kept, after the thaw.
func (s *stopper) noteHeld() {
	held := s.held
	s.frozen, s.held = false, nil
	for _, text := range held {
		s.fx.Note("%s", text)
	}
}

// thawLeft thaws what a stop that was cut off has left frozen.
func (s *stopper) thawLeft() {
	tr := s.tr
	if tr.frozenAt == nil {
		return
	}
	if err := Thaw(tr.h, Capture{Cgroup: tr.cgroup, FrozenAt: tr.frozenAt}); err != nil {
		tr.say(fmt.Sprintf("a stop that was cut off has frozen the task's cgroup, and it could not be thawed yet: %v", err))
		return
	}
	tr.frozenAt, tr.dirty = nil, true
}

// Thaw lets the processes of a task go on that a stop has frozen which was cut off,
// as its capture says. What nobody has frozen, or has ended since, is as it should be.
// Whoever calls it holds the task's lock, or knows that no stop takes that long.
func Thaw(h identity.Host, c Capture) error {
	if c.FrozenAt == nil || c.Cgroup == nil {
		return nil
	}
	g, err := h.Cgroups().Open(*c.Cgroup)
	if err == nil {
		defer g.Close()
		var on bool
		if on, err = g.Frozen(); err == nil && on {
			err = g.Thaw()
		}
	}
	if errors.Is(err, identity.ErrGone) {
		return nil
	}
	return err
}

// StopIsCut is how long after a capture said that the cgroup is being frozen the stop
// that did so must have been cut off, or hangs: it freezes for a fraction of that.
const StopIsCut = 20 * freezeBound

// occupants are the processes of a list as they are known.
func (s *stopper) occupants(pids []int) []occupant {
	out := make([]occupant, 0, len(pids))
	for _, pid := range pids {
		o := occupant{pid: pid}
		if n := s.tr.live[pid]; n != nil {
			o.may = s.tr.may(n)
		}
		o.gone = !o.may && s.tr.ended(pid)
		out = append(out, o)
	}
	return out
}

// ended reports whether nobody who lives has the number.
func (tr *tree) ended(pid int) bool {
	pin, err := tr.h.Open(pid)
	if err != nil {
		return errors.Is(err, identity.ErrGone)
	}
	defer pin.Close()
	return pin.Verify().Verdict == identity.Gone
}

// condemn writes down the KILL of those of a list that have not had one.
func (s *stopper) condemn(pids []int) []*node {
	var out []*node
	for _, pid := range pids {
		if n := s.tr.live[pid]; n != nil && s.tr.may(n) && !n.told("KILL", s.began) && !strings.HasPrefix(n.refused, "KILL") {
			s.intend(n, syscall.SIGKILL)
			out = append(out, n)
		}
	}
	return out
}

// pardon takes back a KILL that was written down and is not sent.
func (s *stopper) pardon(n *node) {
	if last := len(n.Signals) - 1; last >= 0 && strings.HasPrefix(n.Signals[last].Signal, "KILL") {
		n.Signals = n.Signals[:last]
		s.tr.dirty = true
	}
	if n.EndedAt != nil {
		n.Fate = fateOf(n.found, n.Signals, spare{})
	}
}
