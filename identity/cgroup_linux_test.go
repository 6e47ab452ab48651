package identity

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// room makes a cgroup for a test, which is gone at its end. Root can make one
// wherever cgroups of version 2 are mounted.
func room(t *testing.T, name string) Cgroup {
	t.Helper()
	needRoot(t)
	all := localHost(t).Cgroups()
	at, err := all.Place("hob-test-" + strconv.Itoa(os.Getpid()) + "-" + name)
	if err != nil {
		t.Fatal(err)
	}
	g, err := all.Make(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer g.Close()
		eventually(t, "the cgroup to be empty and removed", func() bool { return g.Remove() == nil })
	})
	return g
}

// in starts a sleeper in a cgroup.
func in(t *testing.T, g Cgroup) *subject {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: g.FD()}
	return start(t, cmd)
}

// move moves a process to a cgroup, as root does it.
func move(t *testing.T, pid int, path string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(path, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		t.Fatal(err)
	}
}

func procsOf(t *testing.T, g Cgroup) []int {
	t.Helper()
	p, err := g.Procs()
	if err != nil || p.Hidden != 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	return p.PIDs
}

func sorted(pids ...int) []int {
	slices.Sort(pids)
	return pids
}

func storedCgroup(t *testing.T, r CgroupRef) (out CgroupRef) {
	t.Helper()
	b, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCgroup: what is started in a cgroup, and what that forks, is listed, also
// from cgroups below; all of it can be frozen, ended so, and thawed; an empty cgroup is
// removed with those below it.
func TestCgroup(t *testing.T) {
	g := room(t, "life")
	if pids := procsOf(t, g); len(pids) != 0 {
		t.Fatalf("just made, and not empty: %v", pids)
	}
	cmd := exec.Command("sh", "-c", "sleep 600 & echo $!; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: g.FD()}
	shell := start(t, cmd)
	kid, err := strconv.Atoi(shell.line(t))
	if err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(g.Ref().Path, "below")
	if err := errors.Join(os.Mkdir(below, 0o755), os.Mkdir(below+"/empty", 0o755)); err != nil {
		t.Fatal(err)
	}
	deep := start(t, exec.Command("sleep", "600"))
	move(t, deep.pid, below)
	again, err := localHost(t).Cgroups().Open(storedCgroup(t, g.Ref()))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	all := sorted(shell.pid, kid, deep.pid)
	for range 2 { // a descriptor can be read twice
		if got := procsOf(t, again); !slices.Equal(got, all) {
			t.Fatalf("listed %v, want %v", got, all)
		}
	}
	if err := again.Remove(); err == nil {
		t.Fatal("removed with processes in it")
	}
	freeze(t, again)
	if got := procsOf(t, again); !slices.Equal(got, all) {
		t.Errorf("frozen, it lists %v, want %v", got, all)
	}
	for _, pid := range all { // a KILL needs no thaw
		endByPin(t, pid)
	}
	eventually(t, "all to end", func() bool { return !lives(shell.pid) && !lives(kid) && !lives(deep.pid) })
	eventually(t, "it to be removed", func() bool { return again.Remove() == nil })
	if _, err := os.Stat(g.Ref().Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestCgroupRemade: one of the same name is another one.
func TestCgroupRemade(t *testing.T) {
	all := localHost(t).Cgroups()
	old := room(t, "remade")
	ref := storedCgroup(t, old.Ref())
	if err := os.Remove(ref.Path); err != nil {
		t.Fatal(err)
	}
	if g, err := all.Open(ref); !errors.Is(err, ErrGone) || g != nil {
		t.Errorf("removed: %v", err)
	}
	fresh, err := all.Make(CgroupRef{Boot: ref.Boot, Path: ref.Path, Mount: ref.Mount, Root: ref.Root})
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	stranger := in(t, fresh)
	if _, err := all.Make(ref); !errors.Is(err, os.ErrExist) {
		t.Errorf("made over another: %v", err)
	}
	if g, err := all.Open(ref); !errors.Is(err, ErrGone) || g != nil {
		t.Errorf("opened another: %v", err)
	}
	if p, err := old.Procs(); !errors.Is(err, ErrGone) {
		t.Errorf("listed another: %v, %v", p, err)
	}
	if err := old.Freeze(); !errors.Is(err, ErrGone) {
		t.Errorf("freeze: %v", err)
	}
	if _, err := old.Frozen(); !errors.Is(err, ErrGone) {
		t.Errorf("frozen: %v", err)
	}
	if _, err := old.AwaitFrozen(context.Background(), time.Time{}); !errors.Is(err, ErrGone) {
		t.Errorf("await: %v", err)
	}
	if err := old.Thaw(); !errors.Is(err, ErrGone) {
		t.Errorf("thaw: %v", err)
	}
	if err := old.Remove(); err != nil {
		t.Errorf("remove: %v", err)
	}
	if err := all.Discard(ref); err != nil {
		t.Errorf("discard: %v", err)
	}
	if got := procsOf(t, fresh); !slices.Equal(got, []int{stranger.pid}) || !lives(stranger.pid) {
		t.Errorf("the stranger's cgroup holds %v", got)
	}
	_ = stranger.Process.Kill()
	eventually(t, "it to be removed", func() bool { return fresh.Remove() == nil })
}

// TestCgroupRecord: what the record itself decides.
func TestCgroupRecord(t *testing.T) {
	g := room(t, "record")
	all, ref := localHost(t).Cgroups(), g.Ref()
	with := func(change func(*CgroupRef)) CgroupRef {
		r := ref
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		ref  CgroupRef
		want error
	}{
		"intact":                  {ref, nil},
		"another boot":            {with(func(r *CgroupRef) { r.Boot = lastBoot }), ErrGone},
		"no boot":                 {with(func(r *CgroupRef) { r.Boot = "" }), ErrUnverifiable},
		"about to be made":        {with(func(r *CgroupRef) { r.Inode = 0 }), ErrUnverifiable},
		"another inode":           {with(func(r *CgroupRef) { r.Inode++ }), ErrGone},
		"not there":               {with(func(r *CgroupRef) { r.Path += "x" }), ErrGone},
		"not there, other root":   {with(func(r *CgroupRef) { r.Path += "x"; r.Root++ }), ErrUnverifiable},
		"other inode, other root": {with(func(r *CgroupRef) { r.Inode++; r.Root++ }), ErrUnverifiable},
		"not there, no mount":     {with(func(r *CgroupRef) { r.Path += "x"; r.Mount = "/proc" }), ErrUnverifiable},
		"another filesystem":      {with(func(r *CgroupRef) { r.Path = t.TempDir() }), ErrUnverifiable},
		"a relative path":         {with(func(r *CgroupRef) { r.Path = "x" }), ErrUnverifiable},
		"a path with dots":        {with(func(r *CgroupRef) { r.Path += "/../" + filepath.Base(r.Path) }), ErrUnverifiable},
	} {
		got, err := all.Open(c.ref)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || (got != nil) != (err == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if got != nil {
			_ = got.Close()
		}
	}
	if err := NewCgroups(cgroupFS{}, "").Discard(ref); !errors.Is(err, ErrUnverifiable) {
		t.Errorf("without a boot id: %v", err)
	}
	if err := all.Discard(with(func(r *CgroupRef) { r.Inode = 0 })); !errors.Is(err, ErrUnverifiable) {
		t.Errorf("discard what was about to be made: %v", err)
	}
	if err := all.Discard(ref); err != nil {
		t.Errorf("discard: %v", err)
	}
	if _, err := os.Stat(ref.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestCgroupThreaded: a threaded cgroup does not list its processes; the one above
// does. One that has become threaded itself could not be looked at.
func TestCgroupThreaded(t *testing.T) {
	g := room(t, "threaded")
	s := in(t, g)
	kid := filepath.Join(g.Ref().Path, "kid")
	if err := os.Mkdir(kid, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kid+"/cgroup.type", []byte("threaded"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kid+"/cgroup.threads", []byte(strconv.Itoa(s.pid)), 0); err != nil {
		t.Fatal(err)
	}
	if got := procsOf(t, g); !slices.Equal(got, []int{s.pid}) {
		t.Errorf("listed %v", got)
	}
	inner, err := openCgroup(unix.AT_FDCWD, kid)
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	c := &cgroup{CgroupRef{Path: kid, Inode: inner.Inode()}, inner}
	if p, err := c.Procs(); !errors.Is(err, ErrUnverifiable) {
		t.Errorf("a threaded one: %v, %v", p, err)
	}
	_ = s.Process.Kill()
	eventually(t, "it to end", func() bool { return !lives(s.pid) })
}

func init() {
	observers["cgroup elsewhere"] = func(o *observer) {
		o.private()
		o.mountProc("")
		ref := cgroupFromEnv(o)
		g, err := o.Cgroups().Open(ref)
		o.must("open", err)
		defer g.Close()
		if p, err := g.Procs(); err != nil || p.Hidden != 1 || len(p.PIDs) != 0 {
			o.Errorf("%+v, %v: one of another pid namespace was to be counted", p, err)
		}
		o.must("hide the cgroups", unix.Unmount(ref.Mount, unix.MNT_DETACH))
		if _, err := o.Cgroups().Place("x"); !errors.Is(err, ErrUnsupported) {
			o.Errorf("place: %v", err)
		}
		if _, err := o.Cgroups().Open(ref); !errors.Is(err, ErrUnverifiable) {
			o.Errorf("open: %v", err)
		}
		if err := o.Cgroups().Discard(ref); !errors.Is(err, ErrUnverifiable) {
			o.Errorf("discard: %v", err)
		}
	}
	observers["cgroup unprivileged"] = func(o *observer) {
		all := o.Cgroups()
		ref := cgroupFromEnv(o)
		at := ref
		at.Path, at.Inode = filepath.Join(ref.Path, "mine"), 0
		g, err := all.Make(at)
		o.must("make in a delegated one", err)
		defer g.Close()
		cmd := exec.Command("sleep", "600")
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: g.FD()}
		o.must("start in it", cmd.Start())
		defer cmd.Wait()
		if p, err := g.Procs(); err != nil || !slices.Equal(p.PIDs, []int{cmd.Process.Pid}) {
			o.Errorf("%+v, %v", p, err)
		}
		freeze(o, g)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		o.must("thaw", g.Thaw())
		eventually(o, "it to be removed", func() bool { return g.Remove() == nil })
		at.Path = filepath.Join(at.Mount, "hob-test-not-allowed")
		if _, err := all.Make(at); !errors.Is(err, os.ErrPermission) {
			o.Errorf("make where that is not allowed: %v", err)
		}
	}
}

const cgroupEnv = "HOB_IDENTITY_CGROUP"

func cgroupFromEnv(o *observer) (ref CgroupRef) {
	o.must("record", json.Unmarshal([]byte(os.Getenv(cgroupEnv)), &ref))
	return ref
}

func (g *cgroup) intoEnv(t *testing.T) {
	t.Helper()
	b, err := json.Marshal(g.Ref())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(cgroupEnv, string(b))
}

// TestCgroupFromElsewhere looks from another pid namespace, and where the cgroups
// are not mounted.
func TestCgroupFromElsewhere(t *testing.T) {
	g := room(t, "elsewhere").(*cgroup)
	s := in(t, g)
	g.intoEnv(t)
	observe(t, "cgroup elsewhere", map[string]Ref{}, cloned(newPIDs))
	if !lives(s.pid) {
		t.Error("it was killed")
	}
	_ = s.Process.Kill()
}

// TestCgroupUnprivileged makes, fills, kills and removes one as a user to whom the
// cgroup above was delegated.
func TestCgroupUnprivileged(t *testing.T) {
	g := room(t, "delegated").(*cgroup)
	for _, name := range []string{".", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"} {
		if err := os.Chown(filepath.Join(g.Ref().Path, name), nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	g.intoEnv(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(exe), 0o755); err != nil {
		t.Fatal(err)
	}
	attr := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, UseCgroupFD: true, CgroupFD: g.FD()}
	observe(t, "cgroup unprivileged", map[string]Ref{}, attr)
}

// TestCgroupList: with many in it, all are listed.
func TestCgroupList(t *testing.T) {
	g := room(t, "many")
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 300 ]; do sleep 600 & i=$((i+1)); done; echo done; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: g.FD()}
	s := start(t, cmd)
	if s.line(t) != "done" {
		t.Fatal("not started")
	}
	pids := procsOf(t, g)
	if len(pids) != 301 {
		t.Errorf("%d are listed, want 301", len(pids))
	}
	freeze(t, g)
	for _, pid := range pids {
		endByPin(t, pid)
	}
	eventually(t, "all to end", func() bool { return !slices.ContainsFunc(pids, lives) })
	if text, err := os.ReadFile(g.Ref().Path + "/cgroup.events"); err != nil || !strings.Contains(string(text), "populated 0") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestCgroupFind: it is found by its name, wherever it is.
func TestCgroupFind(t *testing.T) {
	g := room(t, "find")
	name := "hob-test-sought-" + strconv.Itoa(os.Getpid())
	want := []string{filepath.Join(g.Ref().Path, name), filepath.Join(g.Ref().Path, "a/b", name)}
	for _, dir := range want {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	all := localHost(t).Cgroups()
	found, err := all.Find(name)
	if err != nil || len(found) != 2 {
		t.Fatalf("%+v, %v", found, err)
	}
	for _, ref := range found {
		if err := all.Discard(ref); err != nil || !slices.Contains(want, ref.Path) {
			t.Errorf("%+v: %v", ref, err)
		}
		if _, err := os.Stat(ref.Path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it is still there: %v", err)
		}
	}
	if found, err = all.Find(name); err != nil || len(found) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}
