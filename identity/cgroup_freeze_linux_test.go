package identity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// freeze freezes a cgroup, and waits until it is.
func freeze(t tb, g Cgroup) {
	t.Helper()
	if err := g.Freeze(); err != nil {
		t.Fatalf("%v", err)
	}
	if on, err := g.AwaitFrozen(context.Background(), time.Now().Add(30*time.Second)); !on || err != nil {
		t.Fatalf("frozen %t, %v", on, err)
	}
	if on, err := g.Frozen(); !on || err != nil {
		t.Fatalf("cgroup.freeze: %t, %v", on, err)
	}
}

// endByPin is the KILL of a stop.
func endByPin(t testing.TB, pid int) {
	t.Helper()
	pin, err := localHost(t).Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Close()
	if err := pin.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// counter writes on, a byte a turn, and has a child that does.
func counter(t *testing.T, g Cgroup, dir string) *subject {
	t.Helper()
	cmd := exec.Command("sh", "-c", `while :; do printf x >> "$1/a"; done & echo; while :; do printf x >> "$1/b"; done`, "sh", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: g.FD()}
	s := start(t, cmd)
	s.line(t)
	return s
}

func written(t *testing.T, dir string) (n int64) {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err == nil {
			n += st.Size()
		}
	}
	return n
}

// TestFreeze: who is frozen does nothing, and goes on when thawed, or when moved out;
// who is moved in is frozen too.
func TestFreeze(t *testing.T) {
	g, dir := room(t, "freeze"), t.TempDir()
	s := counter(t, g, dir)
	kids := procsOf(t, g)
	eventually(t, "both to write", func() bool { return written(t, dir) > 2 })
	freeze(t, g)
	at := written(t, dir)
	guest := start(t, exec.Command("sleep", "600"))
	move(t, guest.pid, g.Ref().Path)
	if on, err := g.AwaitFrozen(context.Background(), time.Now().Add(30*time.Second)); !on || err != nil {
		t.Errorf("with a guest: frozen %t, %v", on, err)
	}
	if now := written(t, dir); now != at {
		t.Errorf("%d bytes were written by who is frozen", now-at)
	}
	move(t, guest.pid, filepath.Dir(g.Ref().Path))
	_ = guest.Process.Signal(syscall.SIGTERM)
	eventually(t, "who was moved out to go on, and end on TERM", func() bool { return !lives(guest.pid) })
	if err := g.Thaw(); err != nil {
		t.Fatal(err)
	}
	if on, err := g.Frozen(); on || err != nil {
		t.Errorf("thawed: %t, %v", on, err)
	}
	eventually(t, "both to go on", func() bool { return written(t, dir) > at+2 })
	for _, pid := range kids {
		endByPin(t, pid)
	}
	eventually(t, "them to end", func() bool { return !lives(s.pid) })
}

// TestFreezeWaits: the wait ends at the deadline, and with its context, where
// nobody is frozen.
func TestFreezeWaits(t *testing.T) {
	g := room(t, "busy")
	s := in(t, g)
	on, err := g.AwaitFrozen(context.Background(), time.Now().Add(20*time.Millisecond))
	if on || err != nil {
		t.Errorf("nobody has frozen it: %t, %v", on, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	if on, err = g.AwaitFrozen(ctx, time.Time{}); on || err != nil {
		t.Errorf("cancelled: %t, %v", on, err)
	}
	endByPin(t, s.pid)
}

// TestFreezerRefused: a cgroup whose file may not be written is not frozen, and says so.
func TestFreezerRefused(t *testing.T) {
	g := room(t, "refused").(*cgroup)
	if _, err := os.Stat(filepath.Join(g.Ref().Path, freezer)); err != nil {
		t.Fatal(err)
	}
	d := g.dir.(*cgroupDir)
	if err := d.noFreezer(unix.EROFS); !errors.Is(err, os.ErrPermission) {
		t.Errorf("read-only: %v", err)
	}
	if err := d.noFreezer(unix.ENOENT); !errors.Is(err, ErrUnsupported) {
		t.Errorf("no file: %v", err)
	}
	root, err := openCgroup(unix.AT_FDCWD, g.Ref().Mount) // has no freezer
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := root.Freezing(); err == nil {
		t.Error("the root cgroup has a freezer")
	}
	if on, err := g.Frozen(); on || err != nil {
		t.Errorf("frozen %t, %v", on, err)
	}
}

func TestSaysFrozen(t *testing.T) {
	for text, want := range map[string]bool{
		"populated 1\nfrozen 1\n": true, "populated 1\nfrozen 0\n": false, "populated 1\n": false, "": false, "frozen 10\n": false,
	} {
		if got := saysFrozen([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// stuckAgent reads into memory that a userfaultfd guards and nobody fills: the kernel
// waits for it in the middle of the read.
const stuckAgent = `
import ctypes, fcntl, mmap, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.syscall(323, os.O_CLOEXEC)
fcntl.ioctl(fd, 0xc018aa3f, bytearray(struct.pack("QQQ", 0xAA, 0, 0)))
area = mmap.mmap(-1, 4096)
at = ctypes.addressof(ctypes.c_char.from_buffer(area))
fcntl.ioctl(fd, 0xc020aa00, bytearray(struct.pack("QQQQ", at, 4096, 1, 0)))
zero = os.open("/dev/zero", os.O_RDONLY)
print("ready", flush=True)
os.readv(zero, [area])
`

// TestFreezeIncomplete: one that the kernel holds up keeps the cgroup from being
// frozen. It cannot fork meanwhile, and a KILL ends it.
func TestFreezeIncomplete(t *testing.T) {
	g := room(t, "stuck")
	cmd := exec.Command("/usr/bin/python3", "-c", stuckAgent)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: g.FD()}
	s := start(t, cmd)
	if s.line(t) != "ready" {
		t.Fatal("not started")
	}
	eventually(t, "it to wait in the kernel", func() bool {
		where, err := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", s.pid))
		return err == nil && string(where) == "handle_userfault"
	})
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	on, err := g.AwaitFrozen(context.Background(), time.Now().Add(100*time.Millisecond))
	if on || err != nil {
		t.Errorf("frozen %t, %v", on, err)
	}
	endByPin(t, s.pid)
	eventually(t, "it to end", func() bool { return !lives(s.pid) })
}

// TestFreezerOfARemovedCgroup: one that has been removed is gone, whatever is asked of
// it; it is no kernel without a freezer. A thaw needs no descriptor that the freeze
// before it has not opened.
func TestFreezerOfARemovedCgroup(t *testing.T) {
	for name, opened := range map[string]bool{"never frozen": false, "frozen before": true} {
		t.Run(name, func(t *testing.T) {
			g := room(t, "removed").(*cgroup)
			d := g.dir.(*cgroupDir)
			if opened {
				freeze(t, g)
				was := d.freeze
				if err := g.Thaw(); err != nil || was == 0 || d.freeze != was {
					t.Fatalf("descriptor %d, and %d for the thaw: %v", was, d.freeze, err)
				}
			}
			if err := os.Remove(g.Ref().Path); err != nil {
				t.Fatal(err)
			}
			_, frozen := g.Frozen()
			_, await := g.AwaitFrozen(context.Background(), time.Now().Add(30*time.Second))
			for what, err := range map[string]error{"Frozen": frozen, "AwaitFrozen": await, "Freeze": g.Freeze(), "Thaw": g.Thaw()} {
				if !errors.Is(err, ErrGone) || errors.Is(err, ErrUnsupported) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}
