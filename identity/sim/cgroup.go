//go:build unix

package sim

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Cgroup is a simulated cgroup of version 2. A fork is born in its parent's.
type Cgroup struct {
	w     *World
	id    uint64 // its inode: never given twice in one boot
	name  string
	above *Cgroup
	kids  []*Cgroup
	gone  bool

	frozen  bool          // cgroup.freeze reads 1
	byHob   bool          // the caller has written that, whoever did so before
	through bool          // all in it have been frozen since then
	since   time.Duration // when it was written
}

// groupMount is where the filesystem is mounted.
const groupMount = "/sys/fs/cgroup"

// RootCgroup is the one that processes are in which nobody has put elsewhere.
func (w *World) RootCgroup() *Cgroup { return w.groups }

// CgroupAt is the cgroup that has a directory now, or nil.
func (w *World) CgroupAt(dir string) *Cgroup {
	rel, ok := strings.CutPrefix(dir, groupMount)
	if !ok {
		return nil
	}
	g := w.groups
	for name := range strings.SplitSeq(strings.Trim(rel, "/"), "/") {
		if name == "" {
			continue
		}
		if g = g.kid(name); g == nil {
			return nil
		}
	}
	return g
}

func (g *Cgroup) kid(name string) *Cgroup {
	i := slices.IndexFunc(g.kids, func(k *Cgroup) bool { return k.name == name })
	if i < 0 {
		return nil
	}
	return g.kids[i]
}

// Mkdir makes a cgroup below it, nil if there is one.
func (g *Cgroup) Mkdir(name string) *Cgroup {
	if g.gone || g.kid(name) != nil {
		return nil
	}
	g.w.groupID++
	k := &Cgroup{w: g.w, id: g.w.groupID, name: name, above: g}
	g.kids = append(g.kids, k)
	g.w.Note("cgroup %s is made, inode %d", k.Dir(), k.id)
	return k
}

// Rmdir removes it, if nobody is in it. Zombies do not count.
func (g *Cgroup) Rmdir() error {
	switch {
	case g.gone:
		return fs.ErrNotExist
	case len(g.kids) > 0 || len(g.Procs()) > 0:
		return syscall.EBUSY
	}
	g.gone = true
	g.above.kids = slices.DeleteFunc(slices.Clone(g.above.kids), func(k *Cgroup) bool { return k == g })
	g.w.Note("cgroup %s is removed, inode %d", g.Dir(), g.id)
	return nil
}

// Dir is its directory.
func (g *Cgroup) Dir() string {
	if g.above == nil {
		return groupMount
	}
	return path.Join(g.above.Dir(), g.name)
}

// Procs are the living processes in it, oldest first.
func (g *Cgroup) Procs() (in []*Process) {
	for _, p := range g.w.all {
		if p.cgroup == g && p.Alive() {
			in = append(in, p)
		}
	}
	return in
}

// Cgroup is the one that the process is in.
func (p *Process) Cgroup() *Cgroup { return p.cgroup }

// Move moves a process to a cgroup, as root does it, or the process itself.
func (w *World) Move(p *Process, to *Cgroup) {
	if p.Alive() && !to.gone {
		p.cgroup = to
		w.Note("%v is moved to cgroup %s, inode %d", p, to.Dir(), to.id)
		p.chill()
	}
}

// Alien says that the process is of a pid namespace that the caller cannot see:
// its cgroup lists it without a number.
func (p *Process) Alien() { p.alien = true }

func (g *Cgroup) below(other *Cgroup) bool {
	for up := g.above; up != nil; up = up.above {
		if up == other {
			return true
		}
	}
	return false
}
