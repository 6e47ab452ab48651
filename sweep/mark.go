package sweep

import (
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
	return n.parent == tr.keeper && tr.keeper != nil && slices.Equal(n.row.Args, tr.keeper.row.Args)
}

// stray spares an orphan that was started in a pane of somebody's tmux below us.
// Its parents there have ended, so the keeper has adopted it like any orphan of
// ours, and only its environment tells: the keeper gives TMUX to shells alone,
// and then it names hob's own server. The server itself need not be in sight.
func (tr *tree) stray(n *node) {
	if n.Boundary != "" || n.parent != nil && n.parent != tr.keeper {
		return
	}
	row, err := n.pin.Read(identity.WantEnviron)
	if err != nil {
		return
	}
	server := tmuxOf(row.Environ)
	own := func(r identity.Ref) bool { return r.PID == server }
	if server > 0 && !slices.ContainsFunc(tr.t.Spared, own) {
		n.Boundary = inherited(tmuxBoundary)
	}
}
