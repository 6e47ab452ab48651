package identity

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	newMounts = syscall.CLONE_NEWNS
	newPIDs   = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID
	nobody    = 65534
)

func cloned(flags uintptr) *syscall.SysProcAttr { return &syscall.SysProcAttr{Cloneflags: flags} }

func init() {
	observers["other pid namespace"] = func(o *observer) {
		o.private()
		o.mountProc("")
		if f := o.Facts(); !f.Procfs || f.InitPIDNS || f.PIDNS == o.refs["outside"].PIDNS {
			o.Errorf("facts %+v", f)
		}
		expect(o, o, "recorded outside", o.refs["outside"], Unverifiable, "4")
		expect(o, o, "by token", byToken(o.refs["outside"]), Unverifiable, "4")
		lost := o.refs["outside"]
		lost.Boot = lastBoot
		expect(o, o, "another boot, seen from a container", lost, Unverifiable, "3")
		namesOfNamespaces(o)
	}
	observers["procfs of another pid namespace"] = foreignProcfs
	observers["no procfs"] = func(o *observer) {
		o.private()
		o.must("hide /proc", unix.Mount("none", "/proc", "tmpfs", 0, ""))
		o.look()
		if f := o.Facts(); f.Procfs || f.Boot != "" || len(f.Incomplete) == 0 {
			o.Errorf("facts %+v", f)
		}
		expect(o, o, "it", o.refs["it"], Unverifiable, "2")
		noView(o, o.refs["it"].PID)
	}
	observers["other boot"] = otherBootSeen
	observers["other time namespace"] = func(o *observer) {
		if o.Facts().TimeNS == o.refs["it"].TimeNS {
			o.Fatalf("time namespace is the same: %s", o.Facts().TimeNS)
		}
		expect(o, o, "by inode", o.refs["it"], Owned, "11")
		expect(o, o, "by token", byToken(o.refs["it"]), Unverifiable, "10a")
		expect(o, o, "legacy", Ref{PID: o.refs["it"].PID, Start: o.refs["it"].Start}, Unverifiable, "10a")
		inside := byToken(stored2(o, os.Getpid()))
		expect(o, o, "recorded here", inside, Owned, "11")
	}
	observers["hidepid stage 1"] = hidepidStage1
	observers["hidepid stage 2"] = hidepidStage2
	observers["other user"] = func(o *observer) {
		expect(o, o, "root's", o.refs["it"], Owned, "11")
		h, _ := o.Verify(o.refs["it"])
		if err := h.Signal(syscall.SIGKILL); !errors.Is(err, ErrNotPermitted) || !strings.Contains(err.Error(), "uid 0") {
			o.Errorf("signal: %v", err)
		}
		if f := h.Verify(); f.Verdict != Owned {
			o.Errorf("after that: %+v", f)
		}
		held, err := o.Holders(bg, []uint64{1}, []int{o.refs["it"].PID})
		if err != nil || !slices.Equal(held.Unreadable, []int{o.refs["it"].PID}) {
			o.Errorf("holders %+v, %v", held, err)
		}
		cannot := []int{o.refs["corpse"].PID} // hold a socket: no need to name them
		if row, err := readRow("/proc/2/", 2, 0); err == nil && row.Kernel {
			cannot = append(cannot, 2)
		}
		if held, err := o.Holders(bg, []uint64{1}, cannot); err != nil || len(held.Unreadable) > 0 {
			o.Errorf("corpses and kernel threads %v: %+v, %v", cannot, held, err)
		}
	}
}

// namesOfNamespaces: an inode alone is recycled, so a name has the kernel's unique
// id, or, where there is none, the start of the namespace's first process.
func namesOfNamespaces(o *observer) {
	fd, err := openRetry(unix.AT_FDCWD, "/proc/self/ns/pid", unix.O_RDONLY)
	o.must("open", err)
	defer closeFD(fd)
	if id, err := namespaceID(fd); err == nil && !strings.HasSuffix(o.Facts().PIDNS, ":"+strconv.FormatUint(id, 10)) {
		o.Errorf("%s, and the id is %d", o.Facts().PIDNS, id)
	}
	first := stored2(o, 1)
	refuse(o, unix.SYS_IOCTL, unix.ENOTTY)
	o.look()
	if want := ":1@" + strings.TrimPrefix(string(first.Start), "linux:"); !strings.HasSuffix(o.Facts().PIDNS, want) {
		o.Errorf("%s, and the first process is %+v", o.Facts().PIDNS, first)
	}
	if again := stored2(o, 1); again.UID == nil || *again.UID != 0 {
		o.Errorf("without PIDFD_GET_INFO: %+v", again)
	}
}

// stored2 is refOf for observers.
func stored2(o *observer, pid int) Ref {
	h, err := o.Open(pid)
	o.must("open", err)
	defer h.Close()
	return h.Ref()
}

// noView: every way to look errors, and none says that nothing is there.
func noView(o *observer, pid int) {
	if table, err := o.Snapshot(bg, 0); !errors.Is(err, ErrUnverifiable) {
		o.Errorf("snapshot: %+v, %v", table, err)
	}
	if kids, err := o.Children(pid); !errors.Is(err, ErrUnverifiable) {
		o.Errorf("children: %v, %v", kids, err)
	}
	if socks, err := o.Sockets(bg, pid); !errors.Is(err, ErrUnverifiable) {
		o.Errorf("sockets: %v, %v", socks, err)
	}
	if held, err := o.Holders(bg, []uint64{1}, []int{pid}); !errors.Is(err, ErrUnverifiable) {
		o.Errorf("holders: %v, %v", held, err)
	}
}

// foreignProcfs: unshare --pid without a fresh mount. The numbers on /proc are
// other processes'.
func foreignProcfs(o *observer) {
	if o.Facts().Procfs || os.Getpid() != 1 {
		o.Fatalf("pid %d, facts %+v", os.Getpid(), o.Facts())
	}
	cmd := exec.Command("sleep", "600")
	o.must("start", cmd.Start())
	ref := stored2(o, cmd.Process.Pid)
	if ref.PIDFS == nil || ref.Start != "" {
		o.Errorf("ref %+v", ref)
	}
	expect(o, o, "by inode", ref, Owned, "11")
	ref.Start = "linux:1"
	expect(o, o, "by token", byToken(ref), Unverifiable, "10a")
	noView(o, cmd.Process.Pid)
	h, f := o.Verify(ref)
	if f.Verdict != Owned {
		o.Fatalf("%+v", f)
	}
	if _, err := h.Read(0); !errors.Is(err, ErrUnverifiable) {
		o.Errorf("read: %v", err)
	}
	o.must("signal", h.Signal(syscall.SIGKILL))
	_ = cmd.Wait()
	expect(o, o, "ended", ref, Gone, "5")
}

func TestOtherPIDNamespace(t *testing.T) {
	needRoot(t)
	s := start(t, exec.Command("sleep", "600"))
	observe(t, "other pid namespace", map[string]Ref{"outside": refOf(t, localHost(t), s.pid)}, cloned(newPIDs))
}

func TestProcfsOfAnotherPIDNamespace(t *testing.T) {
	needRoot(t)
	observe(t, "procfs of another pid namespace", nil, cloned(newPIDs))
}

func TestNoProcfs(t *testing.T) {
	needRoot(t)
	s := start(t, exec.Command("sleep", "600"))
	observe(t, "no procfs", map[string]Ref{"it": refOf(t, localHost(t), s.pid)}, cloned(newMounts))
}

// TestOtherTimeNamespace: field 22 reads 100,000 s later in there.
func TestOtherTimeNamespace(t *testing.T) {
	needRoot(t)
	s := start(t, exec.Command("sleep", "600"))
	observe(t, "other time namespace", map[string]Ref{"it": refOf(t, localHost(t), s.pid)}, nil,
		"unshare", "--time", "--boottime", "100000", "--fork")
}

// TestOtherBoot looks at a true record on a machine whose boot id, machine id or
// host name is another's.
func TestOtherBoot(t *testing.T) {
	needRoot(t)
	s := start(t, exec.Command("sleep", "600"))
	observe(t, "other boot", map[string]Ref{"it": refOf(t, localHost(t), s.pid)}, cloned(newMounts|syscall.CLONE_NEWUTS))
	if !lives(s.pid) {
		t.Error("it is dead")
	}
}

func otherBootSeen(o *observer) {
	o.private()
	dir, err := os.MkdirTemp("", "hob-boot")
	o.must("temp folder", err)
	defer os.RemoveAll(dir)
	show := func(path, text string) func() {
		file := filepath.Join(dir, filepath.Base(path))
		o.must("write", os.WriteFile(file, []byte(text), 0o644))
		o.must("bind", unix.Mount(file, path, "", unix.MS_BIND, ""))
		o.look()
		return func() { o.must("unbind", unix.Unmount(path, 0)); o.look() }
	}
	const boot, machine = "/proc/sys/kernel/random/boot_id", "/etc/machine-id"
	it := o.refs["it"]

	undo := show(boot, lastBoot+"\n")
	expect(o, o, "rebooted", it, Gone, "3")
	undoMachine := show(machine, "0123456789abcdef0123456789abcdef\n")
	expect(o, o, "rebooted, another machine", it, Unverifiable, "3")
	undoMachine()
	undoMachine = show(machine, "")
	undoDbus := func() {}
	if dbus := "/var/lib/dbus/machine-id"; exists(dbus) {
		undoDbus = show(dbus, "")
	}
	expect(o, o, "rebooted, no machine id", it, Unverifiable, "3")
	undoDbus()
	undoMachine()
	o.must("sethostname", unix.Sethostname([]byte("elsewhere")))
	o.look()
	expect(o, o, "rebooted, another host name", it, Unverifiable, "3")
	undo()
	expect(o, o, "this boot, another host name", it, Owned, "11")
	undo = show(boot, "")
	expect(o, o, "no boot id", it, Unverifiable, "2")
	undo()
	undoMachine = show(machine, "0123456789abcdef0123456789abcdef\n")
	expect(o, o, "this boot, another machine id", it, Owned, "11")
	undoMachine()
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// TestHidePID: procfs hides a living process in each of its ways, from a user
// who is not root.
func TestHidePID(t *testing.T) {
	needRoot(t)
	s := start(t, exec.Command("sleep", "600"))
	ref := refOf(t, localHost(t), s.pid)
	for _, mode := range []string{"0", "1", "2", "4"} {
		t.Run("hidepid="+mode, func(t *testing.T) {
			t.Setenv("HOB_IDENTITY_HIDEPID", mode)
			observe(t, "hidepid stage 1", map[string]Ref{"it": ref}, cloned(newMounts))
			if !lives(s.pid) {
				t.Error("it is dead")
			}
		})
	}
}

func hidepidStage1(o *observer) {
	o.private()
	o.mountProc("hidepid=" + os.Getenv("HOB_IDENTITY_HIDEPID"))
	if o.Facts().HidePID {
		o.Errorf("it hides from root: %+v", o.Facts())
	}
	expect(o, o, "root, by token", byToken(o.refs["it"]), Owned, "11")
	cmd := self("hidepid stage 2")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	o.must("as nobody", cmd.Run())
}

func hidepidStage2(o *observer) {
	it := o.refs["it"]
	mode, _ := strconv.Atoi(os.Getenv("HOB_IDENTITY_HIDEPID"))
	hides := mode != 0
	if o.Facts().HidePID != hides {
		o.Errorf("facts %+v", o.Facts())
	}
	expect(o, o, "by inode", it, Owned, "11")
	h, _ := o.Verify(it)
	if err := h.Signal(syscall.SIGKILL); !errors.Is(err, ErrNotPermitted) {
		o.Errorf("signal: %v", err)
	}
	kids, kidsErr := o.Children(it.PID)
	_, readErr := h.Read(0)
	table, err := o.Snapshot(bg, 0)
	o.must("snapshot", err)
	listed := slices.ContainsFunc(table.Procs, func(p Process) bool { return p.PID == it.PID })
	named := slices.ContainsFunc(table.Unreadable, func(u Unreadable) bool { return u.PID == it.PID })
	if table.Hidden != hides || listed == hides || named != (mode == 1) {
		o.Errorf("hidden %v, listed %v, named %v", table.Hidden, listed, named)
	}
	if !hides {
		expect(o, o, "by token", byToken(it), Owned, "11")
		o.must("children", kidsErr)
		o.must("read", readErr)
		return
	}
	expect(o, o, "by token", byToken(it), Unverifiable, "10a")
	expect(o, o, "legacy", Ref{PID: it.PID, Start: it.Start}, Unverifiable, "10a")
	if !errors.Is(kidsErr, ErrUnverifiable) || !errors.Is(readErr, ErrUnverifiable) {
		o.Errorf("children %v %v, read %v", kids, kidsErr, readErr)
	}
	held, err := o.Holders(bg, []uint64{1}, []int{it.PID})
	if err != nil || !slices.Equal(held.Unreadable, []int{it.PID}) {
		o.Errorf("holders %+v, %v", held, err)
	}
	if ref := stored2(o, it.PID); ref.PIDFS == nil || *ref.PIDFS != *it.PIDFS || ref.Start != "" || ref.UID == nil || *ref.UID != 0 {
		o.Errorf("recorded under hidepid: %+v", ref)
	}
	refuse(o, unix.SYS_PIDFD_OPEN, unix.ENOSYS)
	o.look()
	expect(o, o, "unpinned", byToken(it), Unverifiable, "8")
}

// TestOtherUser: exists, is ours by record, may not be signalled.
func TestOtherUser(t *testing.T) {
	needRoot(t)
	s := start(t, exec.Command("sleep", "600"))
	corpse := exec.Command("true")
	if err := corpse.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a corpse", func() bool { return !lives(corpse.Process.Pid) })
	host := localHost(t)
	attr := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	observe(t, "other user", map[string]Ref{"it": refOf(t, host, s.pid), "corpse": refOf(t, host, corpse.Process.Pid)}, attr)
	_ = corpse.Wait()
	if !lives(s.pid) {
		t.Error("it is dead")
	}
}
