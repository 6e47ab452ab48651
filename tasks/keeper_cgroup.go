package tasks

import (
	"errors"
	"fmt"

	"hob/identity"
	"hob/identity/child"
	"hob/identity/cut"
)

// cgroupName is one that nobody else gives to a cgroup.
func cgroupName(s Spec) string {
	return fmt.Sprintf("hob-%s-%s-%s", s.RunID, s.Task, s.Nonce)
}

// makeCgroup makes the task's cgroup, below the keeper's own, where alone a user may
// make one, if at all. It is made once: a command that is started again is born in
// the same one, for nothing of the life before is left in it by then. Nothing is
// born in it before the record that names it is on disk.
func (k *keeper) makeCgroup() {
	all := k.h.Cgroups()
	at, err := all.Place(cgroupName(k.spec))
	var g identity.Cgroup
	if err == nil {
		g, err = all.Make(at)
	}
	if err != nil {
		k.rec.CgroupNote = err.Error()
		return
	}
	cut.Point("keeper", "cgroup")
	ref := g.Ref()
	k.rec.Cgroup = &ref
	k.cgroup.Store(&g)
}

// ownCgroup is the task's, nil where there is none.
func (k *keeper) ownCgroup() identity.Cgroup {
	if g := k.cgroup.Load(); g != nil {
		return *g
	}
	return nil
}

// fork starts the command, in its cgroup if there is one. Before one that is
// refused there is started elsewhere the records say so: who is not in the cgroup
// must never be taken for gone because nobody is in it.
func (k *keeper) fork(c child.Command) (pid int, err error) {
	c.Cgroup = k.ownCgroup()
	cut.Point("keeper", "fork")
	pid, err = k.reaper.Start(c, k.born)
	if pid != 0 || c.Cgroup == nil || !child.CgroupRefused(err) {
		return pid, err
	}
	k.dropCgroup(err)
	if err := errors.Join(k.newCapture(), k.save(passing)); err != nil {
		return 0, err
	}
	c.Cgroup = nil
	return k.reaper.Start(c, k.born)
}

// forkBeside starts what belongs to the task beside its command, where the command
// is. It is called beside the loop.
func (k *keeper) forkBeside(c child.Command, born func(pid, pidfd int) error) (pid int, err error) {
	c.Cgroup = k.ownCgroup()
	pid, err = k.reaper.Start(c, born)
	if pid != 0 || c.Cgroup == nil || !child.CgroupRefused(err) {
		return pid, err
	}
	refused := err
	c.Cgroup = nil
	pid, err = k.reaper.Start(c, born)
	if pid != 0 {
		k.post(func() {
			k.dropCgroup(refused)
			k.capture.Cgroup, k.behind = nil, true
			k.lookAt = k.h.Now()
		})
	}
	return pid, err
}

// dropCgroup gives a cgroup up in which nothing can be started.
func (k *keeper) dropCgroup(why error) {
	k.leaveCgroup()
	k.rec.Cgroup, k.rec.CgroupNote = nil, fmt.Sprintf("nothing could be started in it: %v", why)
}

// leaveCgroup removes the cgroup. It stays where somebody is in it who is left
// alone, until the task is stopped again or its records go.
func (k *keeper) leaveCgroup() {
	g := k.ownCgroup()
	if g == nil {
		return
	}
	k.cgroup.Store(nil) // and not closed: something may just be started in it
	if err := g.Remove(); err != nil {
		k.complain("cgroup", err)
		return
	}
	k.rec.Cgroup = nil
}

// cgroupRef is what the capture says of it.
func (k *keeper) cgroupRef() *identity.CgroupRef {
	g := k.ownCgroup()
	if g == nil {
		return nil
	}
	ref := g.Ref()
	return &ref
}

// discardCgroup removes the cgroup of a task that has ended, if nobody is in it. Its
// keeper has done that, unless it was killed. What cannot be removed (somebody's own
// work is in it) is tried again at the next stop, sweep or rm.
func (m *Manager) discardCgroup(t *TaskDir) {
	k, err := t.ReadKeeper()
	if v := m.finding(&k.Keeper).Verdict; err == nil && (v == identity.Owned || v == identity.Unverifiable) {
		return
	}
	all := m.Host.Cgroups()
	if k.Cgroup != nil {
		_ = all.Discard(*k.Cgroup)
	}
	if c, err := t.ReadCapture(); err == nil && c.Cgroup != nil {
		_ = all.Discard(*c.Cgroup)
	}
	// One that was cut off right after it had made its cgroup has not written it down.
	if spec, err := t.ReadSpec(); err == nil && k.Cgroup == nil {
		if at, err := all.Place(cgroupName(spec)); err == nil {
			_ = all.Discard(at)
		}
	}
}
