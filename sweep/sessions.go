package sweep

import "context"

// closeSessions takes in what is in a kernel session that was born in the tree
// while a captured member is alive in it. The number of a session cannot be
// used again while anyone is in it, so the anchor, read after the candidate,
// proves that both are in one session. It matters only without a living
// subreaper, which keeps every descendant below itself.
func (tr *tree) closeSessions(ctx context.Context) {
	anchors := tr.anchors()
	if len(anchors) == 0 {
		return
	}
	l := tr.table(ctx)
	if l.err != nil {
		tr.blind[0] = "the process table could not be read: " + l.err.Error()
		return
	}
	for _, p := range l.table.Procs {
		anchor := anchors[p.SID]
		known := tr.live[p.PID]
		if anchor == nil || p.Kernel || p.PID <= 1 || p.PID == tr.keeperPID() || known != nil && known.living() {
			continue
		}
		tr.discoverInSession(p.PID, anchor)
	}
}

// anchors are living, captured members that may be signalled, by session, for
// the sessions that were born in the tree.
func (tr *tree) anchors() map[int]*node {
	born := tr.bornSessions()
	out := map[int]*node{}
	for _, n := range tr.nodes {
		if born[n.SID] && tr.may(n) && out[n.SID] == nil {
			out[n.SID] = n
		}
	}
	return out
}

// bornSessions are the kernel sessions that were made in the tree: their leader
// is the keeper or a member, and no boundary.
func (tr *tree) bornSessions() map[int]bool {
	born := map[int]bool{}
	if tr.keeper != nil {
		born[tr.keeper.Ref.PID] = true // also a dead one's: while anyone is in it nobody else gets the number
	}
	for _, n := range tr.nodes {
		if n.SID == n.Ref.PID {
			born[n.SID] = true
		}
	}
	for _, n := range tr.nodes {
		if n.Boundary != "" && n.SID == n.Ref.PID {
			delete(born, n.SID)
		}
	}
	return born
}

// discoverInSession pins pid, reads its session under the pin, and then the
// anchor's: equal means the same session. Who leaves a session leads a new one, so
// the anchor was in it all the time, and its number was not given to another; an
// anchor that has ended meanwhile and was not reaped still holds it. That the row is
// the anchor's is what Read says.
func (tr *tree) discoverInSession(pid int, anchor *node) {
	pin, row, err := tr.pinLiving(pid)
	if err != nil {
		return
	}
	now, err := anchor.pin.Read(0)
	if err != nil || row.SID != anchor.SID || now.SID != anchor.SID {
		pin.Close()
		return
	}
	tr.take(pin, row, nil, []Evidence{Session}).depth = anchor.depth + 1
}
