package sweep

import (
	"errors"
	"fmt"
	"slices"

	"hob/identity"
)

// home is the task's cgroup: the keeper made it, and started the command in it.
type home struct {
	group  identity.Cgroup // nil unless it could be opened
	gone   bool            // it was removed, so nobody is in it
	procs  []int           // who was in it and below it at the last look
	listed bool            // the last look could list it
	mixed  string          // why being in it proves nothing; "" when it does
}

// blindCgroup stands for the cgroup among the processes that could not be read.
const blindCgroup = -1

// openHome opens the cgroup that a capture names, if it is still the same.
func (tr *tree) openHome() {
	if tr.cgroup == nil {
		return
	}
	tr.home = &home{mixed: mixedBy(tr.guests)}
}

// mixedBy says why being in a cgroup that had guests proves nothing.
func mixedBy(guests []identity.Ref) string {
	if len(guests) == 0 {
		return ""
	}
	return fmt.Sprintf("it held process %d, which is not the task's to end", guests[0].PID)
}

// roster looks who is in the cgroup. What cannot be looked at may hold somebody of
// ours, unless a living keeper has all of them below it.
func (tr *tree) roster() ([]int, bool) {
	h := tr.home
	h.procs, h.listed = nil, false
	var err error
	if h.group == nil {
		h.group, err = tr.h.Cgroups().Open(*tr.cgroup)
	}
	var in identity.CgroupProcs
	if err == nil {
		in, err = h.group.Procs()
	}
	switch {
	case errors.Is(err, identity.ErrGone):
		h.gone, h.listed = true, true
		return nil, false
	case err == nil && in.Hidden > 0:
		tr.mix("it holds processes of another pid namespace")
		err = fmt.Errorf("%d processes in it are of another pid namespace", in.Hidden)
	}
	h.procs, h.listed = in.PIDs, err == nil
	if err != nil {
		tr.unlooked(blindCgroup, fmt.Sprintf("the task's cgroup could not be looked at: %v", err))
	}
	return in.PIDs, err == nil
}

func (tr *tree) unlooked(pid int, why string) {
	if !tr.keeperLives() || !tr.facts.Subreaper {
		tr.blind[pid] = why
	}
}

// mix notes that being in the cgroup proves nothing, from now on.
func (tr *tree) mix(why string) {
	if tr.home.mixed == "" {
		tr.home.mixed = why
	}
}

// closeCgroup takes in who is in the task's cgroup and nowhere else to be found:
// grade B, as long as the cgroup holds nothing else. Each newcomer is pinned
// between two looks at the cgroup and alive after the second: so the number in the
// second list is its own.
func (tr *tree) closeCgroup() {
	if tr.home == nil || tr.home.gone || tr.keeper != nil && tr.keeper.unknown() {
		return
	}
	first, ok := tr.roster()
	if !ok {
		return
	}
	tr.mixture(first)
	if found, unread := tr.newcomers(first); len(found) > 0 {
		tr.settleIn(found, unread)
	}
}

// mixture is what captured members say about the cgroup: with somebody's own work
// in it, orphans of that cannot be told from the task's.
func (tr *tree) mixture(in []int) {
	if pid := tr.keeperPID(); pid > 0 && slices.Contains(in, pid) {
		tr.mix(fmt.Sprintf("it holds the keeper %d", pid))
	}
	for _, n := range tr.nodes {
		if sp := spareOf(n.Member, tr.t, StepAll); sp.why != "" {
			tr.guest(n.Ref, fmt.Sprintf("process %d of the task is or was left alone: %s", n.Ref.PID, sp.why))
		} else if sp := tr.spareOf(n); sp.why != "" {
			tr.mix("what is left of the task is left alone: " + sp.why)
		}
	}
}

// guest notes that being in the cgroup proves nothing, for all hobs that come.
func (tr *tree) guest(ref identity.Ref, why string) {
	if !slices.ContainsFunc(tr.guests, func(g identity.Ref) bool { return sameProcess(g, ref) }) {
		tr.guests, tr.dirty = append(tr.guests, ref), true
	}
	tr.mix(why)
}

// newcomers pins those in the cgroup that are no members. unread are those of them
// that could not be read.
func (tr *tree) newcomers(in []int) (found []candidate, unread []int) {
	for _, pid := range in {
		if n := tr.live[pid]; n != nil && n.living() || pid == tr.keeperPID() {
			continue
		}
		pin, err := tr.h.Open(pid)
		var row identity.Process
		if err == nil {
			if row, err = pin.Read(identity.WantArgs | identity.WantEnviron | identity.WantStamp); err != nil {
				_ = pin.Close()
			}
		}
		switch {
		case err == nil:
			found = append(found, candidate{pin, row})
		case !errors.Is(err, identity.ErrGone):
			unread = append(unread, pid)
			tr.unlooked(pid, fmt.Sprintf("process %d in the task's cgroup could not be read: %v", pid, err))
		}
	}
	return found, unread
}

// settleIn looks at the cgroup again, judges all newcomers, and takes them in if
// none of them is from outside. One that is, is written down. Where one could not
// be judged nobody is taken in: it may be a boundary, and others below it.
func (tr *tree) settleIn(found []candidate, unread []int) {
	settled := len(unread) == 0
	in, ok := tr.roster()
	var stayed []candidate
	for _, c := range found {
		switch {
		case !ok || !slices.Contains(in, c.row.PID) || c.pin.Verify().Verdict != identity.Owned:
			tr.moved = true
			_ = c.pin.Close()
		default:
			stayed = append(stayed, c)
		}
	}
	judged := map[int]bool{} // false: it cannot be
	for _, pid := range unread {
		judged[pid] = false
	}
	for _, c := range stayed {
		judged[c.row.PID] = true
	}
	for _, c := range stayed {
		settled = tr.admit(c, judged, in) && settled
	}
	for _, c := range stayed {
		if settled && tr.home.mixed == "" {
			tr.takeResident(c)
			continue
		}
		if tr.home.mixed != "" {
			tr.say("being in the task's cgroup proves nothing, for " + tr.home.mixed)
		}
		_ = c.pin.Close()
	}
}

// admit judges one newcomer. It is false when that cannot be said yet.
func (tr *tree) admit(c candidate, judged map[int]bool, in []int) bool {
	r, err := tr.resident(c, judged, in)
	if err != nil {
		tr.moved = tr.moved || errors.Is(err, errStirs) || errors.Is(err, errEnded)
		return false
	}
	why, stays := r.foreign()
	if why == "" {
		return true
	}
	why = fmt.Sprintf("it holds process %d (%s), %s", c.row.PID, CommandLine(argsOf(c.row)), why)
	if stays {
		tr.guest(c.pin.Ref(), why)
	} else {
		tr.mix(why)
	}
	return true
}

// takeResident makes a member of a process that was found in the cgroup alone.
func (tr *tree) takeResident(c candidate) {
	parent := tr.live[c.row.PPID]
	if parent != nil && !parent.living() {
		parent = nil
	}
	if tr.keeperLives() && c.row.PPID == tr.keeper.Ref.PID {
		parent = tr.keeper
	}
	n := tr.take(c.pin, c.row, parent, []Evidence{Cgroup})
	if parent == nil {
		n.depth = 1
		away := tr.commandSID() != 0 && c.row.SID != tr.commandSID()
		n.Detached = n.Detached || away && (tr.t.Keeper == nil || c.row.SID != tr.t.Keeper.PID)
	}
}

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

// inHome lists who is in the cgroup now, for being named.
func (tr *tree) inHome() []int {
	if tr.home == nil || tr.home.group == nil || tr.home.gone {
		return nil
	}
	in, err := tr.home.group.Procs()
	if err != nil {
		return nil
	}
	return in.PIDs
}
