package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"hob/identity"
)

// listing is one reading of the process table, for hosts whose children cannot
// be asked for.
type listing struct {
	table *identity.Table
	err   error
	kids  map[int][]int
}

// look is one round of the walk: every member is looked at through its pin,
// then the children of each living one, root first, are pinned and taken in.
// visit (may be nil) is called for each living member after its children are
// pinned, so that killing it there cannot lose them.
func (tr *tree) look(ctx context.Context, visit func(*node)) {
	tr.round++
	tr.blind, tr.moved, tr.listing, tr.lethal = map[int]string{}, false, nil, visit != nil
	tr.refresh()
	tr.looked = tr.ends
	tr.unseen()
	before := len(tr.nodes)
	if tr.keeperLives() {
		tr.rooted = true
		tr.walk(ctx, tr.keeper, visit)
		tr.rooted = false
	}
	for i := 0; i < len(tr.nodes); i++ { // not range: a walk adds to them
		if n := tr.nodes[i]; n.living() && n.seen != tr.round {
			tr.walk(ctx, n, visit)
		}
	}
	if !tr.keeperLives() || !tr.facts.Subreaper {
		tr.closeSessions(ctx)
	}
	tr.closeCgroup()
	tr.moved = tr.moved || len(tr.nodes) != before
}

// refresh looks at every member that was alive, and at the keeper.
func (tr *tree) refresh() {
	for _, n := range tr.nodes {
		if n.pin != nil {
			tr.check(n)
		} else if n.unknown() && n.EndedAt == nil {
			tr.retry(n)
		}
	}
	if k := tr.keeper; k != nil && k.pin != nil {
		k.found = k.pin.Verify()
		if row, err := k.pin.Read(identity.WantArgs); err == nil {
			k.row = row
		}
	}
}

// outlived looks at every member again, and reports whether all that lived at the last
// look still do: then nobody has been forked by one who has ended since.
func (tr *tree) outlived() bool {
	tr.refresh()
	return tr.ends == tr.looked
}

// unseen counts those whose children nobody can look for in this round, because
// they themselves could not be verified.
func (tr *tree) unseen() {
	for _, n := range append(slices.Clip(tr.nodes), tr.keeper) {
		if n != nil && n.unknown() && n.EndedAt == nil {
			tr.blind[n.Ref.PID] = fmt.Sprintf("process %d could not be verified, so nobody looked below it: %s", n.Ref.PID, n.found.Reason)
		}
	}
}

// check looks at a pinned member: has it ended, has it become another program?
func (tr *tree) check(n *node) {
	n.found = identity.Lives(n.pin)
	switch n.found.Verdict {
	case identity.Gone, identity.Foreign:
		tr.bury(n)
	case identity.Owned:
		tr.reread(n)
	}
}

// retry looks again at a recorded process that could not be verified.
func (tr *tree) retry(n *node) {
	n.pin, n.found = tr.h.Verify(n.Ref)
	switch n.found.Verdict {
	case identity.Gone, identity.Foreign:
		tr.bury(n)
	case identity.Owned:
		tr.claim(n)
	}
}

// reread reads a member's row again: an exec may have made a boundary of it.
func (tr *tree) reread(n *node) {
	row, err := n.pin.Read(identity.WantArgs)
	if err != nil {
		return // it is ending, or its row is hidden: the next Verify tells
	}
	n.row = row
	n.weigh(row)
	if len(row.Args) > 0 && !slices.Equal(row.Args, n.Args) {
		n.Args, n.vague, n.settled, tr.dirty = row.Args, 0, false, true
	}
	if row.SID != 0 && (row.SID != n.SID || row.PGID != n.PGID) {
		tr.detachLate(n, row)
		n.SID, n.PGID, tr.dirty = row.SID, row.PGID, true
	}
	tr.mark(n, n.parent)
	if !n.settled {
		tr.stray(n)
	}
}

// detachLate judges a member again that was first seen between its fork and its
// setsid(2). Only while the command lives and nothing was asked to end: after that
// parents end, and who they leave is adopted without having been detached.
func (tr *tree) detachLate(n *node, row identity.Process) {
	if c := tr.command(); tr.begun || c == nil || !c.living() || row.SID == n.SID {
		return
	}
	n.Detached = n.Detached || tr.bornDetached(row, n.parent)
}

// walk takes in what is below root, breadth first.
func (tr *tree) walk(ctx context.Context, root *node, visit func(*node)) {
	queue := []*node{root}
	root.seen = tr.round
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, kid := range tr.children(ctx, n) {
			if kid.seen != tr.round {
				kid.seen = tr.round
				queue = append(queue, kid)
			}
		}
		if visit != nil && n != tr.keeper {
			visit(n)
		}
	}
}

// children pins the children of a living process and returns their nodes, the
// known ones too.
func (tr *tree) children(ctx context.Context, n *node) []*node {
	pids, err := tr.list(ctx, n)
	switch {
	case errors.Is(err, identity.ErrGone):
		tr.moved = true
		return nil
	case err != nil:
		tr.blind[n.Ref.PID] = fmt.Sprintf("the children of %d could not be listed: %v", n.Ref.PID, err)
		return nil
	}
	var kids []*node
	var unknown []int
	for _, pid := range pids {
		if kid := tr.live[pid]; kid != nil && kid.living() {
			kids = append(kids, kid)
		} else if pid > 1 && pid != tr.keeperPID() {
			unknown = append(unknown, pid)
		}
	}
	var found []candidate
	for i, o := range identity.OpenAll(tr.h, unknown, identity.WantArgs) {
		if c, ok := tr.candidate(unknown[i], o, n); ok {
			found = append(found, c)
		}
	}
	return append(kids, tr.takeIn(n, found)...)
}

// list asks the host for the children of a process, or finds them in the
// process table where it cannot be asked.
func (tr *tree) list(ctx context.Context, n *node) ([]int, error) {
	if kids, ok := tr.listed(ctx, n); ok {
		return kids, nil
	}
	pids, err := identity.Children(tr.h, n.pin)
	if !errors.Is(err, identity.ErrUnsupported) {
		return pids, err
	}
	l := tr.table(ctx)
	if l.err != nil {
		return nil, l.err
	}
	tr.missRows(l.table)
	return l.kids[n.Ref.PID], nil
}

// manyThreads is from how many on one asks whether the process table is read sooner than
// the lists of children, of which each thread has its own.
const manyThreads = 64

// listed finds the children of a process with very many threads in the process table,
// if that is shorter and shows everything. It is of an earlier moment than a list would
// be, so nobody is killed by it: what was forked since would be lost with its parent.
// One that has ended may have left its children to the keeper behind our back.
func (tr *tree) listed(ctx context.Context, n *node) ([]int, bool) {
	if !tableServes(tr.lethal, n.row.Threads, func() (int, bool) { return identity.Count(tr.h) }) {
		return nil, false
	}
	l := tr.table(ctx)
	if l.err != nil || l.table.Hidden || len(l.table.Unreadable) > 0 {
		return nil, false
	}
	tr.moved = tr.moved || identity.Lives(n.pin).Verdict != identity.Owned
	return l.kids[n.Ref.PID], true
}

// tableServes decides that.
func tableServes(lethal bool, threads int, processes func() (int, bool)) bool {
	if lethal || threads < manyThreads {
		return false
	}
	n, ok := processes()
	return ok && threads > n
}

// missRows counts the rows of a table that do not say whose child they are:
// any of them may be below us, unless wait has said that nothing is.
func (tr *tree) missRows(t *identity.Table) {
	if len(t.Unreadable) == 0 && !t.Hidden || tr.done() {
		return
	}
	for _, u := range t.Unreadable {
		tr.blind[u.PID] = fmt.Sprintf("the row of process %d could not be read, so it may be below the task: %v", u.PID, u.Err)
	}
	if t.Hidden {
		tr.blind[0] = "other users' processes are hidden, and some may be below the task"
	}
}

// table is the process table of this round, read once.
func (tr *tree) table(ctx context.Context) *listing {
	if tr.listing == nil {
		t, err := tr.h.Snapshot(ctx, 0)
		tr.listing = newListing(t, err)
	}
	return tr.listing
}

func newListing(t *identity.Table, err error) *listing {
	l := &listing{table: t, err: err, kids: map[int][]int{}}
	switch {
	case err != nil:
		return l
	case !t.SawSelf:
		l.err = errors.New("the process table does not show the process that reads it")
		return l
	}
	for _, p := range t.Procs {
		l.kids[p.PPID] = append(l.kids[p.PPID], p.PID)
	}
	return l
}

// candidate is a process that was pinned and whose row was read under the pin.
type candidate struct {
	pin identity.Handle
	row identity.Process
}

// candidate judges a listed child that was pinned, and its parent read under the pin.
func (tr *tree) candidate(pid int, o identity.Opened, parent *node) (candidate, bool) {
	pin, row, err := tr.pinned(pid, o)
	if err != nil {
		// What it leaves behind is the keeper's now, whose children we have listed.
		tr.moved = tr.moved || !errors.Is(err, errCorpse) && tr.blind[pid] == "" && tr.matters(parent)
		return candidate{}, false
	}
	if row.PPID != parent.Ref.PID {
		tr.moved = true // reparented while we looked: the next round finds it where it is now
		_ = pin.Close()
		return candidate{}, false
	}
	return candidate{pin, row}, true
}

// takeIn makes members of a parent's children. Each was pinned and named the
// parent under its pin; that the parent is still alive after that proves that
// neither number was another process's in between.
func (tr *tree) takeIn(parent *node, found []candidate) []*node {
	if len(found) == 0 {
		return nil
	}
	if parent != tr.keeper {
		tr.reread(parent) // it may have become a boundary before it forked these
	}
	alive := parent.pin.Verify().Verdict == identity.Owned
	var kids []*node
	for _, c := range found {
		if !alive {
			tr.moved = true
			_ = c.pin.Close()
			continue
		}
		kids = append(kids, tr.take(c.pin, c.row, parent, tr.chainEvidence(parent, c.row.PID)))
	}
	return kids
}

// matters reports whether what is below a process may be ours to end.
func (tr *tree) matters(n *node) bool { return n == tr.keeper || tr.spareOf(n).why == "" }

// errCorpse is a zombie that was seen before: it has left nothing new behind.
var errCorpse = errors.New("a zombie that is known")

// pinLiving pins a process that hangs below us and reads its row under the pin.
func (tr *tree) pinLiving(pid int) (identity.Handle, identity.Process, error) {
	return tr.pinned(pid, identity.OpenAll(tr.h, []int{pid}, identity.WantArgs)[0])
}

// pinned is a process that was pinned, if it lives. What could not be read is
// remembered as such.
func (tr *tree) pinned(pid int, o identity.Opened) (identity.Handle, identity.Process, error) {
	err := o.Err
	if err != nil {
		return nil, identity.Process{}, tr.missed(pid, err)
	}
	if o.Found.Verdict == identity.Owned {
		return o.Pin, o.Row, nil
	}
	if err = o.Found.Err(); o.Found.Zombie && tr.knownCorpse(o.Pin.Ref()) {
		err = errCorpse
	}
	_ = o.Pin.Close()
	return nil, identity.Process{}, tr.missed(pid, err)
}

// knownCorpse reports whether the zombie was seen before, and remembers it.
func (tr *tree) knownCorpse(ref identity.Ref) bool {
	was, ok := tr.corpses[ref.PID]
	tr.corpses[ref.PID] = ref
	return ok && sameProcess(was, ref)
}

// missed notes a process that could not be pinned or read. One that has ended
// is not missed.
func (tr *tree) missed(pid int, err error) error {
	over := errors.Is(err, identity.ErrGone) || errors.Is(err, identity.ErrReused) || errors.Is(err, errCorpse)
	if !over {
		tr.blind[pid] = fmt.Sprintf("process %d below the task could not be read: %v", pid, err)
	}
	return err
}

// chainEvidence grades a child that was found by its parent chain.
func (tr *tree) chainEvidence(parent *node, pid int) []Evidence {
	adopted := parent == tr.keeper && (tr.t.Command == nil || pid != tr.t.Command.PID)
	switch {
	case !tr.begun && adopted:
		return []Evidence{Captured, Adopted}
	case !tr.begun:
		return []Evidence{Captured}
	case tr.rooted && tr.keeperLives():
		return []Evidence{Adopted}
	}
	return []Evidence{Child}
}

// take makes a member of a pinned process. One that is in the capture already,
// and could not be verified until now, keeps its place there.
func (tr *tree) take(pin identity.Handle, row identity.Process, parent *node, evidence []Evidence) *node {
	n := tr.live[row.PID]
	if n == nil || !sameProcess(n.Ref, pin.Ref()) {
		n = &node{Member: Member{Ref: pin.Ref(), Parent: row.PPID, SID: row.SID, PGID: row.PGID, SeenAt: tr.h.Now()}}
		n.Detached = tr.bornDetached(row, parent)
		tr.nodes = append(tr.nodes, n)
		tr.live[row.PID] = n
	} else if n.pin != nil {
		n.pin.Close()
	}
	n.pin, n.row, n.found = pin, row, identity.Finding{Verdict: identity.Owned}
	n.weigh(row)
	n.Args, n.Evidence, n.parent = argsOf(row), evidence, parent
	if parent != nil {
		n.depth = parent.depth + 1
	}
	tr.mark(n, parent)
	tr.stray(n)
	tr.dirty = true
	return n
}

// weigh keeps the first figure of resident memory: the stop itself changes it.
func (n *node) weigh(row identity.Process) {
	if rss := row.RSS; n.memory == nil && rss > 0 {
		n.memory = &rss
	}
}

func (tr *tree) bornDetached(row identity.Process, parent *node) bool {
	return bornDetached(row.PPID, tr.keeperPID(), row.SID, tr.commandSID(), parent != nil && parent.Detached)
}

// argsOf is the command line, or the kernel's name in brackets (as ps shows
// it) where there is none.
func argsOf(p identity.Process) []string {
	if len(p.Args) > 0 {
		return p.Args
	}
	return []string{"[" + p.Comm + "]"}
}

func (tr *tree) keeperLives() bool { return tr.keeper != nil && tr.keeper.living() }
