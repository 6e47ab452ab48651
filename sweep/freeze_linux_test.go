package sweep_test

import (
	"errors"
	"fmt"
	"io/fs"
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

	"hob/identity"
	"hob/sweep"
)

// homed is a task whose processes are in a cgroup of its own.
type homed struct {
	*real
	group identity.Cgroup
}

// startHomed starts a command, which waits until it is in the cgroup before it becomes
// what it is to be.
func startHomed(t testing.TB, role string, args ...string) homed {
	t.Helper()
	group := makeGroup(t)
	k := startReal(t, sweep.Server, "sh", "-c", fmt.Sprintf(`until [ -e "$D/go" ]; do sleep 0.01; done; %s=%s exec %s %s`,
		helperEnv, role, os.Args[0], strings.Join(args, " ")))
	k.target.Stop.Grace, k.target.Stop.TermGrace = 0, 0
	k.moveTo(group, k.ref("command").PID)
	if err := os.WriteFile(filepath.Join(k.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return homed{k, group}
}

// makeGroup makes a cgroup that is gone at the end of the test. Root can make one
// wherever cgroups of version 2 are mounted.
func makeGroup(t testing.TB) identity.Cgroup {
	t.Helper()
	h, err := identity.Local()
	if err != nil {
		t.Fatal(err)
	}
	all := h.Cgroups()
	at, err := all.Place(fmt.Sprintf("hob-test-%d-%d", os.Getpid(), stamps.Add(1)))
	var g identity.Cgroup
	if err == nil {
		g, err = all.Make(at)
	}
	if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
		t.Skip("left out: only root may make a cgroup here")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer g.Close()
		for end := time.Now().Add(patience); g.Remove() != nil; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Error("the cgroup is left behind")
				return
			}
		}
	})
	return g
}

func (k *real) moveTo(g identity.Cgroup, pid int) {
	k.t.Helper()
	if err := enter(g.Ref().Path, pid); err != nil {
		k.t.Fatal(err)
	}
}

func enter(dir string, pid int) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

func (k homed) end() sweep.Report {
	k.t.Helper()
	return k.stop(sweep.Capture{Cgroup: new(k.group.Ref())}, sweep.Options{})
}

// passerby is a stranger whose parent, this test, lives.
func passerby(t *testing.T) identity.Handle {
	t.Helper()
	cmd := exec.Command("sleep", "300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	h, err := identity.Local()
	if err != nil {
		t.Fatal(err)
	}
	pin, err := h.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pin.Close() })
	return pin
}

// TestPasserby: a stranger that is moved into the task's cgroup and out of it, as fast
// as it goes, lives whenever the stop happens to be, and is not frozen after it.
func TestPasserby(t *testing.T) {
	guest := passerby(t)
	pid := guest.Ref().PID
	for range 40 {
		k := startHomed(t, "stubborn", "deaf")
		k.ref("deaf")
		dir := k.group.Ref().Path
		done, out := make(chan struct{}), make(chan error)
		go func() {
			err := error(nil)
			for err == nil {
				select {
				case <-done:
					out <- enter(filepath.Dir(dir), pid)
					return
				default:
					err = errors.Join(enter(dir, pid), enter(filepath.Dir(dir), pid))
				}
			}
			out <- err
		}()
		r := k.end()
		close(done)
		if err := <-out; err != nil || guest.Verify().Verdict != identity.Owned {
			t.Fatalf("the stranger is %s, %v\n%s", guest.Verify().Verdict, err, k.story(r))
		}
		if text, err := os.ReadFile(filepath.Join(dir, "cgroup.freeze")); err == nil && strings.TrimSpace(string(text)) != "0" {
			t.Fatalf("the cgroup is left frozen\n%s", k.story(r))
		}
		if r.Verdict != sweep.Clean {
			t.Fatal(k.story(r))
		}
	}
}

// frozen reports what is written in a cgroup, and whether all in it is frozen.
func (k homed) frozen() (asked, still bool) {
	k.t.Helper()
	asked, err := k.group.Frozen()
	if err != nil {
		k.t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(k.group.Ref().Path, "cgroup.events"))
	if err != nil {
		k.t.Fatal(err)
	}
	return asked, strings.Contains(string(text), "frozen 1")
}

// TestNestedCgroups: what is in cgroups below the task's is frozen, and ended, too.
func TestNestedCgroups(t *testing.T) {
	k := startHomed(t, "burst")
	k.ref("burst-done")
	k.until("all to stand", func() bool { return len(k.descendants(k.keeper.Process.Pid)) == 61 })
	dir := k.group.Ref().Path
	for i, pid := range k.descendants(k.ref("command").PID) {
		if i%3 == 0 {
			dir = filepath.Join(dir, "b")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := enter(dir, pid); err != nil {
			t.Fatal(err)
		}
	}
	r := k.end()
	if r.Verdict != sweep.Clean || len(r.Members) != 61 {
		t.Error(k.story(r))
	}
	if asked, _ := k.frozen(); asked {
		t.Error("it is left frozen")
	}
	if !slices.ContainsFunc(k.told, func(s string) bool { return strings.Contains(s, "processes of the frozen cgroup") }) {
		t.Errorf("it was not frozen: %q", k.told)
	}
}

// stuckScript reads into memory that a userfaultfd guards and nobody fills: the kernel
// waits for that in the middle of the read, and the process cannot be frozen.
const stuckScript = `
import ctypes, fcntl, mmap, os, signal, struct
libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
fd = libc.syscall(%d, os.O_CLOEXEC)
fcntl.ioctl(fd, 0xc018aa3f, bytearray(struct.pack("QQQ", 0xAA, 0, 0)))
area = mmap.mmap(-1, 4096)
at = ctypes.addressof(ctypes.c_char.from_buffer(area))
fcntl.ioctl(fd, 0xc020aa00, bytearray(struct.pack("QQQQ", at, 4096, 1, 0)))
zero = os.open("/dev/zero", os.O_RDONLY)
with open(os.environ["D"] + "/stuck", "w") as f: f.write(str(os.getpid()))
os.readv(zero, [area])
`

// TestCgroupHeldUp: with one in it that the kernel holds up the cgroup does not freeze
// in time. The report says so, all are ended, and it is thawed.
func TestCgroupHeldUp(t *testing.T) {
	k := startHomed(t, "stubborn", "deaf")
	k.ref("deaf")
	cmd := exec.Command("/usr/bin/python3", "-c", fmt.Sprintf(stuckScript, unix.SYS_USERFAULTFD))
	cmd.Env = append(os.Environ(), "D="+k.dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }()
	stuck := k.ref("stuck")
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	k.until("it to wait in the kernel", func() bool {
		where, err := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", stuck.PID))
		return err == nil && string(where) == "handle_userfault"
	})
	k.moveTo(k.group, stuck.PID)
	r := k.stop(sweep.Capture{Cgroup: new(k.group.Ref()), Members: []sweep.Member{
		{Ref: stuck, Args: []string{"stuck"}, Evidence: []sweep.Evidence{sweep.Captured}}}}, sweep.Options{})
	notes := strings.Join(r.Host.Notes, " ")
	if want := "the task's cgroup did not freeze within 500ms"; r.Verdict != sweep.Clean || !strings.Contains(notes, want) {
		t.Error(k.story(r))
	}
	if asked, _ := k.frozen(); asked {
		t.Error("it is left frozen")
	}
}

// TestCgroupFrozenByHand: what a person has frozen is ended, and stays frozen.
func TestCgroupFrozenByHand(t *testing.T) {
	k := startHomed(t, "stubborn", "deaf")
	k.ref("deaf")
	if err := k.group.Freeze(); err != nil {
		t.Fatal(err)
	}
	r := k.end()
	if r.Verdict != sweep.Clean || !strings.Contains(strings.Join(r.Host.Notes, " "), "frozen by somebody else") {
		t.Error(k.story(r))
	}
	if asked, _ := k.frozen(); !asked {
		t.Error("it was thawed")
	}
}

// TestCutWhileFrozen: the capture says that the cgroup is being frozen before it is;
// the next stop thaws it whether or not there is anybody to end, a dry run does not.
func TestCutWhileFrozen(t *testing.T) {
	k := startHomed(t, "stubborn", "deaf")
	k.ref("deaf")
	k.onSave = func(c sweep.Capture) error {
		if asked, _ := k.frozen(); asked && c.FrozenAt == nil {
			t.Error("it is frozen, and no record says so")
		}
		return nil
	}
	k.end()
	if !slices.ContainsFunc(k.saved, func(c sweep.Capture) bool { return c.FrozenAt != nil }) {
		t.Error("no capture says that it was to be frozen")
	}
	last := k.saved[len(k.saved)-1]
	if last.FrozenAt != nil {
		t.Error("the last capture says that it is frozen")
	}
	guest := passerby(t)
	k.moveTo(k.group, guest.Ref().PID)
	if err := k.group.Freeze(); err != nil {
		t.Fatal(err)
	}
	last.FrozenAt = new(time.Now())
	k.stop(last, sweep.Options{DryRun: true})
	if asked, _ := k.frozen(); !asked {
		t.Error("a dry run has thawed it")
	}
	k.stop(last, sweep.Options{})
	if asked, still := k.frozen(); asked || still || guest.Verify().Verdict != identity.Owned {
		t.Errorf("frozen %t, %t; the stranger is %s", asked, still, guest.Verify().Verdict)
	}
	_ = guest.Signal(syscall.SIGKILL)
}

// TestCutStopGoesOnWithTheGrace: one that a stop has frozen which was cut off, in the
// middle of its cleaning up, has the grace of the next stop to end by itself.
func TestCutStopGoesOnWithTheGrace(t *testing.T) {
	group := makeGroup(t)
	k := startReal(t, sweep.Server, "sh", "-c", `trap 'echo >"$D/asked"; until [ -e "$D/go" ]; do sleep 0.01; done; echo >"$D/cleaned"; exit 0' TERM
		echo $$ >"$D/trapped.new"; mv "$D/trapped.new" "$D/trapped"; while :; do sleep 0.01; done`)
	h := homed{k, group}
	pin, err := k.h.Open(k.ref("trapped").PID)
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Close()
	k.moveTo(group, k.ref("trapped").PID)
	exists := func(name string) bool { _, err := os.Stat(filepath.Join(k.dir, name)); return err == nil }
	if err := pin.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	k.until("it to clean up", func() bool { return exists("asked") })
	if err := group.Freeze(); err != nil {
		t.Fatal(err)
	}
	k.until("it to be frozen", func() bool { _, still := h.frozen(); return still })
	if err := os.WriteFile(filepath.Join(k.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.target.Stop.Grace = patience / 2
	r := k.stop(sweep.Capture{Cgroup: new(group.Ref()), FrozenAt: new(time.Now())}, sweep.Options{})
	if r.Verdict != sweep.Clean || !exists("cleaned") || slices.ContainsFunc(r.Members, func(m sweep.ReportMember) bool { return m.Fate == sweep.Killed }) {
		t.Errorf("it has cleaned up: %t\n%s", exists("cleaned"), k.story(r))
	}
}

// TestNothingIsFrozenOffTheRecord: where the disk refuses the capture that would say so
// nothing is frozen, and all are ended one by one.
func TestNothingIsFrozenOffTheRecord(t *testing.T) {
	k := startHomed(t, "stubborn", "deaf")
	k.ref("deaf")
	k.onSave = func(sweep.Capture) error { return syscall.ENOSPC }
	r, err := sweep.Stop(t.Context(), k.h, k.target, sweep.Capture{Cgroup: new(k.group.Ref())}, k, sweep.Options{})
	if r.Verdict != sweep.Clean || !errors.Is(err, sweep.ErrNotSaved) {
		t.Errorf("%v\n%s", err, k.story(r))
	}
	if slices.ContainsFunc(k.told, func(s string) bool { return strings.Contains(s, "frozen cgroup") }) {
		t.Errorf("it was frozen: %q", k.told)
	}
}
