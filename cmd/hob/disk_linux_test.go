package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/tasks"
)

// smallDisk is a state folder on a small file system of its own. It needs root, as
// CI has.
func smallDisk(t *testing.T) *brokenHome {
	t.Helper()
	b := newBrokenHome(t)
	disk := filepath.Join(b.dir, "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("hob-test", disk, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "size=3m,mode=0700"); err != nil {
		t.Fatalf("this test needs root to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if code, out, errs := b.hob("down", "--all"); code != exitOK {
			t.Errorf("down at the end: %d\n%s%s", code, out, errs)
		}
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	b.home = filepath.Join(disk, "home")
	recipe := "name: small\nservers: {a: {command: [sleep, '1000']}}\n"
	if err := os.WriteFile(filepath.Join(b.dir, "hob.yaml"), []byte(recipe), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// ballast fills the disk, and is removed again by the function.
func (b *brokenHome) ballast() (remove func()) {
	b.t.Helper()
	path := filepath.Join(filepath.Dir(b.home), "ballast")
	f, err := os.Create(path)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		b.t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			b.t.Fatal(err)
		}
	}
}

// command is the Ref of the task's command.
func (b *brokenHome) command() identity.Ref {
	b.t.Helper()
	store, err := tasks.ViewStore(b.home)
	if err != nil {
		b.t.Fatal(err)
	}
	k, err := store.Run("small").Task("a").ReadKeeper()
	if err != nil || k.Command == nil {
		b.t.Fatalf("keeper.json: %+v, %v", k, err)
	}
	return *k.Command
}

// ended waits for the end of a process.
func (b *brokenHome) ended(ref identity.Ref) {
	b.t.Helper()
	h, err := identity.Local()
	if err != nil {
		b.t.Fatal(err)
	}
	pin, f := h.Verify(ref)
	if pin == nil {
		if f.Verdict != identity.Gone {
			b.t.Errorf("the command is %s: %s", f.Verdict, f.Reason)
		}
		return
	}
	defer pin.Close()
	if err := h.Wait(b.t.Context(), []identity.Handle{pin}, time.Now().Add(patience)); err != nil {
		b.t.Errorf("the command does not end: %v", err)
	}
}

// want calls a verb, and wants an exit code and words of what it says.
func (b *brokenHome) want(code int, words string, args ...string) {
	b.t.Helper()
	got, out, errs := b.hob(args...)
	if got != code || !strings.Contains(out+errs, words) {
		b.t.Errorf("%s: exit code %d, want %d and %q:\n%s%s", args, got, code, words, out, errs)
	}
}

// TestFullDiskAroundAStop: nothing is started on a full disk, and what runs is
// stopped all the same, with its records; when not even those find room, it is
// stopped from memory, and exit 4.
func TestFullDiskAroundAStop(t *testing.T) {
	b := smallDisk(t)
	recipe := filepath.Join(b.dir, "hob.yaml")
	free := b.ballast()
	b.want(exitFailed, "no space left on device", "up", recipe)
	b.want(exitOK, "", "ps")
	free()

	b.want(exitOK, "", "up", recipe)
	c := b.command()
	free = b.ballast()
	b.want(exitOK, "ready", "ps")
	b.want(exitOK, "terminated", "down")
	b.ended(c)
	b.want(exitOK, "stopped", "ps")
	b.want(exitOK, "terminated", "report", "small")
	b.want(exitFailed, "no space left on device", "up", recipe)
	free()

	b.want(exitOK, "", "up", recipe)
	c = b.command()
	if err := os.Truncate(filepath.Join(b.home, "runs", "small", "tasks", "a", "op.lock"), 0); err != nil {
		t.Fatal(err)
	}
	free = b.ballast()
	b.want(exitUnverified, "the capture could not be saved", "down")
	b.ended(c)
	free()
	b.want(exitOK, "", "down", "small")
	b.want(exitOK, "", "up", recipe) // and all is as it was
}

// TestReadOnlyFolderAroundAStop: what can be looked at is shown, nothing is begun
// that could not be written down, and the keepers, who can stop a task without a
// record, are named.
func TestReadOnlyFolderAroundAStop(t *testing.T) {
	b := smallDisk(t)
	recipe := filepath.Join(b.dir, "hob.yaml")
	b.want(exitOK, "", "up", recipe)
	c := b.command()
	readOnly := b.readOnly()
	b.want(exitOK, "ready", "ps")
	b.want(exitFailed, "read-only file system", "up", "--name", "other", recipe)
	b.want(exitFailed, "read-only file system", "down")
	_, _, says := b.hob("down")
	_, pid, ok := strings.Cut(says, "stops it all the same: kill ")
	keeper, err := strconv.Atoi(strings.TrimSpace(pid))
	if !ok || err != nil {
		t.Fatalf("down names no keeper: %s", says)
	}
	b.want(exitOK, "ready", "ps") // nothing was done by halves
	h, err := identity.Local()
	if err != nil {
		t.Fatal(err)
	}
	pin, err := h.Open(keeper)
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Close()
	if err := pin.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	b.ended(c)
	if err := h.Wait(t.Context(), []identity.Handle{pin}, time.Now().Add(patience)); err != nil {
		t.Error(err)
	}
	readOnly()
	b.want(exitOK, "", "down", "small")
	b.want(exitOK, "", "up", recipe)
}

// readOnly makes the state folder so, for those who open files in it from now on.
func (b *brokenHome) readOnly() (undo func()) {
	b.t.Helper()
	err := errors.Join(syscall.Mount(b.home, b.home, "", syscall.MS_BIND, ""),
		syscall.Mount("", b.home, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	if err != nil {
		b.t.Fatal(err)
	}
	undo = sync.OnceFunc(func() {
		if err := syscall.Unmount(b.home, syscall.MNT_DETACH); err != nil {
			b.t.Error(err)
		}
	})
	b.t.Cleanup(undo)
	return undo
}
