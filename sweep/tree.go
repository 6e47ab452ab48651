package sweep

import (
	"errors"
	"maps"
	"slices"
	"time"

	"hob/identity"
)

// node is a member of the capture with what is known of it now.
type node struct {
	Member
	pin     identity.Handle  // nil unless the process lives, as far as we know
	row     identity.Process // its row when it was last read
	found   identity.Finding // what the last look at it said
	parent  *node            // nil at the top and for what was found without its parent
	depth   int              // below the keeper
	seen    int              // number of the last round that walked it
	memory  *int64           // resident bytes when first read
	gpu     *int64           // GPU memory before the stop
	vague   int              // looks at an orphan that did not yet show where it comes from
	settled bool             // it is known, or will not be known, where the orphan comes from
	refused string           // the signal that was refused, and why
}

// living reports whether the process was alive at the last look.
func (n *node) living() bool { return n.pin != nil && n.found.Verdict == identity.Owned }

// unknown reports whether the last look could not tell.
func (n *node) unknown() bool { return n.found.Verdict == identity.Unverifiable }

// was reports whether the member has been sent the signal, by this stop or by
// one that was cut.
func (n *node) was(signal string) bool {
	return slices.ContainsFunc(n.Signals, func(s Sent) bool { return s.Signal == signal })
}

// told reports whether the member has been sent the signal since a time.
func (n *node) told(signal string, since time.Time) bool {
	return slices.ContainsFunc(n.Signals, func(s Sent) bool { return s.Signal == signal && !s.At.Before(since) })
}

// tree is a task's process tree: the capture, pinned where it lives.
type tree struct {
	h      identity.Host
	t      Target
	from   Step
	facts  identity.Facts
	keeper *node // not a member; nil when there never was one
	nodes  []*node
	live   map[int]*node // the living and the unknown, by pid

	rooted  bool                 // the walk that is under way started at the keeper
	begun   bool                 // a signal may have been sent: what is found now was not captured before
	round   int                  // number of the walk
	done    func() bool          // wait has said ECHILD to the keeper
	blind   map[int]string       // processes that hang below us and could not be read, and why (this round)
	moved   bool                 // something changed its parent while we looked (this round)
	corpses map[int]identity.Ref // zombies that were seen, by pid
	dirty   bool                 // there is something that the disk does not have
	lastEnd time.Time            // when the last end of a member was seen
	ends    int                  // how many ends were seen
	looked  int                  // and how many at the last look, before it asked for children
	notes   []string             // for the report's host.notes
	listing *listing             // the process table of this round, where one had to be read
	lethal  bool                 // what this round finds is killed by it

	cgroup   *identity.CgroupRef // the task's, as the capture names it
	guests   []identity.Ref      // who was seen in it and is not the task's
	frozenAt *time.Time          // when hob began to freeze it, nil unless that is not over
	home     *home               // it, opened; nil where there is none
}

// newTree verifies every claim of the target and of the capture on disk, and
// pins what lives.
func newTree(h identity.Host, t Target, prev Capture, from Step) *tree {
	tr := &tree{h: h, t: t, from: from, facts: h.Facts(), done: func() bool { return false }, live: map[int]*node{},
		blind: map[int]string{}, corpses: map[int]identity.Ref{}}
	tr.begun = prev.Phase == phaseStop
	if t.Keeper != nil {
		tr.keeper = &node{Member: Member{Ref: *t.Keeper}}
		tr.keeper.pin, tr.keeper.found = h.Verify(*t.Keeper)
	}
	tr.notes = slices.Clone(prev.Notes)
	for _, m := range prev.Members {
		tr.load(m)
	}
	if t.Command != nil && tr.find(*t.Command) == nil {
		tr.load(tr.commandMember())
		tr.dirty = true
	}
	tr.link()
	tr.cgroup, tr.guests, tr.frozenAt = prev.Cgroup, slices.Clone(prev.Guests), prev.FrozenAt
	tr.openHome()
	return tr
}

// commandMember is the command as the keeper wrote it down: a verified root.
func (tr *tree) commandMember() Member {
	m := Member{Ref: *tr.t.Command, SID: tr.t.Command.PID, PGID: tr.t.Command.PID, Args: tr.t.Args,
		Evidence: []Evidence{Captured}, SeenAt: tr.h.Now()}
	if tr.t.Keeper != nil {
		m.Parent = tr.t.Keeper.PID
	}
	return m
}

// load takes a member of the capture on disk: pinned if it verifies as owned.
// A fate that says "ended" is final and is not looked at again.
func (tr *tree) load(m Member) {
	n := &node{Member: m}
	tr.nodes = append(tr.nodes, n)
	if ended(m.Fate) {
		n.found = identity.Finding{Verdict: identity.Gone}
		return
	}
	n.Fate, n.EndedAt = "", nil
	n.pin, n.found = tr.h.Verify(m.Ref)
	switch n.found.Verdict {
	case identity.Owned, identity.Unverifiable:
		tr.claim(n)
	default:
		tr.bury(n)
	}
}

// claim enters a member by its number, which one that lives has, whoever else is
// recorded with it and could not be verified.
func (tr *tree) claim(n *node) {
	if was := tr.live[n.Ref.PID]; was == nil || !was.living() {
		tr.live[n.Ref.PID] = n
	}
}

// link gives loaded members their parents and depths.
func (tr *tree) link() {
	before := make(map[int]*node, len(tr.nodes)) // parents are captured first
	for _, n := range tr.nodes {
		if tr.keeper != nil && n.Parent == tr.keeper.Ref.PID {
			n.parent = tr.keeper
		}
		if p := before[n.Parent]; p != nil {
			n.parent, n.depth = p, p.depth+1
		}
		before[n.Ref.PID] = n
	}
}

// bury writes down that a member has ended, now, and gives its pin back.
func (tr *tree) bury(n *node) {
	now := tr.h.Now()
	n.EndedAt, tr.lastEnd, tr.dirty = &now, now, true
	tr.ends++
	n.Fate = fateOf(n.found, n.Signals, spare{})
	if n.pin != nil {
		n.pin.Close()
		n.pin = nil
	}
	if tr.live[n.Ref.PID] == n {
		delete(tr.live, n.Ref.PID)
	}
}

// close gives every pin back.
func (tr *tree) close() {
	for _, n := range tr.nodes {
		if n.pin != nil {
			n.pin.Close()
		}
	}
	if tr.keeper != nil && tr.keeper.pin != nil {
		tr.keeper.pin.Close()
	}
	if tr.home != nil && tr.home.group != nil {
		_ = tr.home.group.Close()
	}
}

// find returns the member with this Ref, or nil.
func (tr *tree) find(ref identity.Ref) *node {
	for _, n := range tr.nodes {
		if sameProcess(n.Ref, ref) {
			return n
		}
	}
	return nil
}

// command is the task's command as a member, or nil.
func (tr *tree) command() *node {
	if tr.t.Command == nil {
		return nil
	}
	return tr.find(*tr.t.Command)
}

// commandSID is the kernel session of the command: the keeper gives it a
// terminal of its own, so it leads one, and so it is recorded.
func (tr *tree) commandSID() int {
	if c := tr.command(); c != nil {
		return c.SID
	}
	return 0
}

// keeperPID is the keeper's number while it lives or may live, else 0: then the
// number may have been given to a process of ours.
func (tr *tree) keeperPID() int {
	if tr.keeper == nil || !tr.keeper.living() && !tr.keeper.unknown() {
		return 0
	}
	return tr.keeper.Ref.PID
}

// spareOf is why a member is left alone, if it is.
func (tr *tree) spareOf(n *node) spare {
	if n.row.Kernel {
		return spare{why: "kernel thread"}
	}
	return spareOf(n.Member, tr.t, tr.from)
}

// may reports whether the member may be signalled now.
func (tr *tree) may(n *node) bool {
	settled := n.vague == 0 || n.settled
	return n.living() && settled && Permits(n.Evidence) && tr.spareOf(n).why == ""
}

// targets are the living members that may be signalled.
func (tr *tree) targets() []*node {
	var out []*node
	for _, n := range tr.nodes {
		if tr.may(n) {
			out = append(out, n)
		}
	}
	return out
}

// capture is the tree as it goes to disk.
func (tr *tree) capture(phase string) Capture {
	c := Capture{Schema: 1, Run: tr.t.Run, Task: tr.t.Task, TakenAt: tr.h.Now(), Phase: phase,
		Members: make([]Member, 0, len(tr.nodes)), Notes: tr.notes, Cgroup: tr.cgroup, Guests: tr.guests, FrozenAt: tr.frozenAt}
	for _, n := range tr.nodes {
		c.Members = append(c.Members, n.Member)
	}
	return c
}

// say adds a note for the report, once.
func (tr *tree) say(note string) {
	if !slices.Contains(tr.notes, note) {
		tr.notes = append(tr.notes, note)
	}
}

// prune drops members that have ended from a rolling capture: a server that
// forks all day would else fill the disk. A leader whose kernel session still
// holds a living member stays: it shows that the session was born in the tree.
func (tr *tree) prune() {
	needed := map[int]bool{}
	for _, n := range tr.nodes {
		if !ended(n.Fate) {
			needed[n.SID] = true
		}
	}
	tr.nodes = slices.DeleteFunc(tr.nodes, func(n *node) bool {
		led := needed[n.SID] && n.SID == n.Ref.PID
		return ended(n.Fate) && !led
	})
}

// blindness is what of the tree could not be seen in the last round, or nil.
func (tr *tree) blindness() error {
	var errs []error
	for _, pid := range slices.Sorted(maps.Keys(tr.blind)) {
		errs = append(errs, errors.New(tr.blind[pid]))
	}
	return errors.Join(errs...)
}
