package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Cgroups are those of version 2, wherever they are mounted.
func (l *local) Cgroups() Cgroups {
	if bits.UintSize == 32 {
		return noCgroups{} // st_ino is cut to half there, and proves nothing
	}
	return NewCgroups(cgroupFS{}, l.facts.Boot)
}

// cgroupFS is the real filesystem.
type cgroupFS struct{}

func (cgroupFS) Own() (dir, mount string, err error) {
	var own string
	var ok bool
	var mounts []cgroupMount
	err = withFile("/proc/self/cgroup", func(text []byte) error { own, ok = unifiedCgroup(text); return nil })
	if err == nil && !ok {
		return "", "", errNoCgroups
	}
	if err == nil {
		err = withFile("/proc/self/mountinfo", func(text []byte) error { mounts = parseCgroupMounts(text); return nil })
	}
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrUnverifiable, err)
	}
	for _, m := range mounts {
		if dir, ok := m.dirOf(own); ok {
			return dir, m.at, nil
		}
	}
	return "", "", fmt.Errorf("%w: no mount shows the cgroup of this process", errNoCgroups)
}

func (cgroupFS) Dir(path string) (CgroupDir, error) { return openCgroup(unix.AT_FDCWD, path) }

func (cgroupFS) Mkdir(path string) error {
	err := unix.Mkdir(path, 0o755)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS) {
		return fmt.Errorf("%w: %w", fs.ErrPermission, err)
	}
	return err
}

// cgroupDir is an open directory, of which the inode and the filesystem are known.
type cgroupDir struct {
	fd     int
	inode  uint64
	freeze int // what it was frozen through, 0 when it was not: a thaw must not fail for want of a descriptor
}

// errNotCgroup: something else is mounted there now.
var errNotCgroup = errors.New("no directory of the cgroup filesystem")

func openCgroup(at int, path string) (CgroupDir, error) {
	fd, err := openRetry(at, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	var on unix.Statfs_t
	err = errors.Join(retry(func() error { return unix.Fstat(fd, &st) }), retry(func() error { return unix.Fstatfs(fd, &on) }))
	if err == nil && on.Type != unix.CGROUP2_SUPER_MAGIC {
		err = &os.PathError{Op: "open", Path: path, Err: errNotCgroup}
	}
	if err != nil {
		closeFD(fd)
		return nil, err
	}
	return &cgroupDir{fd: fd, inode: st.Ino}, nil
}

func (d *cgroupDir) Inode() uint64 { return d.inode }
func (d *cgroupDir) FD() int       { return d.fd }

func (d *cgroupDir) Close() {
	if d.freeze != 0 {
		closeFD(d.freeze)
	}
	closeFD(d.fd)
}

// Procs reads a list that the kernel makes while it is read: of a tree that forks
// meanwhile it may lack some.
func (d *cgroupDir) Procs() ([]int, error) {
	text, err := d.read("cgroup.procs")
	if err != nil {
		return nil, err
	}
	var pids []int
	for line := range strings.Lines(text) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

func (d *cgroupDir) read(name string) (string, error) {
	text, err := readAt(d.fd, name, nil)
	if errors.Is(err, unix.ENODEV) {
		err = errRemoved // while it was read
	}
	return string(text), err
}

func (d *cgroupDir) Threaded() bool {
	kind, err := d.read("cgroup.type")
	return err == nil && (strings.TrimSpace(kind) == "threaded" || strings.TrimSpace(kind) == "domain invalid")
}

func (d *cgroupDir) Kids() ([]string, error) {
	again, err := openRetry(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY) // a descriptor has one position
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(again), "cgroup")
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() })
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

func (d *cgroupDir) Kid(name string) (CgroupDir, error) { return openCgroup(d.fd, name) }
func (d *cgroupDir) Parent() (CgroupDir, error)         { return openCgroup(d.fd, "..") }

func (d *cgroupDir) Rmdir(name string) error {
	if err := unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR); err != nil {
		return &os.PathError{Op: "rmdir", Path: name, Err: err}
	}
	return nil
}

// there reports whether the cgroup has not been removed.
func (d *cgroupDir) there() bool {
	_, err := d.read("cgroup.type")
	return err == nil
}
