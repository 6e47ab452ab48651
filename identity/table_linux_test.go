package identity

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"
	"golang.org/x/sys/unix"
)

// TestSecondOpinion holds the readers against gopsutil's on the live host. A
// difference counts if it stays: processes begin, execute and end meanwhile.
func TestSecondOpinion(t *testing.T) {
	host := localHost(t)
	start(t, exec.Command("sleep", "600"))
	start(t, self("threads")).line(t)
	table, err := host.Snapshot(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, row := range table.Procs {
		ours, theirs := agree(row)
		if theirs != "" {
			compared++
		}
		if ours != theirs {
			t.Errorf("pid %d: %s, gopsutil %s", row.PID, ours, theirs)
		}
	}
	if compared < 3 {
		t.Errorf("only %d processes were compared", compared)
	}
}

// agree reads a process by both until they agree, for a while; nothing for
// one that has ended or cannot be read.
func agree(row Process) (ours, theirs string) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		var created time.Time
		theirs, created = secondOpinion(row.PID)
		now, err := readRow(procPath(row.PID)+"/", row.PID, WantArgs|WantUser|WantStarted)
		if err != nil || theirs == "" || now.Start != row.Start || now.Missing != 0 {
			return "", ""
		}
		ours = fmt.Sprintf("%d %q %d %v %q", now.PPID, now.Comm, now.UID, now.TTY != 0, full(now.Args))
		if d := now.Started.Sub(created); d < -2*time.Second || d > 2*time.Second { // gopsutil cuts the boot to a second
			ours += fmt.Sprintf(" started %v off", d)
		}
		if ours == theirs {
			break
		}
	}
	return ours, theirs
}

// full leaves out empty arguments at the end, which gopsutil loses.
func full(args []string) []string {
	for len(args) > 0 && args[len(args)-1] == "" {
		args = args[:len(args)-1]
	}
	return args
}

func secondOpinion(pid int) (opinion string, created time.Time) {
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return "", created
	}
	ppid, err1 := p.Ppid()
	uids, err2 := p.Uids()
	args, err3 := p.CmdlineSlice()
	term, err4 := p.Terminal()
	ms, err5 := p.CreateTime()
	comm, err6 := os.ReadFile(procPath(pid) + "/comm") // gopsutil's Name reads long ones from the arguments
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return "", created
	}
	return fmt.Sprintf("%d %q %d %v %q", ppid, comm[:len(comm)-1], uids[0], term != "", full(args)), time.UnixMilli(ms)
}

// TestSnapshotRows: what was asked for is there, or named as missing.
func TestSnapshotRows(t *testing.T) {
	host := localHost(t)
	cmd := exec.Command("sleep", "600")
	cmd.Dir, cmd.Env = "/", []string{"MARK=x y"}
	s := start(t, cmd)
	ref := refOf(t, host, s.pid)
	const everything = WantArgs | WantUser | WantEnviron | WantPidfs | WantSignals | WantCwd | WantWchan | WantStarted | WantStamp
	var row Process
	eventually(t, "its row is whole", func() bool {
		table, err := host.Snapshot(t.Context(), everything)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(table.Procs, func(p Process) bool { return p.PID == s.pid })
		if i < 0 {
			t.Fatal("it is not in the listing")
		}
		row = table.Procs[i]
		return len(row.Args) == 2 && row.State == 'S'
	})
	if row.Missing != 0 || row.Start != ref.Start || *row.PIDFS != *ref.PIDFS || row.UID != os.Getuid() ||
		!slices.Equal(row.Environ, []string{"MARK=x y"}) || row.Cwd != "/" || row.Threads != 1 {
		t.Errorf("%+v", row)
	}
	if row.SID != sidOf(t, s.pid) || row.PGID == 0 || row.RSS <= 0 || row.Kernel {
		t.Errorf("%+v", row)
	}
}

func sidOf(t *testing.T, pid int) int {
	t.Helper()
	sid, err := unix.Getsid(pid)
	if err != nil {
		t.Fatal(err)
	}
	return sid
}

// TestRowIsOfOneProcess: one that has ended while its files were read gives no row,
// whoever has its number then.
func TestRowIsOfOneProcess(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var s scan
	stat, err := openRetry(unix.AT_FDCWD, procPath(cmd.Process.Pid)+"/stat", unix.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer closeFD(stat)
	p := Process{PID: cmd.Process.Pid}
	if !s.settle(&p, stat) || p.State == 0 || p.Threads != 1 {
		t.Errorf("it lives: %+v", p)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if s.settle(&p, stat) {
		t.Errorf("it has ended: %+v", p)
	}
}

// TestLineOfAnother: a folder that shows another pid's line shows no row.
func TestLineOfAnother(t *testing.T) {
	if row, err := readRow("/proc/self/", os.Getpid()+1, 0); !errors.Is(err, errMalformed) {
		t.Errorf("%+v, %v", row, err)
	}
}

// TestSnapshotStops with its context.
func TestSnapshotStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := localHost(t).Snapshot(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestKernelThreadIsNamedOne: pid 2 is kthreadd wherever it is seen.
func TestKernelThreadIsNamedOne(t *testing.T) {
	row, err := readRow("/proc/2/", 2, WantArgs)
	if err != nil || row.Comm != "kthreadd" {
		t.Skip("no kernel threads are seen from this pid namespace")
	}
	if !row.Kernel || row.Args != nil {
		t.Errorf("%+v", row)
	}
}

// TestChildrenOfThreads: a thread owns the children that it has forked, and the
// leader's file does not name them.
func TestChildrenOfThreads(t *testing.T) {
	host := localHost(t)
	var cmd *exec.Cmd
	forked, done := make(chan error), make(chan bool)
	go func() {
		runtime.LockOSThread()
		for unix.Gettid() == os.Getpid() { // not in the leader: give it back, take another
			hold := make(chan bool)
			go func() { runtime.LockOSThread(); <-hold }()
			runtime.UnlockOSThread()
			runtime.Gosched()
			runtime.LockOSThread()
			defer close(hold)
		}
		cmd = exec.Command("sleep", "600")
		forked <- cmd.Start()
		<-done
	}()
	if err := <-forked; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); close(done) })
	pid := strconv.Itoa(os.Getpid())
	text, err := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	if err != nil {
		t.Fatal(err)
	}
	if ofLeader, _ := parsePids(text, nil); slices.Contains(ofLeader, cmd.Process.Pid) {
		t.Fatal("the leader forked it: the scene is not what it should be")
	}
	kids, err := host.Children(os.Getpid())
	if err != nil || !slices.Contains(kids, cmd.Process.Pid) || !slices.IsSorted(kids) {
		t.Errorf("%v, %v", kids, err)
	}
}

// TestChildrenOfTheEnded: gone is gone, and a zombie has none.
func TestChildrenOfTheEnded(t *testing.T) {
	host := localHost(t)
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a zombie", func() bool { return !lives(cmd.Process.Pid) })
	if kids, err := host.Children(os.Getpid()); err != nil || !slices.Contains(kids, cmd.Process.Pid) {
		t.Errorf("a zombie is still its parent's child: %v, %v", kids, err)
	}
	if kids, err := host.Children(cmd.Process.Pid); err != nil || len(kids) != 0 {
		t.Errorf("children of a zombie: %v, %v", kids, err)
	}
	_ = cmd.Wait()
	for _, pid := range []int{cmd.Process.Pid, 1 << 22, -1, 0} {
		if kids, err := host.Children(pid); err == nil || kids != nil {
			t.Errorf("children of %d: %v, %v", pid, kids, err)
		}
	}
}

// TestChildrenAreWholeOrNone: when a thread ends under the look its children are
// another thread's, which may have been read already.
func TestChildrenAreWholeOrNone(t *testing.T) {
	looks := 0
	kids, err := untilWhole(func() ([]int, bool, error) {
		looks++
		return []int{9, looks, 9}, looks < 3, nil
	})
	if err != nil || !slices.Equal(kids, []int{3, 9}) {
		t.Errorf("%v, %v", kids, err)
	}
	if kids, err := untilWhole(func() ([]int, bool, error) { return []int{1}, true, nil }); !errors.Is(err, errThreadsEnd) || kids != nil {
		t.Errorf("never whole: %v, %v", kids, err)
	}
	bare := &local{facts: Facts{Procfs: true}, hasChildren: func() bool { return false }}
	if kids, err := bare.Children(os.Getpid()); !errors.Is(err, ErrUnsupported) || kids != nil {
		t.Errorf("a kernel without children files: %v, %v", kids, err)
	}
}

// TestHandleUnderManyHands: a handle may be used and closed from anywhere; no
// call ever meets another's descriptor, and none is left open.
func TestHandleUnderManyHands(t *testing.T) {
	host := localHost(t)
	s := start(t, exec.Command("sleep", "600"))
	ref := refOf(t, host, s.pid)
	before := openFiles(t)
	for range 50 {
		h, f := host.Verify(ref)
		if f.Verdict != Owned {
			t.Fatal(f)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { _ = host.Wait(ctx, []Handle{h}, time.Time{}) })
			wg.Go(func() {
				if err := h.Signal(0); err != nil && !errors.Is(err, ErrUnverifiable) {
					t.Errorf("signal 0: %v", err)
				}
			})
			wg.Go(func() { _, _ = h.Read(WantPidfs) })
			wg.Go(func() { _ = h.Close() })
		}
		wg.Wait()
		cancel()
	}
	eventually(t, "all descriptors are given back", func() bool { return openFiles(t) <= before })
	if !lives(s.pid) {
		t.Error("it is dead")
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// TestWaitForOneOfMany: the first to end wakes it.
func TestWaitForOneOfMany(t *testing.T) {
	host := localHost(t)
	var hs []Handle
	for range 20 {
		h, err := host.Open(start(t, exec.Command("sleep", "600")).pid)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		hs = append(hs, h)
	}
	time.AfterFunc(5*time.Millisecond, func() { _ = hs[13].Signal(syscall.SIGKILL) })
	if err := host.Wait(t.Context(), hs, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if f := hs[13].Verify(); f.Verdict != Gone {
		t.Errorf("%+v", f)
	}
	_ = hs[0].Close()
	if err := host.Wait(t.Context(), hs, time.Time{}); !errors.Is(err, ErrUnverifiable) {
		t.Errorf("waited for a closed handle: %v", err)
	}
	if err := host.Wait(t.Context(), []Handle{nil}, time.Time{}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("waited for no handle: %v", err)
	}
}

// TestSocketsOfAnotherNamespace: a task may have a network of its own.
func TestSocketsOfAnotherNamespace(t *testing.T) {
	needRoot(t)
	host := localHost(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = cloned(syscall.CLONE_NEWNET)
	s := start(t, cmd)
	if socks, err := host.Sockets(t.Context(), s.pid); err != nil || len(socks) != 0 {
		t.Errorf("%v, %v", socks, err)
	}
	if socks, err := host.Sockets(t.Context(), 0); err != nil || len(socks) == 0 {
		t.Errorf("%v, %v", socks, err)
	}
}
