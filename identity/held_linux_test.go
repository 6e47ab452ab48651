package identity

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHeldFiles: what is read again from files that are open is what a first look
// reads, through an exec too; of a process that was reaped there is nothing.
func TestHeldFiles(t *testing.T) {
	host := localHost(t)
	before := heldFiles.Load()
	cmd := exec.Command("sh", "-c", "sleep 600 & read -r _; exec sleep 601")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	look := func() (args []string, kids []int) {
		t.Helper()
		var row Process
		eventually(t, "both looks to be the same", func() bool { // an exec may come between them
			if row, err = h.Read(WantArgs | WantEnviron); err != nil {
				t.Fatal(err)
			}
			plain, err := readRow(procPath(cmd.Process.Pid)+"/", cmd.Process.Pid, WantArgs)
			return err == nil && row.Start == plain.Start && row.PPID == plain.PPID && row.SID == plain.SID && row.Comm == plain.Comm &&
				slices.Equal(row.Args, plain.Args) && len(row.Environ) > 0
		})
		kids, err = Children(host, h)
		if err != nil {
			t.Fatal(err)
		}
		return row.Args, kids
	}
	eventually(t, "it has its child", func() bool { _, kids := look(); return len(kids) == 1 })
	child, err := host.Open(func() int { _, kids := look(); return kids[0] }())
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	if heldFiles.Load() == before {
		t.Error("nothing is held, so nothing was tested")
	}
	_ = in.Close()
	eventually(t, "it has become another program", func() bool { args, _ := look(); return slices.Equal(args, []string{"sleep", "601"}) })
	if err := errors.Join(h.Signal(unix.SIGKILL), child.Signal(unix.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if row, err := h.Read(WantArgs); !errors.Is(err, ErrGone) {
		t.Errorf("reaped: %+v, %v", row, err)
	}
	if kids, err := Children(host, h); !errors.Is(err, ErrGone) {
		t.Errorf("children of a reaped process: %v, %v", kids, err)
	}
	_, _ = h.Close(), child.Close()
	if n := heldFiles.Load(); n != before {
		t.Errorf("%d files are held that nobody reads", n-before)
	}
	if kids, err := Children(host, h); !errors.Is(err, ErrUnverifiable) {
		t.Errorf("children by a closed handle: %v, %v", kids, err)
	}
}

// TestNoMoreFilesAreHeld than the limit leaves room for: then each is closed again.
func TestNoMoreFilesAreHeld(t *testing.T) {
	host := localHost(t)
	h, err := host.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	room := heldLimit() - heldFiles.Load()
	heldFiles.Add(room)
	defer heldFiles.Add(-room)
	for range 3 {
		row, err := h.Read(WantArgs)
		if err != nil || !slices.Equal(row.Args, os.Args) {
			t.Errorf("%+v, %v", row, err)
		}
		if _, err := Children(host, h); err != nil {
			t.Error(err)
		}
	}
	p := h.(*pinned).rows.(*held)
	if p.cmdline.open || p.children.open || p.task.open {
		t.Errorf("held all the same: %+v", p)
	}
}

// TestThreadsAreCounted: what only the leader's list of children is read by.
func TestThreadsAreCounted(t *testing.T) {
	host := localHost(t)
	if !threadsAreLinks() {
		t.Fatal("the folder of our threads does not count them")
	}
	s := start(t, exec.Command("sleep", "600"))
	one := &held{kernel: host.(*local).kernel, pid: s.pid}
	many := &held{kernel: host.(*local).kernel, pid: os.Getpid()}
	defer one.close()
	defer many.close()
	done := make(chan bool)
	defer close(done)
	for range 3 {
		go func() { runtime.LockOSThread(); <-done }()
	}
	eventually(t, "there are more threads", func() bool { n, err := many.threads(); return err == nil && n > 3 })
	if n, err := one.threads(); n != 1 || err != nil {
		t.Errorf("sleep has %d threads, %v", n, err)
	}
}
