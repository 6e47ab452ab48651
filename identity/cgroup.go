package identity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"
)

// CgroupRef is what is written down about a cgroup of version 2, stored as one
// flat object. Like a [Ref] it is a claim: a cgroup of the same name may have
// taken the place of one that was removed.
type CgroupRef struct {
	Boot  string `json:"boot"`  // boot id
	Path  string `json:"path"`  // its directory
	Inode uint64 `json:"inode"` // of the directory: the kernel's id of the cgroup, never given twice in one boot; 0 in what Place returns
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
	// Discard removes a cgroup that was written down, and those below it, if nobody
	// is in them. It returns nil also when there is nothing left to remove; where one
	// could not look it errors.
	Discard(ref CgroupRef) error
	// Find looks for cgroups of a name below all that the caller is shown: for one
	// whose maker was cut off before it had written down where it was made.
	Find(name string) ([]CgroupRef, error)
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
	// Frozen reports whether somebody has said of this cgroup that all in it is to
	// be frozen.
	Frozen() (bool, error)
	// Freeze says so. What is in it and below it stops running one by one, as each
	// comes out of the kernel, and so does who is moved in; who is moved out goes on.
	// It ends nobody, and a KILL ends who is frozen. ErrUnsupported means that the
	// kernel cannot (before Linux 5.2).
	Freeze() error
	// AwaitFrozen waits, until the deadline at the latest, until none in it runs any
	// more, and reports whether that is so. One that is held up in the kernel
	// (state D) goes on when that lets it go.
	AwaitFrozen(ctx context.Context, deadline time.Time) (bool, error)
	// Thaw lets all go on.
	Thaw() error
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
	Freezing() (bool, error) // what was written last
	SetFrozen(bool) error
	AwaitFrozen(ctx context.Context, deadline time.Time) (bool, error)
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
	g, err := c.Open(ref)
	if errors.Is(err, ErrGone) {
		return nil
	} else if err != nil {
		return err
	}
	return errors.Join(g.Remove(), g.Close())
}

func (c cgroups) Find(name string) ([]CgroupRef, error) {
	if c.boot == "" {
		return nil, errNoBoot
	}
	_, mount, err := c.sys.Own()
	if err != nil {
		return nil, err
	}
	root, err := c.sys.Dir(mount)
	if err != nil {
		return nil, fmt.Errorf("open the cgroups at %s: %w", mount, err)
	}
	defer root.Close()
	return seek(root, CgroupRef{Boot: c.boot, Path: mount, Mount: mount, Root: root.Inode()}, name, 0)
}

// seek goes through the cgroups below a directory. One that is removed meanwhile is
// not there.
func seek(dir CgroupDir, at CgroupRef, name string, depth int) (found []CgroupRef, err error) {
	kids, err := dir.Kids()
	if absentCgroup(err) || depth > maxCgroupDepth {
		return nil, nil
	}
	errs := []error{err}
	for _, n := range kids {
		kid, err := dir.Kid(n)
		if err != nil {
			if !absentCgroup(err) {
				errs = append(errs, err)
			}
			continue
		}
		here := at
		here.Path, here.Inode = path.Join(at.Path, n), kid.Inode()
		if n == name {
			found = append(found, here)
		}
		below, err := seek(kid, here, name, depth+1)
		kid.Close()
		found, errs = append(found, below...), append(errs, err)
	}
	return found, errors.Join(errs...)
}

// noCgroups is a host without any.
type noCgroups struct{}

var errNoCgroups = fmt.Errorf("%w: there are no cgroups of version 2", ErrUnsupported)

func (noCgroups) Place(string) (CgroupRef, error)  { return CgroupRef{}, errNoCgroups }
func (noCgroups) Make(CgroupRef) (Cgroup, error)   { return nil, errNoCgroups }
func (noCgroups) Open(CgroupRef) (Cgroup, error)   { return nil, errNoCgroups }
func (noCgroups) Discard(CgroupRef) error          { return errNoCgroups }
func (noCgroups) Find(string) ([]CgroupRef, error) { return nil, errNoCgroups }
