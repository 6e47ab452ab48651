package sweep

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"hob/identity"
)

// What stands in Member.Boundary.
const (
	tmuxBoundary   = "tmux server"
	keeperBoundary = "keeper of another hob"
	belowBoundary  = "below a "
	maybeBelow     = belowBoundary + tmuxBoundary + ", as far as can be told: its environment cannot be read"
)

// boundaryOf says whether a process is a tmux server or a hob's keeper ("" if
// neither): what it and all below it do is somebody's own work. Recognition
// only spares, it never permits, so it may believe what a process says of itself.
func boundaryOf(p identity.Process) string {
	switch {
	case isTmuxServer(p):
		return tmuxBoundary
	case isKeeper(p.Args):
		return keeperBoundary
	}
	return ""
}

// isTmuxServer knows the server by the name that tmux gives itself (in the
// command line on BSD, in comm on Linux) and, in the moment before it has done
// that, as a tmux that leads a kernel session without a terminal.
func isTmuxServer(p identity.Process) bool {
	const title = "tmux: server"
	if strings.HasPrefix(p.Comm, title) {
		return true
	}
	if len(p.Args) == 0 {
		return false
	}
	return strings.HasPrefix(p.Args[0], title) ||
		path.Base(p.Args[0]) == "tmux" && p.SID == p.PID && p.TTY == 0
}

// IsKeeper reports whether a process is a hob's keeper, by its command line: for
// those who only look.
func IsKeeper(p identity.Process) bool { return isKeeper(p.Args) }

// isKeeper knows `hob … keeper …/spec.json` whatever the program is called.
func isKeeper(args []string) bool {
	i := slices.Index(args, "keeper")
	return i >= 1 && i+1 < len(args) && path.Base(args[i+1]) == "spec.json"
}

// tmuxOf is the pid of the tmux server in whose pane a process was started, as
// its environment says (TMUX=socket,pid,session); -1 when it says nothing.
func tmuxOf(environ []string) int {
	for _, e := range environ {
		value, ok := strings.CutPrefix(e, "TMUX=")
		if !ok {
			continue
		}
		if f := strings.Split(value, ","); len(f) >= 3 {
			if pid, err := strconv.Atoi(f[len(f)-2]); err == nil && pid > 0 {
				return pid
			}
		}
	}
	return -1
}

// inherited is the boundary of what is below a boundary.
func inherited(boundary string) string {
	if strings.HasPrefix(boundary, belowBoundary) {
		return boundary
	}
	return belowBoundary + boundary
}

// sparedByName reports whether stop.spare lists the command (base of argv[0]).
func sparedByName(args, names []string) bool {
	if len(args) == 0 {
		return false
	}
	return slices.Contains(names, strings.TrimPrefix(path.Base(args[0]), "-"))
}

// bornDetached is the rule for shells: at its first capture the process had
// been adopted by the keeper and was in another kernel session than the
// command, or it was below such a one. What is in the keeper's own session is a
// command that the keeper is just starting.
func bornDetached(parent, keeper, sid, commandSID int, belowDetached bool) bool {
	away := commandSID != 0 && sid != commandSID && sid != keeper
	return belowDetached || keeper != 0 && parent == keeper && away
}

// spare is why a member is left alone.
type spare struct {
	why string
	// counts: it is a survivor all the same (a boundary below a server or a job).
	counts bool
}

// spareOf decides whether a member is left alone, and how that counts.
func spareOf(m Member, t Target, from Step) spare {
	switch {
	case m.Ref.PID <= 1:
		return spare{why: "init is never signalled"}
	case slices.ContainsFunc(t.Spared, func(r identity.Ref) bool { return sameProcess(r, m.Ref) }):
		return spare{why: "hob's own"}
	case m.Boundary != "":
		return spare{why: m.Boundary, counts: t.Kind != Shell}
	case m.Spare != "":
		return spare{why: m.Spare}
	case m.Detached && t.Stop.Detached == "report":
		return spare{why: "detached"}
	case t.Kind == Shell && from == StepTerm:
		return spare{why: "left by whoever used the shell"}
	}
	return spare{}
}

// LeftAlone reports whether a stop that began at from leaves a member alone, so
// that waiting for its end is not the keeper's business.
func LeftAlone(m Member, t Target, from Step) bool { return spareOf(m, t, from).why != "" }

// sameProcess reports whether two Refs describe one process. It serves to
// spare and to find a member in a list, never to permit a signal.
func sameProcess(a, b identity.Ref) bool {
	if a.PID < 1 || a.PID != b.PID || a.Boot != b.Boot {
		return false
	}
	if a.PIDFS != nil && b.PIDFS != nil {
		return *a.PIDFS == *b.PIDFS
	}
	return a.Start == b.Start
}
