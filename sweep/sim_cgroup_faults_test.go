//go:build unix

package sweep_test

import (
	"context"
	"syscall"
	"time"

	"hob/identity"
)

// The faults of cgroups that are planted between hob and the world.

// grouped is a host with other cgroups.
type grouped struct {
	identity.Host
	cgroups func(identity.Cgroups) identity.Cgroups
}

func (h grouped) Cgroups() identity.Cgroups { return h.cgroups(h.Host.Cgroups()) }

// faultyGroups hands out cgroups that a test has changed.
type faultyGroups struct {
	identity.Cgroups
	change func(identity.Cgroup) identity.Cgroup
}

func (c faultyGroups) Open(ref identity.CgroupRef) (identity.Cgroup, error) {
	g, err := c.Cgroups.Open(ref)
	if err != nil {
		return nil, err
	}
	return c.change(g), nil
}

// faulty puts a change between hob and the cgroups.
func (s *scene) faulty(change func(identity.Cgroup) identity.Cgroup) {
	s.host = grouped{s.host, func(c identity.Cgroups) identity.Cgroups { return faultyGroups{c, change} }}
}

// unlooked kills whoever is in a frozen cgroup, without looking at them.
type unlooked struct {
	identity.Cgroup
	s *scene
}

func (g unlooked) AwaitFrozen(ctx context.Context, until time.Time) (bool, error) {
	on, err := g.Cgroup.AwaitFrozen(ctx, until)
	if in, lerr := g.Procs(); lerr == nil && on {
		for _, pid := range in.PIDs {
			_ = g.s.w.KillNumber(pid, syscall.SIGKILL)
		}
	}
	return on, err
}

// unthawed forgets to thaw.
type unthawed struct{ identity.Cgroup }

func (unthawed) Thaw() error { return nil }

// uncut thaws nothing that an earlier hob has frozen: it never learns of it.
type uncut struct {
	identity.Cgroup
	frozen bool
}

func (g *uncut) Freeze() error { g.frozen = true; return g.Cgroup.Freeze() }

func (g *uncut) Thaw() error {
	if !g.frozen {
		return nil
	}
	return g.Cgroup.Thaw()
}

// thawing thaws whatever it finds frozen.
type thawing struct{ identity.Cgroup }

func (g thawing) Frozen() (bool, error) {
	_, err := g.Cgroup.Frozen()
	return false, err
}

// hurried does not wait until all are frozen.
type hurried struct{ identity.Cgroup }

func (hurried) AwaitFrozen(context.Context, time.Time) (bool, error) { return true, nil }

// byPath takes the cgroup that has the recorded path for the recorded one.
type byPath struct {
	identity.Cgroups
	s *scene
}

func (c byPath) Open(ref identity.CgroupRef) (identity.Cgroup, error) {
	g, err := c.Cgroups.Open(ref)
	for guess := ref.Inode + 1; err != nil && c.s.w.CgroupAt(ref.Path) != nil && guess < ref.Inode+50; guess++ {
		try := ref
		try.Inode = guess
		g, err = c.Cgroups.Open(try)
	}
	return g, err
}

// welcoming takes everybody in the cgroup for one of the task's.
type welcoming struct {
	identity.Host
	s *scene
}

type welcomed struct{ over }

func (h welcoming) Open(pid int) (identity.Handle, error) {
	pin, err := h.Host.Open(pid)
	if err != nil {
		return nil, err
	}
	return welcomed{over{pin, h.s}}, nil
}

func (h welcomed) Read(want identity.Field) (identity.Process, error) {
	row, err := h.Handle.Read(want)
	if p := h.s.w.Find(row.PID); err == nil && want&identity.WantEnviron != 0 && p != nil && p.Cgroup() == h.s.group {
		row.Start, row.Environ, row.Stamp = h.s.command.Ref().Start, nil, h.s.target.Stamp
	}
	return row, err
}
