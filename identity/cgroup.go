package identity

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// CgroupRef is what is written down about a cgroup of version 2, stored as one
// flat object. Like a [Ref] it is a claim: a cgroup of the same name may have
// taken the place of one that was removed.
type CgroupRef struct {
	Boot  string `json:"boot"`  // boot id
	Path  string `json:"path"`  // its directory
	Inode uint64 `json:"inode"` // of the directory: the kernel's id of the cgroup, never given twice in one boot; 0: it was about to be made
	Mount string `json:"mount"` // where the filesystem was mounted
	Root  uint64 `json:"root"`  // inode of that: a view with another root may show other cgroups by the same path
}

// Cgroups is the door to the cgroups of a host.
type Cgroups interface {
	// Place says where a cgroup of this name would be made: below the caller's
	// own. Nothing is made. ErrUnsupported means that there are no cgroups of
	// version 2 here.
	Place(name string) (CgroupRef, error)
	// Make makes the cgroup, with nobody in it. One that is there already is
	// never taken for it.
	Make(at CgroupRef) (Cgroup, error)
	// Open opens a cgroup that was written down, if the directory is still that
	// cgroup's. ErrGone means that it has been removed, or was of another boot;
	// ErrUnverifiable that it could not be looked for.
	Open(ref CgroupRef) (Cgroup, error)
	// Discard removes a cgroup that was written down, and those below it, if
	// nobody is in them. One that was about to be made has no inode yet: it is
	// known by its name alone, and removing it can hurt nobody. It returns nil
	// also when there is nothing left to remove.
	Discard(ref CgroupRef) error
}

// Cgroup is an open directory whose inode was verified. No other cgroup can take
// its place: once the cgroup is removed, all that is asked of it errors with ErrGone.
type Cgroup interface {
	// Ref is what to write down about it.
	Ref() CgroupRef
	// FD is the directory's descriptor, for starting a process in it; -1 where
	// there is none.
	FD() int
	// Procs lists the living processes in it and in all cgroups below it.
	Procs() (CgroupProcs, error)
	// Kill ends everything in it and below it, forks under way included, by one
	// write. It lists first, and goes on only if allow says nil to that list.
	// Someone of another pid namespace cannot be named, so Kill refuses.
	Kill(allow func(CgroupProcs) error) error
	// Remove removes it and what is below it. It errors where somebody is in it.
	Remove() error
	// Close gives the directory back.
	Close() error
}

// CgroupProcs are the processes in a cgroup.
type CgroupProcs struct {
	PIDs   []int // sorted
	Hidden int   // how many are of a pid namespace that is not ours, and so have no number here
}

// CgroupFS is the cgroup filesystem, as the decisions about it ask for it. The
// real one is behind [Local]; identity/sim has a simulated one.
type CgroupFS interface {
	// Own is the directory of the caller's own cgroup, and where its filesystem is mounted.
	Own() (dir, mount string, err error)
	// Dir opens a directory of the filesystem, and nothing else.
	Dir(path string) (CgroupDir, error)
	Mkdir(path string) error
}

// CgroupDir is an open directory of the cgroup filesystem.
type CgroupDir interface {
	Inode() uint64
	FD() int
	Procs() ([]int, error) // of this one alone; 0 for each process of another pid namespace
	Threaded() bool        // its processes are listed by the cgroup above it
	Kids() ([]string, error)
	Kid(name string) (CgroupDir, error)
	Parent() (CgroupDir, error)
	Rmdir(name string) error
	Kill() error
	Close()
}

// NewCgroups makes the decisions about cgroups over a filesystem.
func NewCgroups(sys CgroupFS, boot string) Cgroups { return cgroups{sys, boot} }

type cgroups struct {
	sys  CgroupFS
	boot string
}

var errNoBoot = fmt.Errorf("%w: the boot id cannot be read", ErrUnverifiable)

func (c cgroups) Place(name string) (CgroupRef, error) {
	if c.boot == "" {
		return CgroupRef{}, errNoBoot
	}
	dir, mount, err := c.sys.Own()
	if err != nil {
		return CgroupRef{}, err
	}
	root, err := c.sys.Dir(mount)
	if err != nil {
		return CgroupRef{}, fmt.Errorf("open the cgroups at %s: %w", mount, err)
	}
	defer root.Close()
	return CgroupRef{Boot: c.boot, Path: path.Join(dir, name), Mount: mount, Root: root.Inode()}, nil
}

func (c cgroups) Make(at CgroupRef) (Cgroup, error) {
	if err := c.sys.Mkdir(at.Path); err != nil {
		return nil, fmt.Errorf("make cgroup %s: %w", at.Path, err)
	}
	dir, err := c.sys.Dir(at.Path)
	if err != nil {
		return nil, fmt.Errorf("open cgroup %s, which was just made: %w", at.Path, err)
	}
	at.Inode = dir.Inode()
	return &cgroup{at, dir}, nil
}

func (c cgroups) Open(ref CgroupRef) (Cgroup, error) {
	if err := c.admit(ref); err != nil {
		return nil, fmt.Errorf("cgroup %s: %w", ref.Path, err)
	}
	dir, err := c.sys.Dir(ref.Path)
	if err == nil && dir.Inode() == ref.Inode {
		return &cgroup{ref, dir}, nil
	}
	if err == nil {
		dir.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open cgroup %s: %w: %w", ref.Path, ErrUnverifiable, err)
	}
	if !c.sameView(ref) {
		return nil, fmt.Errorf("cgroup %s: %w: the cgroups of this host are seen from elsewhere now", ref.Path, ErrUnverifiable)
	}
	return nil, fmt.Errorf("cgroup %s: %w", ref.Path, errRemoved)
}

var errRemoved = fmt.Errorf("it was removed: %w", ErrGone)

// admit is what the record itself decides.
func (c cgroups) admit(ref CgroupRef) error {
	switch {
	case ref.Inode == 0, ref.Root == 0, ref.Boot == "", !path.IsAbs(ref.Path), path.Clean(ref.Path) != ref.Path:
		return fmt.Errorf("%w: the record proves nothing", ErrUnverifiable)
	case c.boot == "":
		return errNoBoot
	case c.boot != ref.Boot:
		return fmt.Errorf("it was of another boot: %w", ErrGone)
	}
	return nil
}

// sameView reports whether the filesystem is mounted where it was, with the same
// root: then what has no place in it any more has been removed. Elsewhere (in
// another mount or cgroup namespace) it may just not be shown.
func (c cgroups) sameView(ref CgroupRef) bool {
	root, err := c.sys.Dir(ref.Mount)
	if err != nil {
		return false
	}
	defer root.Close()
	return root.Inode() == ref.Root
}

func (c cgroups) Discard(ref CgroupRef) error {
	if ref.Inode == 0 && ref.Boot != "" && ref.Boot == c.boot {
		return c.discardIntended(ref)
	}
	g, err := c.Open(ref)
	switch {
	case errors.Is(err, ErrGone), errors.Is(err, ErrUnsupported):
		return nil
	case err != nil:
		return err
	}
	return errors.Join(g.Remove(), g.Close())
}

// discardIntended removes what a process that was cut off had just made, and not
// yet written down. Whoever wrote the name down chose one that nobody else has.
func (c cgroups) discardIntended(ref CgroupRef) error {
	parent, err := c.sys.Dir(path.Dir(ref.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("open cgroup %s: %w", path.Dir(ref.Path), err)
	}
	defer parent.Close()
	if err := parent.Rmdir(path.Base(ref.Path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove cgroup %s: %w", ref.Path, err)
	}
	return nil
}

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

func (g *cgroup) Kill(allow func(CgroupProcs) error) error {
	procs, err := g.Procs()
	if err != nil {
		return err
	}
	if procs.Hidden > 0 {
		return fmt.Errorf("kill cgroup %s: %w: %d processes in it are of another pid namespace", g.ref.Path, ErrUnverifiable, procs.Hidden)
	}
	if err := allow(procs); err != nil {
		return fmt.Errorf("kill cgroup %s: %w", g.ref.Path, err)
	}
	if err := g.dir.Kill(); err != nil {
		if absentCgroup(err) {
			err = errRemoved
		}
		return fmt.Errorf("kill cgroup %s: %w", g.ref.Path, err)
	}
	return nil
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

// parseCgroupMounts finds where cgroups of version 2 are mounted, in
// /proc/self/mountinfo (proc_pid_mountinfo(5)): the place, and which of the
// cgroups its root is, seen from the reader's cgroup namespace. The last one
// comes first: it is on top.
func parseCgroupMounts(mountinfo []byte) (mounts []cgroupMount) {
	for line := range bytes.Lines(mountinfo) {
		left, right, ok := strings.Cut(string(line), " - ")
		f := strings.Fields(left)
		if !ok || len(f) < 5 || !strings.HasPrefix(right, "cgroup2 ") {
			continue
		}
		mounts = append(mounts, cgroupMount{at: unescapeMount(f[4]), root: unescapeMount(f[3])})
	}
	slices.Reverse(mounts)
	return mounts
}

type cgroupMount struct{ at, root string }

// dirOf is the directory of a cgroup below the mount; ok is false when the mount
// does not show it.
func (m cgroupMount) dirOf(cgroup string) (dir string, ok bool) {
	rel, ok := strings.CutPrefix(cgroup, strings.TrimSuffix(m.root, "/"))
	if !ok || rel != "" && rel[0] != '/' || strings.HasPrefix(cgroup, "/..") {
		return "", false
	}
	return path.Join(m.at, rel), true
}

// unescapeMount undoes the octal escapes of mountinfo.
func unescapeMount(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unifiedCgroup is a process's cgroup of version 2 in /proc/PID/cgroup.
func unifiedCgroup(text []byte) (path string, ok bool) {
	for line := range bytes.Lines(text) {
		if p, ok := bytes.CutPrefix(line, []byte("0::")); ok {
			return strings.TrimSuffix(string(p), "\n"), true
		}
	}
	return "", false
}

// noCgroups is a host without any.
type noCgroups struct{}

var errNoCgroups = fmt.Errorf("%w: there are no cgroups of version 2", ErrUnsupported)

func (noCgroups) Place(string) (CgroupRef, error) { return CgroupRef{}, errNoCgroups }
func (noCgroups) Make(CgroupRef) (Cgroup, error)  { return nil, errNoCgroups }
func (noCgroups) Open(CgroupRef) (Cgroup, error)  { return nil, errNoCgroups }
func (noCgroups) Discard(CgroupRef) error         { return nil }
