//go:build unix

package sim

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"hob/identity"
)

// Cgroup is a simulated cgroup of version 2. A fork is born in its parent's.
type Cgroup struct {
	w     *World
	id    uint64 // its inode: never given twice in one boot
	name  string
	above *Cgroup
	kids  []*Cgroup
	gone  bool
	list  map[*Process]bool // as it was read last
	read  int               // the step in which that began
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
		p.cgroup, p.joined = to, w.step
		w.Note("%v is moved to cgroup %s, inode %d", p, to.Dir(), to.id)
	}
}

// Alien says that the process is of a pid namespace that the caller cannot see:
// its cgroup lists it without a number.
func (p *Process) Alien() { p.alien = true }

// kill ends everything in it and below it, forks under way included.
func (g *Cgroup) kill() {
	g.w.ledger.GroupKills = append(g.w.ledger.GroupKills, g.w.Now())
	for _, p := range slices.Clone(g.w.all) {
		if in := p.cgroup; p.Alive() && !p.kernel && (in == g || in.below(g)) {
			g.w.ledger.Deliveries = append(g.w.ledger.Deliveries, Delivery{Step: g.w.step, Turn: g.w.turn, At: g.w.Now(),
				Sig: syscall.SIGKILL, To: p, PID: p.pid, Alive: true, Spared: p.spared, Below: p.below(), Group: true, Unseen: p.joined >= in.read && !in.list[p]})
			g.w.note(evSent, p, int(syscall.SIGKILL))
			p.take(syscall.SIGKILL)
		}
	}
}

func (g *Cgroup) below(other *Cgroup) bool {
	for up := g.above; up != nil; up = up.above {
		if up == other {
			return true
		}
	}
	return false
}

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
	d.g.list, d.g.read = seen, d.f.w.step
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

func (d groupDir) Kill() error {
	if err := d.enter("cgroup.kill"); err != nil {
		return err
	}
	if d.f.w.o.NoCgroupKill {
		return identity.ErrUnsupported
	}
	d.g.kill()
	return nil
}
