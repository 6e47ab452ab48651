package identity

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

func localHost(t testing.TB) Host {
	t.Helper()
	h, err := Local()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// sleeper starts a child that does nothing, and ends it with the test.
func sleeper(t testing.TB) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func TestRecordVerifySignalWait(t *testing.T) {
	host := localHost(t)
	cmd := sleeper(t)
	h, err := host.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	again, f := host.Verify(stored(t, h.Ref()))
	if f.Verdict != Owned {
		t.Fatalf("a fresh record: %+v", f)
	}
	defer again.Close()
	eventually(t, "its row has its arguments", func() bool { // they come late in an exec
		p, err := again.Read(WantArgs)
		return err == nil && len(p.Args) == 2
	})
	row, err := again.Read(WantArgs | WantUser | WantPidfs | WantEnviron | WantCwd | WantSignals | WantWchan | WantStarted)
	if err != nil || row.PPID != os.Getpid() || !slices.Equal(row.Args, []string{"sleep", "600"}) || row.Missing != 0 {
		t.Fatalf("row %+v, %v", row, err)
	}
	if d := time.Since(row.Started); d < -time.Second || d > time.Minute {
		t.Errorf("started %v ago", d)
	}
	kids, err := host.Children(os.Getpid())
	if err != nil || !slices.Contains(kids, cmd.Process.Pid) {
		t.Fatalf("children %v, %v", kids, err)
	}
	table, err := host.Snapshot(context.Background(), 0)
	if err != nil || !table.SawSelf {
		t.Fatalf("snapshot %+v, %v", table, err)
	}
	if err := again.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := host.Wait(context.Background(), []Handle{again}, time.Now().Add(30*time.Second)); err != nil {
		t.Fatal(err)
	}
	if f := again.Verify(); f.Verdict != Gone || !f.Zombie || f.ZombieOf != os.Getpid() {
		t.Fatalf("a zombie: %+v", f)
	}
	_ = cmd.Wait()
	if f := again.Verify(); f.Verdict != Gone || f.Zombie {
		t.Fatalf("reaped: %+v", f)
	}
	if err := again.Signal(syscall.SIGTERM); !errors.Is(err, ErrGone) {
		t.Fatalf("signal to a reaped process: %v", err)
	}
	if _, err := again.Read(0); !errors.Is(err, ErrGone) {
		t.Fatalf("read of a reaped process: %v", err)
	}
}

func TestWaitEndsWithContextAndDeadline(t *testing.T) {
	host := localHost(t)
	h, err := host.Open(sleeper(t).Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := host.Wait(context.Background(), []Handle{h}, time.Now().Add(5*time.Millisecond)); err != nil {
		t.Fatalf("deadline: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(5*time.Millisecond, cancel)
	if err := host.Wait(ctx, []Handle{h}, time.Time{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
}

func TestSocketsAndHolders(t *testing.T) {
	host := localHost(t)
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		want := ln.Addr().(*net.TCPAddr).AddrPort()
		socks, err := host.Sockets(context.Background(), os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(socks, func(s Socket) bool { return s.Listen && s.Local == want })
		if i < 0 {
			t.Fatalf("%v is not among %v", want, socks)
		}
		held, err := host.Holders(context.Background(), []uint64{socks[i].Inode}, nil)
		if err != nil || !slices.Equal(held.ByInode[socks[i].Inode], []int{os.Getpid()}) {
			t.Fatalf("holders %+v, %v", held, err)
		}
	}
}

func TestOpenPidfd(t *testing.T) {
	host := localHost(t)
	fd := -1
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{PidFD: &fd}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	dup, err := syscall.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := OpenPidfd(host, os.Getpid(), dup); err == nil || h != nil {
		t.Fatalf("a pidfd of another process was taken: %v", err)
	}
	h, err := OpenPidfd(host, cmd.Process.Pid, fd)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	again, f := host.Verify(h.Ref())
	if f.Verdict != Owned {
		t.Fatalf("%+v", f)
	}
	_ = again.Close()
}

// TestDyingProcessesHideNothing: of a child that ends while it is listed nothing
// is missing; it has given its memory back, and is a zombie or no row at all.
func TestDyingProcessesHideNothing(t *testing.T) {
	host := localHost(t)
	enough := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				select {
				case <-enough:
					return
				default:
					_ = exec.Command("sleep", "0.003").Run()
				}
			}
		})
	}
	defer wg.Wait()
	defer close(enough)
	seen := 0
	eventually(t, "30 children were listed", func() bool {
		table, err := host.Snapshot(context.Background(), WantArgs|WantEnviron)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range table.Procs {
			if p.PPID != os.Getpid() {
				continue
			}
			seen++
			if p.Missing != 0 && p.State != 'Z' {
				t.Fatalf("a dying child has secrets: %+v", p)
			}
		}
		return seen >= 30
	})
}
