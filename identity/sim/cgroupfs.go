//go:build unix

package sim

import (
	"fmt"
	"io/fs"
	"path"
	"syscall"

	"hob/identity"
)

// Cgroups are the real decisions over the simulated filesystem.
func (h host) Cgroups() identity.Cgroups {
	boot := bootID(h.w.boot)
	if h.w.dark {
		boot = ""
	}
	return identity.NewCgroups(groupFS(h), boot)
}

// groupFS is the simulated filesystem. Each of its calls is a point.
type groupFS struct{ w *World }

func (f groupFS) look(what string) error {
	f.w.point(what)
	switch {
	case f.w.o.NoCgroups || f.w.o.OS != "linux":
		return identity.ErrUnsupported
	case f.w.chance(f.w.o.Chaos.LookFails):
		return syscall.EIO
	}
	return nil
}

func (f groupFS) Own() (dir, mount string, err error) {
	if err := f.look("read own cgroup"); err != nil {
		return "", "", err
	}
	return f.w.caller.cgroup.Dir(), groupMount, nil
}

func (f groupFS) Dir(dir string) (identity.CgroupDir, error) {
	if err := f.look("open cgroup"); err != nil {
		return nil, err
	}
	g := f.w.CgroupAt(dir)
	if g == nil {
		return nil, fmt.Errorf("open %s: %w", dir, fs.ErrNotExist)
	}
	return groupDir{f, g}, nil
}

func (f groupFS) Mkdir(dir string) error {
	if err := f.look("make cgroup"); err != nil {
		return err
	}
	above := f.w.CgroupAt(path.Dir(dir))
	switch {
	case f.w.o.CgroupDenied:
		return fs.ErrPermission
	case above == nil:
		return fs.ErrNotExist
	case above.Mkdir(path.Base(dir)) == nil:
		return fs.ErrExist
	}
	return nil
}

// groupDir is an open directory.
type groupDir struct {
	f groupFS
	g *Cgroup
}

func (d groupDir) enter(what string) error {
	if err := d.f.look(what); err != nil {
		return err
	}
	if d.g.gone {
		return fs.ErrNotExist
	}
	return nil
}

func (d groupDir) Inode() uint64  { return d.g.id }
func (d groupDir) FD() int        { return -1 }
func (d groupDir) Close()         {}
func (d groupDir) Threaded() bool { return false }

// Procs reads the list one by one, while the world goes on.
func (d groupDir) Procs() ([]int, error) {
	if err := d.enter("read cgroup.procs"); err != nil {
		return nil, err
	}
	var pids []int
	seen := map[*Process]bool{}
	for more := true; more; {
		more = false
		for _, p := range d.g.Procs() {
			if seen[p] {
				continue
			}
			seen[p], more = true, true
			if p.alien {
				pids = append(pids, 0)
			} else {
				pids = append(pids, p.pid)
			}
			d.f.w.stir(d.f.w.o.Chaos.Density / 4)
		}
	}
	return pids, nil
}

func (d groupDir) Kids() ([]string, error) {
	if err := d.enter("list cgroups"); err != nil {
		return nil, err
	}
	var names []string
	for _, k := range d.g.kids {
		names = append(names, k.name)
	}
	return names, nil
}

func (d groupDir) Kid(name string) (identity.CgroupDir, error) {
	if err := d.enter("open cgroup"); err != nil {
		return nil, err
	}
	k := d.g.kid(name)
	if k == nil {
		return nil, fs.ErrNotExist
	}
	return groupDir{d.f, k}, nil
}

func (d groupDir) Parent() (identity.CgroupDir, error) {
	if err := d.enter("open cgroup"); err != nil {
		return nil, err
	}
	return groupDir{d.f, d.g.above}, nil
}

func (d groupDir) Rmdir(name string) error {
	if err := d.enter("remove cgroup"); err != nil {
		return err
	}
	k := d.g.kid(name)
	if k == nil {
		return fs.ErrNotExist
	}
	return k.Rmdir()
}
