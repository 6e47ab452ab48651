package sweep

import (
	"errors"
	"slices"

	"hob/identity"
)

// mark spares a member that is, or is below, a boundary or a command of
// stop.spare. What was spared once stays so.
func (tr *tree) mark(n, parent *node) {
	was := n.Boundary + n.Spare
	if b := boundaryOf(n.row); b != "" && !tr.unexeced(n) {
		n.Boundary = b
	}
	if parent != nil && n.Boundary == "" && parent.Boundary != "" {
		n.Boundary = inherited(parent.Boundary)
	}
	if sparedByName(n.row.Args, tr.t.Stop.Spare) {
		n.Spare = "stop.spare"
	}
	if parent != nil && n.Spare == "" {
		n.Spare = parent.Spare
	}
	tr.dirty = tr.dirty || was != n.Boundary+n.Spare
}

// unexeced reports whether the process still shows our keeper's command line:
// the keeper has forked it and it has not yet become the task's command.
func (tr *tree) unexeced(n *node) bool {
	return n.parent == tr.keeper && tr.forked(n.row)
}

// forked reports whether a row still shows our keeper, as between fork and exec.
// The environment is the keeper's then too, and names the tmux server of its pane.
func (tr *tree) forked(row identity.Process) bool {
	return tr.keeper != nil && slices.Equal(row.Args, tr.keeper.row.Args)
}

// vagueLooks is how often a process is looked at again whose environment cannot
// be read, or that shows neither that nor arguments, as in the middle of an exec.
const vagueLooks = 10

// stray spares an orphan that was started in a pane of somebody's tmux below us.
// Its parents there have ended, so the keeper has adopted it like any orphan of
// ours, and only its environment tells: the keeper gives TMUX to shells alone,
// and then it names hob's own server. The server itself need not be in sight.
func (tr *tree) stray(n *node) {
	if n.Boundary != "" || n.parent != nil && n.parent != tr.keeper || n == tr.command() {
		return
	}
	row, err := n.pin.Read(identity.WantArgs | identity.WantEnviron)
	shut := err != nil || row.Missing&identity.WantEnviron != 0
	switch {
	case errors.Is(err, identity.ErrGone):
		return
	case (shut || len(row.Args)+len(row.Environ) == 0) && n.vague < vagueLooks:
		n.vague++
		tr.moved = true
		return
	}
	n.settled = true
	if shut {
		tr.closed(n)
		return
	}
	server := tmuxOf(row.Environ)
	own := func(r identity.Ref) bool { return r.PID == server }
	if server > 0 && !slices.ContainsFunc(tr.t.Spared, own) && !tr.forked(row) {
		n.Boundary, tr.dirty = inherited(tmuxBoundary), true
	}
}

// closed spares an orphan whose environment may not be read (another user's, or
// an ssh-agent) where there is a tmux server that it may come from.
func (tr *tree) closed(n *node) {
	if slices.ContainsFunc(tr.nodes, func(m *node) bool { return m.Boundary == tmuxBoundary }) {
		n.Boundary, tr.dirty = maybeBelow, true
	}
}
