// Package cgrouptest shows what cgroups a test leaves behind.
package cgrouptest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hob/identity"
)

// Pen is a cgroup that things are started in: hob makes the cgroups of its tasks below
// its own, so those that are left are there. A nil Pen is none, where none can be made.
type Pen struct {
	dir  string
	open identity.Cgroup
}

// New makes one below the caller's own cgroup. Where cgroups are missing, or only root
// may make them, it is nil.
func New(name string) (*Pen, error) {
	host, err := identity.Local()
	if err != nil {
		return nil, err
	}
	all := host.Cgroups()
	at, err := all.Place(name)
	if err == nil {
		var g identity.Cgroup
		if g, err = all.Make(at); err == nil {
			return &Pen{at.Path, g}, nil
		}
	}
	if errors.Is(err, identity.ErrUnsupported) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	return nil, err
}

// FD is a descriptor of it, to start processes in it; -1 where there is none.
func (p *Pen) FD() int {
	if p == nil {
		return -1
	}
	return p.open.FD()
}

// Enter moves this process into it, and so all that it starts from now on. Leave takes
// it out again.
func (p *Pen) Enter() error { return p.move("") }

// Leave is the end of Enter.
func (p *Pen) Leave() error { return p.move("..") }

func (p *Pen) move(to string) error {
	if p == nil {
		return nil
	}
	return os.WriteFile(filepath.Join(p.dir, to, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
}

// Left are the names of the cgroups that are in it.
func (p *Pen) Left() ([]string, error) {
	if p == nil {
		return nil, nil
	}
	entries, err := os.ReadDir(p.dir)
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Procs are the processes in it and below.
func (p *Pen) Procs() ([]int, error) {
	if p == nil {
		return nil, nil
	}
	in, err := p.open.Procs()
	return in.PIDs, err
}

// Populated reports whether anybody is in it or below it, which the kernel knows also
// of those that fork and end too fast to be listed. False without a Pen.
func (p *Pen) Populated() (bool, error) {
	if p == nil {
		return false, nil
	}
	text, err := os.ReadFile(filepath.Join(p.dir, "cgroup.events"))
	return !strings.Contains(string(text), "populated 0"), err
}

// Empty removes the cgroups that are in it. It errors where somebody is in one.
func (p *Pen) Empty() error {
	names, err := p.Left()
	errs := []error{err}
	for _, name := range names {
		if err := os.Remove(filepath.Join(p.dir, name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Remove removes it with all that is in it, if nobody is.
func (p *Pen) Remove() error {
	if p == nil {
		return nil
	}
	return p.open.Remove()
}

// Discard removes the cgroups below the caller's own whose names begin so: of tasks
// that a test has ended by force, with their keepers.
func Discard(prefix string) error {
	host, err := identity.Local()
	if err != nil {
		return err
	}
	at, err := host.Cgroups().Place(prefix)
	if err != nil {
		return nil //nolint:nilerr // where none can be made there are none
	}
	dirs, err := filepath.Glob(at.Path + "*")
	errs := []error{err}
	for _, dir := range dirs {
		if err := os.Remove(dir); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Run runs the tests of a package in a Pen, and fails when one of them has left a
// cgroup in it.
func Run(m interface{ Run() int }) int {
	heed()
	pen, err := New("hobtest-" + strconv.Itoa(os.Getpid()))
	if err == nil {
		err = pen.Enter()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	left, err := pen.Left()
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("cgroups are left behind: %q", left))
	}
	if err = errors.Join(err, pen.Leave(), pen.emptied()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

// emptied removes it once the last that a test has ended is gone from it: the kernel
// takes its time for that, above all where others want the processor.
func (p *Pen) emptied() error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	err := p.Remove()
	for end := time.Now().Add(30 * time.Second); errors.Is(err, syscall.EBUSY) && time.Now().Before(end); <-tick.C {
		err = p.Remove()
	}
	if err == nil {
		return nil
	}
	in, _ := p.Procs()
	return fmt.Errorf("%w; processes %v", err, in)
}

// heed has what the tests start be ended by the signals that end programs, where they
// are ignored: by nohup, or by a shell that has started the tests in the background. A
// hob would pass over one that comes before it listens.
func heed() {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGHUP, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}
