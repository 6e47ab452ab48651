//go:build unix

package sweep_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"hob/identity"
	"hob/identity/sim"
	"hob/sweep"
)

// settled is how long before the end of a stop a thing must have happened to be
// in its report: the last looks of a report take a while.
const settled = 150 * time.Millisecond

// check compares what hob did and said with the truth.
func (s *scene) check() (wrong []string) {
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	s.checkSignals(bad)
	s.checkSaves(bad)
	s.checkTurns(bad)
	s.checkMembers(bad)
	s.checkLiving(bad)
	s.checkVerdict(bad)
	s.checkStamps(bad)
	s.checkCgroup(bad)
	return wrong
}

type bad func(format string, args ...any)

// checkSignals: nobody outside the tree is signalled, whatever has the number, and
// whatever cgroup it is moved into.
func (s *scene) checkSignals(bad bad) {
	for _, d := range s.w.Ledger().Strays(simTask) {
		bad("a stranger was signalled: %v", d)
	}
	asked := map[*sim.Process]int{}
	for _, d := range s.w.Ledger().Deliveries {
		if s.barred {
			bad("nothing can be verified, and yet: %v", d)
		}
		if d.Sig != syscall.SIGKILL && d.Sig != syscall.SIGCONT && !d.Denied {
			if asked[d.To]++; asked[d.To] > 1 && !s.full {
				bad("asked twice: %v", d)
			}
		}
		if d.To == s.keeper && d.Below > 0 && d.Sig != syscall.SIGCONT {
			bad("the keeper was signalled before its tree was empty: %v", d)
		}
	}
}

// checkSaves: a capture is on disk before the first signal of each invocation
// (its own, or an earlier stop's that has the process already), whoever is asked
// to end was in it, and it only grows.
func (s *scene) checkSaves(bad bad) {
	l := s.w.Ledger()
	for _, d := range l.Deliveries {
		first, held := false, d.To == s.keeper || d.Sig == syscall.SIGKILL || d.Sig == syscall.SIGCONT
		for _, sv := range l.Saves {
			if sv.Step < d.Step {
				in := slices.Contains(sv.Serials, d.To.Serial())
				first, held = first || in || sv.Turn == d.Turn, held || in
			}
		}
		if !first {
			bad("signalled before the capture was saved: %v", d)
		}
		if !held {
			bad("signalled without being in a saved capture: %v", d)
		}
	}
	for i := 1; i < len(s.stopped); i++ {
		for _, serial := range s.stopped[i-1] {
			if !slices.Contains(s.stopped[i], serial) {
				bad("#%d was lost from the capture", serial)
			}
		}
	}
}

func (s *scene) checkTurns(bad bad) {
	for _, t := range s.turns {
		if t.endless {
			bad("%s does not end", t.what)
		}
		if t.harmful {
			bad("%s signalled", t.what)
		}
		if t.idle {
			bad("%s did not begin with thawing what an earlier one had left frozen", t.what)
		}
		if !t.cut && t.pins != 0 {
			bad("%s left %d pins open", t.what, t.pins)
		}
		if limit := s.target.Stop.Grace + s.target.Stop.TermGrace + 25*time.Second; t.took > limit {
			bad("%s took %v", t.what, t.took)
		}
	}
	if s.report.Verdict == "" {
		bad("no report: %v", s.err)
	}
}

// checkMembers: a fate is the truth, and nobody who was captured is missing.
func (s *scene) checkMembers(bad bad) {
	for _, m := range s.report.Members {
		all := s.had(m.PID, func(p *sim.Process) bool { return m.Start == "" || p.Ref().Start == m.Start })
		dead := slices.ContainsFunc(all, func(p *sim.Process) bool { return !p.Alive() })
		lately := slices.ContainsFunc(all, func(p *sim.Process) bool { return p.Alive() || s.ended.Sub(p.Died()) < settled })
		switch m.Fate {
		case sweep.Exited, sweep.Terminated, sweep.Killed, sweep.ForeignFate:
			if !dead {
				bad("%d is said to have %s, and lives: %v", m.PID, m.Fate, all)
			}
		case sweep.Survived, sweep.Spared:
			if !lately {
				bad("%d is said to have %s, and is dead: %v", m.PID, m.Fate, all)
			}
			if m.Fate == sweep.Survived && s.couldBeEnded(all) && !s.rightlyLeft(m) {
				bad("%d could have been ended: %s", m.PID, m.Note)
			}
		case sweep.Unverifiable:
			if s.clear() {
				bad("%d could not be verified although everything can be seen: %s", m.PID, m.Note)
			}
		default:
			bad("%d has fate %q", m.PID, m.Fate)
		}
		s.checkFate(m, all, bad)
	}
	if len(s.stopped) > 0 {
		for _, serial := range s.stopped[len(s.stopped)-1] {
			p := s.bySerial(serial)
			if !s.member(p) {
				bad("%v was captured and is not in the report", p)
			}
		}
	}
}

// couldBeEnded reports whether one that survived a whole stop was hob's to end,
// and nothing stood in the way.
func (s *scene) couldBeEnded(all []*sim.Process) bool {
	return s.clear() && s.err == nil && slices.ContainsFunc(all, func(p *sim.Process) bool {
		return p.Tree() == simTask && !p.Spared() && p != s.keeper && p.Killable(s.o.UID) && s.ended.Sub(p.Born()) > time.Second
	})
}

// rightlyLeft: where there is somebody's own work in the tree, hob rather leaves too
// much alone, and says so.
func (s *scene) rightlyLeft(m sweep.ReportMember) bool {
	return strings.HasPrefix(m.Note, "left alone") && slices.ContainsFunc(s.w.Ever(), (*sim.Process).Spared)
}

// checkFate: who is said to have ended by a signal was sent one. After a cut, or where
// the disk has refused a capture, what is on record of the last signals may be what was
// about to be sent.
func (s *scene) checkFate(m sweep.ReportMember, all []*sim.Process, bad bad) {
	killed := slices.ContainsFunc(s.w.Ledger().Deliveries, func(d sim.Delivery) bool {
		return d.Sig == syscall.SIGKILL && slices.Contains(all, d.To)
	})
	if m.Fate == sweep.Killed && !killed && !s.wasCut() && !s.full {
		bad("%d is said to have been killed, and was not", m.PID)
	}
}

func (s *scene) wasCut() bool {
	return slices.ContainsFunc(s.turns, func(t turn) bool { return t.cut })
}

// had are the processes that had the number at some time.
func (s *scene) had(pid int, fits func(*sim.Process) bool) (all []*sim.Process) {
	for _, p := range s.w.Ever() {
		if p.PID() == pid && fits(p) {
			all = append(all, p)
		}
	}
	return all
}

func (s *scene) bySerial(serial uint64) *sim.Process {
	for _, p := range s.w.Ever() {
		if p.Serial() == serial {
			return p
		}
	}
	return nil
}

// member reports whether the report has the process as a member.
func (s *scene) member(p *sim.Process) bool {
	return slices.ContainsFunc(s.report.Members, func(m sweep.ReportMember) bool {
		return m.PID == p.PID() && (m.Start == p.Ref().Start || m.Start == "")
	})
}

func (s *scene) named(p *sim.Process) bool {
	return s.member(p) || slices.ContainsFunc(s.report.Lookalikes, func(l sweep.Lookalike) bool {
		return l.PID == p.PID() && (l.Start == p.Ref().Start || l.Start == "")
	})
}

// checkLiving: each process of the tree is dead or named, or the report says
// that it could not look.
func (s *scene) checkLiving(bad bad) {
	for _, p := range s.w.Ever() {
		if !p.Alive() || p.Tree() != simTask || p == s.keeper || s.named(p) || s.excused(p) {
			continue
		}
		switch {
		case s.report.Verdict == sweep.Clean:
			bad("%v lives, is not named, and the verdict is clean", p)
		case s.report.Verdict == sweep.Survivors && s.clear() && s.ended.Sub(p.Born()) > settled:
			bad("%v lives, is not named, and nothing was hidden", p)
		}
	}
}

// excused are the limits that hob states: what was never captured, left the tree
// without a keeper above it that could inherit it, and shows no evidence.
// So is what a process that is left alone forked while the report was made, and what
// one did that nobody has seen: who is a member and has ended was looked below after.
// Hob's own work below the task is nobody's business.
func (s *scene) excused(p *sim.Process) bool {
	if slices.ContainsFunc(s.target.Spared, func(r identity.Ref) bool { return s.w.Truth(r) == p }) {
		return true
	}
	late := s.ended.Sub(p.Born()) < settled
	for q := p.Forker(); late && q != nil && q != s.keeper; q = q.Forker() {
		if s.leftAlone(q) || !q.Alive() && s.ended.Sub(q.Died()) < settled && !s.signalled(q) && !s.member(q) {
			return true
		}
	}
	if !s.mayLose() || s.saved[p.Serial()] {
		return false
	}
	if s.stamped() {
		return late || s.o.HidePID && s.o.UID != 0
	}
	marked := slices.Contains(p.Environ(), "HOB_RUN_ID="+simMarker)
	return !marked || s.report.Host.Inspection != "full" || late
}

// mayLose reports whether a process can have left the tree without a trace.
func (s *scene) mayLose() bool { return s.forced || s.o.NoSubreaper || s.o.OS != "" }

// stamped reports whether who has left the tree without a trace is to be known by
// the keeper's stamp.
func (s *scene) stamped() bool { return s.target.Stamp != 0 && !s.left }

// bearing are the look-alikes that are named by the stamp.
func (s *scene) bearing() (all []sweep.Lookalike) {
	for _, l := range s.report.Lookalikes {
		if slices.Contains(l.Why, string(sweep.Stamp)) {
			all = append(all, l)
		}
	}
	return all
}

// checkStamps: only what was born in the tree bears its stamp, and with somebody
// about who does nothing is clean.
func (s *scene) checkStamps(bad bad) {
	for _, l := range s.bearing() {
		ours := s.had(l.PID, func(p *sim.Process) bool { return p.Tree() == simTask })
		if len(ours) == 0 {
			bad("a stranger is said to bear the stamp: %+v", l)
		}
	}
	if s.report.Verdict == sweep.Clean && len(s.bearing()) > 0 {
		bad("somebody bears the stamp, and the verdict is clean: %+v", s.bearing())
	}
}

// signalled reports whether hob sent the process anything.
func (s *scene) signalled(p *sim.Process) bool {
	return slices.ContainsFunc(s.w.Ledger().Deliveries, func(d sim.Delivery) bool { return d.To == p })
}

// checkVerdict: clean means that nothing of the tree lives; what is not clean has
// a reason.
func (s *scene) checkVerdict(bad bad) {
	living := 0
	for _, p := range s.w.Ever() {
		mine := p.Tree() == simTask && p != s.keeper
		if mine && (p.Alive() || s.ended.Sub(p.Died()) < settled) {
			living++
		}
		if mine && p.Alive() && s.report.Verdict == sweep.Clean && !s.excused(p) && !s.leftAlone(p) &&
			!(s.named(p) && (s.mayLose() && !s.stamped() || s.ended.Sub(p.Born()) < settled)) {
			bad("%v lives, and the verdict is clean", p)
		}
	}
	switch s.report.Verdict {
	case sweep.Survivors:
		if living == 0 {
			bad("nothing lives, and the verdict is survivors")
		}
	case sweep.Unverified:
		unstamped := s.forced && s.target.Stamp == 0
		if s.clear() && s.err == nil && len(s.bearing()) == 0 && !unstamped {
			bad("the verdict is unverified although everything can be seen: %v", s.report.Host.Notes)
		}
	}
	if s.report.Host.Inspection == "none" && s.report.Verdict == sweep.Clean {
		bad("nothing could be seen, and the verdict is clean")
	}
}

// leftAlone reports whether the policy lets the process live without being a
// survivor: it is named as spared.
func (s *scene) leftAlone(p *sim.Process) bool {
	return slices.ContainsFunc(s.report.Members, func(m sweep.ReportMember) bool {
		return m.PID == p.PID() && m.Fate == sweep.Spared
	})
}
