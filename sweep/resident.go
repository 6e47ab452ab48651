package sweep

import (
	"errors"
	"fmt"
	"slices"

	"hob/identity"
)

// resident is what tells whether a process in the task's cgroup, which nothing
// else shows to be the task's, may have been put there from outside. A fork is born
// in its parent's cgroup; only who has the right to it can move somebody in.
type resident struct {
	hobs          bool   // the caller, or hob's tmux server
	boundary      string // it is one, or its environment says that it comes from one
	otherRun      bool   // its environment names another run, or another task
	unstamped     bool   // it does not bear what all that the keeper has started inherits
	ageless       bool   // its age cannot be compared with the command's
	older         bool   // it was there before the command
	parentOutside bool   // its parent lives, is not in the cgroup, and inherits no orphans of the task
	leaderOutside bool   // the leader of its kernel session lives, and is not in the cgroup
}

// foreign says why a resident takes away what the cgroup proves, "" if it does not.
// stays: also once it has left, for what it has left behind.
func (r resident) foreign() (why string, stays bool) {
	switch {
	case r.hobs:
		return "which is hob's own", false
	case r.boundary != "":
		return "which is a " + r.boundary, true
	case r.unstamped:
		return "which does not bear the stamp of the task's keeper", true
	case r.ageless:
		return "whose age cannot be compared with the command's", false
	case r.older:
		return "which is older than the command", true
	case r.otherRun:
		return "whose environment names another task", true
	case r.parentOutside:
		return "whose parent is not of the task", true
	case r.leaderOutside:
		return "whose session is not of the task", true
	}
	return "", false
}

// Something changed while we looked, and the next round sees it.
var (
	errStirs = errors.New("it changes while it is looked at")
	errEnded = errors.New("it has ended")
)

// errUnread is about kin that the next round will not see better.
var errUnread = errors.New("its kin in the cgroup could not be read")

// resident finds out what there is to say of a newcomer.
func (tr *tree) resident(c candidate, judged map[int]bool, in []int) (resident, error) {
	own := func(r identity.Ref) bool { return sameProcess(r, c.pin.Ref()) }
	r := resident{hobs: slices.ContainsFunc(tr.t.Spared, own), boundary: tr.foreignWork(c.row),
		otherRun: otherTask(c.row.Environ, tr.t.Marker, tr.t.Task)}
	r.unstamped = tr.t.Stamp != 0 && c.row.Missing&identity.WantStamp == 0 && c.row.Stamp != tr.t.Stamp
	r.older, r.ageless = tr.older(c.row)
	if r != (resident{}) {
		return r, nil
	}
	return tr.kin(r, c, judged, in)
}

// older reports whether a process was there before the command, or before the keeper
// where that was cut off before it had written its command down.
func (tr *tree) older(row identity.Process) (older, ageless bool) {
	first := tr.t.Command
	if first == nil {
		first = tr.t.Keeper
	}
	if first == nil || first.TimeNS != tr.facts.TimeNS {
		return false, true
	}
	older, known := row.Start.Older(first.Start)
	return older, !known
}

// kin looks at the parent and at the leader of the kernel session.
func (tr *tree) kin(r resident, c candidate, judged map[int]bool, in []int) (resident, error) {
	var err error
	if ppid := c.row.PPID; !tr.adopts(ppid) {
		if r.parentOutside, err = tr.outside(ppid, judged, in); err != nil {
			return r, err
		}
	}
	if sid := c.row.SID; sid != c.row.PID && (tr.t.Keeper == nil || sid != tr.t.Keeper.PID) {
		r.leaderOutside, err = tr.outside(sid, judged, in)
		if err != nil && !errors.Is(err, errEnded) { // a leader may have ended: its number stays its session's
			return r, err
		}
	}
	row, err := c.pin.Read(0)
	if err != nil || row.PPID != c.row.PPID || row.SID != c.row.SID {
		return r, errStirs
	}
	return r, nil
}

// outside reports whether a living process is not in the cgroup: pinned, and still
// not there when one looks again. One that is in it has to be judged as well.
func (tr *tree) outside(pid int, judged map[int]bool, in []int) (bool, error) {
	n := tr.live[pid]
	fit, known := judged[pid]
	switch {
	case fit, n != nil && n.living():
		return false, nil
	case known:
		return false, errUnread
	case slices.Contains(in, pid):
		return false, errStirs
	case pid == 0:
		return true, nil // of a pid namespace around ours
	}
	pin, err := tr.h.Open(pid)
	if errors.Is(err, identity.ErrGone) {
		return false, errEnded
	} else if err != nil {
		tr.unlooked(pid, fmt.Sprintf("process %d, kin of one in the task's cgroup, could not be looked at: %v", pid, err))
		return false, err
	}
	defer pin.Close()
	again, ok := tr.roster()
	switch f := pin.Verify(); {
	case f.Verdict == identity.Gone:
		return false, errEnded
	case !ok || f.Verdict != identity.Owned || slices.Contains(again, pid):
		return false, errStirs
	}
	return true, nil
}

// adopts reports whether a process is one that inherits orphans of the task: the
// keeper while it lives; after that, and where there is no subreaper, init, what is
// above hob's tmux server, or whoever has inherited a captured member.
func (tr *tree) adopts(pid int) bool {
	if pid > 0 && pid == tr.keeperPID() {
		return true
	}
	if tr.keeperLives() && tr.facts.Subreaper {
		return false
	}
	if pid == 1 {
		return true
	}
	for _, n := range tr.nodes {
		if n.living() && n.row.PPID == pid && n.Parent != pid && slices.Contains(n.Evidence, Captured) {
			return true
		}
	}
	return tr.t.Server != nil && slices.Contains(tr.above(*tr.t.Server), pid)
}

// above are the living ancestors of a process.
func (tr *tree) above(ref identity.Ref) []int {
	var out []int
	pin, f := tr.h.Verify(ref)
	for depth := 0; f.Verdict == identity.Owned && depth < 64; depth++ {
		row, err := pin.Read(0)
		_ = pin.Close()
		if err != nil || row.PPID <= 1 {
			return out
		}
		out = append(out, row.PPID)
		if pin, err = tr.h.Open(row.PPID); err != nil {
			return out
		}
	}
	if pin != nil {
		_ = pin.Close()
	}
	return out
}

// foreignWork says whether a row is somebody's own work below the task.
func (tr *tree) foreignWork(row identity.Process) string {
	if b := boundaryOf(row); b != "" {
		return b
	}
	server := tmuxOf(row.Environ)
	own := func(r identity.Ref) bool { return r.PID == server }
	if server > 0 && !slices.ContainsFunc(tr.t.Spared, own) {
		return "process of another tmux server's pane"
	}
	if sparedByName(row.Args, tr.t.Stop.Spare) {
		return "command that stop.spare names"
	}
	return ""
}

// otherTask reports whether an environment says that a process is another task's.
func otherTask(environ []string, marker, task string) bool {
	for _, e := range environ {
		if len(e) > 11 && e[:11] == "HOB_RUN_ID=" && e[11:] != marker || len(e) > 9 && e[:9] == "HOB_TASK=" && e[9:] != task {
			return true
		}
	}
	return false
}
