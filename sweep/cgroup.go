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
