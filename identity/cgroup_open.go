package identity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"
)

// cgroup is an open one.
type cgroup struct {
	ref CgroupRef
	dir CgroupDir
}

func (g *cgroup) Ref() CgroupRef { return g.ref }
func (g *cgroup) FD() int        { return g.dir.FD() }

func (g *cgroup) Close() error {
	g.dir.Close()
	return nil
}

// Procs lists those of the cgroup itself, then those of the ones below it.
func (g *cgroup) Procs() (CgroupProcs, error) {
	var out CgroupProcs
	pids, err := g.dir.Procs()
	if err == nil {
		out.add(pids)
		err = gather(g.dir, &out, 0)
	}
	if err != nil {
		return CgroupProcs{}, fmt.Errorf("list cgroup %s: %w", g.ref.Path, looked(err))
	}
	slices.Sort(out.PIDs)
	out.PIDs = slices.Compact(out.PIDs)
	return out, nil
}

func (p *CgroupProcs) add(pids []int) {
	for _, pid := range pids {
		if pid == 0 {
			p.Hidden++
		} else {
			p.PIDs = append(p.PIDs, pid)
		}
	}
}

// maxCgroupDepth bounds how far below a cgroup one looks. Deeper ones could not
// be looked at.
const maxCgroupDepth = 64

// gather adds the processes of the cgroups below a directory. One that is removed
// meanwhile has nobody in it. A threaded one does not list its processes: the
// nearest one above it that is not threaded does.
func gather(dir CgroupDir, out *CgroupProcs, depth int) error {
	names, err := dir.Kids()
	if err != nil {
		return err
	}
	if depth == maxCgroupDepth && len(names) > 0 {
		return errors.New("there are cgroups below it that are too deep")
	}
	for _, name := range names {
		kid, err := dir.Kid(name)
		if absentCgroup(err) {
			continue
		} else if err != nil {
			return err
		}
		err = gatherOne(kid, out, depth+1)
		kid.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func gatherOne(kid CgroupDir, out *CgroupProcs, depth int) error {
	pids, err := kid.Procs()
	switch {
	case absentCgroup(err):
		return nil
	case err != nil && !kid.Threaded():
		return err
	}
	out.add(pids)
	if err := gather(kid, out, depth); !absentCgroup(err) {
		return err
	}
	return nil
}

// looked words a failed look at an open cgroup.
func looked(err error) error {
	if absentCgroup(err) {
		return errRemoved
	}
	return fmt.Errorf("%w: %w", ErrUnverifiable, err)
}

func (g *cgroup) Frozen() (bool, error) {
	on, err := g.dir.Freezing()
	return on, g.failed("read the freezer of", err)
}

func (g *cgroup) Freeze() error { return g.failed("freeze", g.dir.SetFrozen(true)) }
func (g *cgroup) Thaw() error   { return g.failed("thaw", g.dir.SetFrozen(false)) }

func (g *cgroup) AwaitFrozen(ctx context.Context, deadline time.Time) (bool, error) {
	on, err := g.dir.AwaitFrozen(ctx, deadline)
	return on, g.failed("wait for the freezer of", err)
}

// failed words what could not be done to it.
func (g *cgroup) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	if absentCgroup(err) {
		err = errRemoved
	}
	return fmt.Errorf("%s cgroup %s: %w", what, g.ref.Path, err)
}

func (g *cgroup) Remove() error {
	err := removeBelow(g.dir, 0)
	if err == nil {
		err = g.unlink()
	}
	if err != nil && !absentCgroup(err) {
		return fmt.Errorf("remove cgroup %s: %w", g.ref.Path, err)
	}
	return nil
}

// unlink takes the directory out of the one above it, if its name there still
// stands for it.
func (g *cgroup) unlink() error {
	parent, err := g.dir.Parent()
	if err != nil {
		return err
	}
	defer parent.Close()
	name := path.Base(g.ref.Path)
	now, err := parent.Kid(name)
	if err != nil {
		return err
	}
	now.Close()
	if now.Inode() != g.ref.Inode {
		return errRemoved
	}
	return parent.Rmdir(name)
}

// removeBelow removes the empty cgroups below a directory, the deepest first.
func removeBelow(dir CgroupDir, depth int) error {
	names, err := dir.Kids()
	if err != nil || depth > maxCgroupDepth {
		return err
	}
	for _, name := range names {
		kid, err := dir.Kid(name)
		if err == nil {
			err = removeBelow(kid, depth+1)
			kid.Close()
		}
		if err == nil {
			err = dir.Rmdir(name)
		}
		if err != nil && !absentCgroup(err) {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// absentCgroup reports whether an error says that the cgroup is not there any more.
func absentCgroup(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrGone)
}
