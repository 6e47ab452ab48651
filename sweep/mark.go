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

// A process that was started in a pane of a tmux server in the tree, and whose
// parents there have ended, is adopted by our keeper like any orphan of ours.
// Only its environment tells (TMUX), and the server may be walked after it. So
// what was adopted is asked where it comes from, and nothing is done to it, or
// to what is below it, before the walk has seen every server.

// doubtful reports whether the member, or one above it, may be such a process.
func (tr *tree) doubtful(n *node) bool {
	for ; n != nil && n != tr.keeper; n = n.parent {
		if tr.originOf(n) > 0 {
			return true
		}
	}
	return false
}

// originOf is the pid of the tmux server that an adopted member's environment
// names, -1 if none.
func (tr *tree) originOf(n *node) int {
	if n.origin != 0 || n.pin == nil || n.parent != tr.keeper && n.parent != nil || n == tr.command() {
		return n.origin
	}
	if row, err := n.pin.Read(identity.WantEnviron); err == nil {
		n.origin = tmuxOf(row.Environ)
	}
	return n.origin
}

// settle spares what comes from a tmux server of the tree, and all below it.
func (tr *tree) settle() {
	servers := tr.servers()
	if len(servers) == 0 {
		return
	}
	for _, n := range tr.nodes {
		if !n.living() || n.Boundary != "" {
			continue
		}
		if servers[tr.originOf(n)] {
			n.Boundary, tr.dirty = inherited(tmuxBoundary), true
		}
		tr.mark(n, n.parent)
	}
}

// servers are the pids of the tmux servers that were seen in the tree.
func (tr *tree) servers() map[int]bool {
	out := map[int]bool{}
	for _, n := range tr.nodes {
		if n.Boundary == tmuxBoundary {
			out[n.Ref.PID] = true
		}
	}
	return out
}
