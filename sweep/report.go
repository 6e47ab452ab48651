package sweep

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"hob/identity"
)

// report looks at every member once more, at the whole host, and sums up.
func (s *stopper) report() Report {
	tr := s.tr
	s.lastLooks()
	host := s.scan(s.scanContext())
	r := Report{Schema: 1, Run: tr.t.Run, Task: tr.t.Task, Reason: s.o.Reason, StartedAt: s.began,
		Members: make([]ReportMember, 0, len(tr.nodes)), Lookalikes: host.lookalikes, Ports: host.ports}
	for _, n := range tr.nodes {
		r.Members = append(r.Members, s.memberReport(n))
	}
	if m, ok := s.keeperReport(); ok {
		r.Members = append([]ReportMember{m}, r.Members...)
	}
	r.Host = ReportHost{OS: tr.facts.OS, Boot: tr.facts.Boot, Inspection: host.inspection,
		Notes: append(s.notes(host.stamps), host.notes...)}
	s.unsure = len(tr.blind) > 0 || host.stamps.unsure()
	r.Verdict = verdictOf(r.Members, host.inspection, s.unsure)
	r.EndedAt = tr.h.Now()
	return r
}

// lastLooks look at every member once more, and below them for as long as one of those
// who were left alone has ended since: what it has forked meanwhile is a survivor.
func (s *stopper) lastLooks() {
	before := len(s.tr.nodes)
	for range quietRounds {
		if s.tr.outlived() {
			break
		}
		s.tr.look(s.scanContext(), nil)
	}
	if s.phase == PhaseDone && len(s.tr.nodes) > before {
		s.save()
	}
}

// preview is the report of a dry run: nothing was signalled, and living members
// have no fate. What is said is what would be.
func (s *stopper) preview() Report {
	r := s.report()
	r.DryRun = true
	for i, n := range s.tr.nodes {
		m := &r.Members[len(r.Members)-len(s.tr.nodes)+i]
		switch {
		case m.Fate == Survived && s.tr.may(n):
			m.Fate, m.Note = "", "would be ended"
			if n == s.tr.command() && s.o.From == StepAll {
				m.Note = fmt.Sprintf("would be asked to end by %s, and get %v for it", identity.SignalName(s.seen().stopSignal()), s.tr.t.Stop.Grace)
			}
		case strings.HasPrefix(m.Note, leftAlone):
			m.Note = "would be " + m.Note
		}
	}
	r.Verdict = verdictOf(r.Members, r.Host.Inspection, s.unsure)
	return r
}

// leftAlone begins the note of a member that is not signalled on purpose.
const leftAlone = "left alone: "

func (s *stopper) memberReport(n *node) ReportMember {
	m := ReportMember{PID: n.Ref.PID, Start: n.Ref.Start, Parent: n.Parent, Args: n.Args, Evidence: n.Evidence,
		Signals: names(n.Signals), Sent: n.Signals, Fate: n.Fate, EndedAt: n.EndedAt, Note: n.Note, MemoryBytes: n.memory, GPUBytes: n.gpu}
	if ended(m.Fate) {
		m.Note += s.unreaped(n)
		return m
	}
	sp := s.tr.spareOf(n)
	m.Fate = fateOf(n.found, n.Signals, sp)
	m.Note = s.why(n, sp)
	return m
}

// unreaped names the parent that leaves a member's corpse lying. It has ended
// all the same. Most are reaped in a moment, so it is asked last.
func (s *stopper) unreaped(n *node) string {
	if !n.found.Zombie {
		return ""
	}
	pin, f := s.tr.h.Verify(n.Ref)
	if pin != nil {
		_ = pin.Close()
	}
	if !f.Zombie {
		return ""
	}
	return fmt.Sprintf("exited; its parent %d has not reaped it", f.ZombieOf)
}

// why says why a member has not ended.
func (s *stopper) why(n *node, sp spare) string {
	switch {
	case sp.why != "":
		return leftAlone + sp.why
	case n.unknown():
		return "could not be verified: " + n.found.Reason
	case n.refused != "":
		return n.refused + s.owner(n)
	case n.was("KILL"):
		return "stuck: " + s.state(n)
	}
	return ""
}

// owner names the user of a process that may not be signalled.
func (s *stopper) owner(n *node) string {
	row, err := n.pin.Read(identity.WantUser)
	if err != nil || row.UID < 0 {
		return ""
	}
	return "; it runs as " + userName(row.UID)
}

// state describes what a process that KILL did not end is doing.
func (s *stopper) state(n *node) string {
	row, err := n.pin.Read(identity.WantWchan)
	if err != nil {
		return "its state could not be read"
	}
	text := fmt.Sprintf("alive after KILL, in state %c", row.State)
	if row.Wchan != "" && row.Wchan != "0" {
		text += ", waiting in " + row.Wchan
	}
	return text
}

// keeperReport names a keeper that had to be ended, or lives on with nothing
// below it. A keeper that ended by itself is no member.
func (s *stopper) keeperReport() (ReportMember, bool) {
	k := s.tr.keeper
	if k == nil || len(k.Signals) == 0 {
		return ReportMember{}, false
	}
	m := ReportMember{PID: k.Ref.PID, Start: k.Ref.Start, Args: argsOf(k.row), Evidence: []Evidence{Captured},
		Signals: names(k.Signals), Sent: k.Signals, Note: "the task's keeper"}
	m.Fate = fateOf(k.found, k.Signals, spare{})
	if k.refused != "" {
		m.Note += "; " + k.refused
	}
	return m, true
}

// notes are what a reader must know about how much was seen.
func (s *stopper) notes(st stamps) []string {
	tr := s.tr
	notes := append([]string{}, tr.notes...)
	notes = append(notes, tr.facts.Incomplete...)
	if !tr.facts.Subreaper {
		notes = append(notes, "this system has no subreaper: a process that left the tree before it was captured can only be looked for by likeness")
	}
	if k := tr.keeper; k != nil {
		if note := st.note(k.Ref.PID, s.taken.Local().Format("15:04:05")); note != "" {
			notes = append(notes, note)
		}
	}
	if err := tr.blindness(); err != nil {
		notes = append(notes, strings.Split(err.Error(), "\n")...)
	}
	if s.saveErr != nil {
		notes = append(notes, s.saveErr.Error())
	}
	return notes
}

// MarshalJSON writes empty lists as [], which the contract promises.
func (r Report) MarshalJSON() ([]byte, error) {
	type plain Report
	r.Members, r.Lookalikes, r.Ports = list(r.Members), list(r.Lookalikes), list(r.Ports)
	r.Host.Notes = list(r.Host.Notes)
	r.Members = slices.Clone(r.Members)
	for i := range r.Members {
		m := &r.Members[i]
		m.Args, m.Evidence, m.Signals = list(m.Args), list(m.Evidence), list(m.Signals)
	}
	r.Lookalikes = slices.Clone(r.Lookalikes)
	for i := range r.Lookalikes {
		l := &r.Lookalikes[i]
		l.Args, l.Why = list(l.Args), list(l.Why)
	}
	return json.Marshal(plain(r))
}

// list is the slice, never nil.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// Took is how long the stop or sweep took.
func (r Report) Took() time.Duration { return r.EndedAt.Sub(r.StartedAt) }
