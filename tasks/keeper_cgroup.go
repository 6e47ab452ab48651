package tasks

import (
	"errors"
	"fmt"
	"slices"

	"hob/identity"
	"hob/identity/child"
	"hob/identity/cut"
	"hob/sweep"
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
	if err := errors.Join(k.newCapture(), k.save()); err != nil {
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

// leaveCgroup removes the cgroup. It stays where somebody is in it who is left alone:
// that is written down, for a later reaper.
func (k *keeper) leaveCgroup() {
	g := k.ownCgroup()
	if g == nil {
		return
	}
	k.cgroup.Store(nil) // and not closed: something may just be started in it
	if err := g.Remove(); err != nil {
		k.complain("cgroup", err)
		k.complain("cgroup", k.run.store.WriteLeft(LeftCgroup{Run: k.spec.Run, Task: k.spec.Task, By: k.self, Cgroup: g.Ref(), UpdatedAt: k.h.Now()}))
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
// keeper has done that, unless it was killed. One that cannot be removed (somebody's
// own work is in it) is left to a later reaper, whatever becomes of the task's records.
func (m *Manager) discardCgroup(r *RunDir, t *TaskDir) {
	k, err := t.ReadKeeper()
	if v := m.finding(&k.Keeper).Verdict; err == nil && (v == identity.Owned || v == identity.Unverifiable) {
		return
	}
	all := m.Host.Cgroups()
	var refs []identity.CgroupRef
	if k.Cgroup != nil {
		refs = append(refs, *k.Cgroup)
	}
	var frozen sweep.Capture
	if c, err := t.ReadCapture(); err == nil && c.Cgroup != nil {
		if err := sweep.Thaw(m.Host, c); err != nil {
			m.event(r, t.Name, err.Error())
			frozen = c
		}
		if !slices.Contains(refs, *c.Cgroup) {
			refs = append(refs, *c.Cgroup)
		}
	}
	// One that was cut off right after it had made its cgroup has not written it down,
	// and may have made it elsewhere than this hob would.
	spec, serr := t.ReadSpec()
	if serr == nil && (errors.Is(err, ErrNoRecord) || err == nil && k.Nonce != spec.Nonce) {
		found, ferr := all.Find(cgroupName(spec))
		if ferr != nil && !errors.Is(ferr, identity.ErrUnsupported) {
			m.event(r, t.Name, ferr.Error())
		}
		refs = append(refs, found...)
	}
	for _, ref := range refs {
		if all.Discard(ref) == nil {
			continue
		}
		self, err := m.self()
		if err == nil {
			left := LeftCgroup{Run: r.Name, Task: t.Name, By: *self, Cgroup: ref, UpdatedAt: m.now()}
			if frozen.Cgroup != nil && *frozen.Cgroup == ref {
				left.FrozenAt = frozen.FrozenAt
			}
			err = m.Store.WriteLeft(left)
		}
		if err != nil {
			m.event(r, t.Name, err.Error())
		}
	}
}

// thawCut lets go on what a stop has frozen which was cut off, with its keeper: else
// that would have thawed it. A hob that was moved into the cgroup that it froze holds
// the lock, and waits for ever; so long no stop takes.
func (m *Manager) thawCut(r *RunDir, t *TaskDir, seen Seen) {
	k := seen.Keeper
	if k == nil || k.Cgroup == nil || seen.KeeperV.Verdict == identity.Owned && seen.Task.State != Stopping {
		return
	}
	if c, err := t.ReadCapture(); err != nil || c.FrozenAt == nil {
		return
	}
	unlock, held, err := t.TryLock()
	if held {
		defer unlock()
	}
	c, rerr := t.ReadCapture()
	if errors.Join(err, rerr) != nil || c.FrozenAt == nil || !held && m.now().Sub(*c.FrozenAt) < sweep.StopIsCut {
		return
	}
	if err = sweep.Thaw(m.Host, c); err == nil {
		m.event(r, t.Name, "thawed: a stop that was cut off had frozen its cgroup")
		if c.FrozenAt = nil; held {
			err = t.WriteCapture(c, true)
		}
	}
	if err != nil {
		m.event(r, t.Name, err.Error())
	}
}

// reapCgroups removes those that were left, if nobody is in them any more. The error
// names what cannot be read of that.
func (m *Manager) reapCgroups() error {
	all := m.Host.Cgroups()
	return m.Store.ReadLeft(func(l LeftCgroup) bool {
		if m.finding(&l.By).Verdict == identity.Unverifiable {
			return false
		}
		if l.FrozenAt != nil {
			if sweep.Thaw(m.Host, sweep.Capture{Cgroup: &l.Cgroup, FrozenAt: l.FrozenAt}) != nil {
				return false
			}
			l.FrozenAt, l.UpdatedAt = nil, m.now() // who freezes it from now on is somebody else
			if all.Discard(l.Cgroup) == nil {
				return true
			}
			_ = m.Store.WriteLeft(l) // else the next reaper thaws it once more
			return false
		}
		return all.Discard(l.Cgroup) == nil
	})
}
