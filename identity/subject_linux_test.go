package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	subjects["threads"] = func() {
		tids := make(chan int)
		go func() {
			runtime.LockOSThread()
			tids <- unix.Gettid()
			select {}
		}()
		fmt.Println(<-tids)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	subjects["dead-leader"] = func() {
		reader := make(chan int)
		go func() {
			reader <- 1
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
		<-reader
		_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0) // the first thread only
	}
	subjects["exec-by-thread"] = func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		go func() {
			runtime.LockOSThread()
			if unix.Gettid() == os.Getpid() {
				os.Exit(3)
			}
			fmt.Println(syscall.Exec("/bin/sleep", []string{"sleep", "600"}, nil))
			os.Exit(4)
		}()
		select {}
	}
}

// TestThreadIDIsNobody: the recorded number is now a thread of another process.
// kill(2) by that number would end it whole.
func TestThreadIDIsNobody(t *testing.T) {
	host := localHost(t)
	victim := start(t, self("threads"))
	tid, err := strconv.Atoi(victim.line(t))
	if err != nil || tid == victim.pid {
		t.Fatalf("tid %d, %v", tid, err)
	}
	ref := refOf(t, host, victim.pid)
	ref.PID = tid
	expect(t, host, "by inode", ref, Gone, "6")
	row, err := readRow(procPath(tid)+"/", tid, 0)
	if err != nil {
		t.Fatal(err)
	}
	ref.Start = row.Start // even with the thread's own token
	expect(t, host, "by token", byToken(ref), Gone, "6")
	expect(t, host, "legacy", Ref{PID: tid}, Gone, "6")
	if h, err := host.Open(tid); !errors.Is(err, ErrGone) || h != nil {
		t.Errorf("opened a thread: %v", err)
	}
	observe(t, "thread-unpinned", map[string]Ref{"thread": byToken(ref)}, nil)
	if !lives(victim.pid) {
		t.Error("the victim is dead")
	}
}

// TestDeadLeaderLives: state Z, and yet a thread serves on.
func TestDeadLeaderLives(t *testing.T) {
	host := localHost(t)
	s := start(t, self("dead-leader"))
	ref := refOf(t, host, s.pid)
	h, f := host.Verify(ref)
	if f.Verdict != Owned {
		t.Fatal(f)
	}
	defer h.Close()
	eventually(t, "the leader is Z", func() bool {
		p, err := h.Read(0)
		return err == nil && p.State == 'Z'
	})
	expect(t, host, "by inode", ref, Owned, "11")
	expect(t, host, "by token", byToken(ref), Owned, "11")
	row, err := h.Read(WantArgs | WantEnviron | WantCwd)
	if err != nil || row.Missing != 0 || !slices.Equal(row.Args, s.Args) || !slices.Contains(row.Environ, helperEnv+"=dead-leader") {
		t.Errorf("what its leader has given back, its thread still has: %+v, %v", row, err)
	}
	observe(t, "unpinned-owned", map[string]Ref{"it": byToken(ref)}, nil)
	if err := host.Wait(t.Context(), []Handle{h}, time.Now().Add(20*time.Millisecond)); err != nil || h.Verify().Verdict != Owned {
		t.Errorf("waited: %v, %+v", err, h.Verify())
	}
	if err := h.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitGone(t, host, h)
	expect(t, host, "killed", ref, Gone, "12")
}

func waitGone(t testing.TB, host Host, h Handle) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := host.Wait(ctx, []Handle{h}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if f := h.Verify(); f.Verdict != Gone {
		t.Fatalf("waited for, and %+v", f)
	}
}

// TestZombieIsGone: inventory and control agree on it, and it is named with who
// does not reap it.
func TestZombieIsGone(t *testing.T) {
	host := localHost(t)
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	waitGone(t, host, h)
	ref := stored(t, h.Ref())
	for what, r := range map[string]Ref{"by inode": ref, "by token": byToken(ref), "legacy": {PID: ref.PID, Start: ref.Start}} {
		if f := expect(t, host, what, r, Gone, "12"); !f.Zombie || f.ZombieOf != os.Getpid() {
			t.Errorf("%s: %+v", what, f)
		}
	}
	if err := h.Signal(syscall.SIGTERM); !errors.Is(err, ErrGone) {
		t.Errorf("signal to a zombie: %v", err)
	}
	if again, err := host.Open(ref.PID); err != nil || again.Ref().Start != ref.Start {
		t.Errorf("a zombie can still be recorded: %v", err)
	}
	if row, err := h.Read(0); err != nil || row.State != 'Z' {
		t.Errorf("a zombie can still be read: %+v, %v", row, err)
	}
	_ = cmd.Wait()
	expect(t, host, "reaped", ref, Gone, "5")
}

// TestStoppedIsOwned: stopped is alive, and can be ended.
func TestStoppedIsOwned(t *testing.T) {
	host := localHost(t)
	s := start(t, exec.Command("sleep", "600"))
	ref := refOf(t, host, s.pid)
	h, f := host.Verify(ref)
	if f.Verdict != Owned {
		t.Fatal(f)
	}
	defer h.Close()
	if err := h.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "state T", func() bool { p, _ := h.Read(0); return p.State == 'T' })
	expect(t, host, "stopped", ref, Owned, "11")
	if err := h.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitGone(t, host, h)
}

// TestExecIsTheSameProcess, also when a thread executes and takes over the
// leader's number.
func TestExecIsTheSameProcess(t *testing.T) {
	host := localHost(t)
	for name, cmd := range map[string]*exec.Cmd{
		"by the leader": exec.Command("sh", "-c", "read x; exec sleep 600"),
		"by a thread":   self("exec-by-thread"),
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, cmd)
			ref := refOf(t, host, s.pid)
			h, f := host.Verify(ref)
			if f.Verdict != Owned {
				t.Fatal(f)
			}
			defer h.Close()
			if _, err := s.stdin.Write([]byte("\n")); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it is sleep now", func() bool { p, _ := h.Read(0); return p.Comm == "sleep" })
			expect(t, host, "by inode", ref, Owned, "11")
			expect(t, host, "by token", byToken(ref), Owned, "11")
			if f := h.Verify(); f.Verdict != Owned {
				t.Errorf("through the pin: %+v", f)
			}
			if err := h.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			waitGone(t, host, h)
		})
	}
}

// TestForgedTokenIsForeign: the true pid with another's token is refused, and
// the process is left alone.
func TestForgedTokenIsForeign(t *testing.T) {
	host := localHost(t)
	s := start(t, exec.Command("sleep", "600"))
	ref := refOf(t, host, s.pid)
	other := ref
	other.PIDFS = ptr(*ref.PIDFS + 1)
	expect(t, host, "inode", other, Foreign, "9")
	other = byToken(ref)
	other.Start = startToken("linux", tokenNumber(ref.Start)+1)
	expect(t, host, "token", other, Foreign, "10")
	if !lives(s.pid) {
		t.Error("it is dead")
	}
}

// TestLegacyRecords of the three kinds that other tools leave: pid, pid with
// ticks, pid with ticks and a little of the host.
func TestLegacyRecords(t *testing.T) {
	host := localHost(t)
	s := start(t, exec.Command("sleep", "600"))
	ref := refOf(t, host, s.pid)
	for _, text := range []string{
		fmt.Sprintf(`{"pid":%d}`, s.pid),
		fmt.Sprintf(`{"pid":%d,"start":%q}`, s.pid, ref.Start),
		fmt.Sprintf(`{"pid":%d,"start":%q,"host":%q,"machine":%q}`, s.pid, ref.Start, ref.Host, ref.Machine),
	} {
		expect(t, host, text, ParseRef([]byte(text)), Unverifiable, "legacy")
	}
	expect(t, host, "another token", Ref{PID: s.pid, Start: "linux:1"}, Foreign, "10")
	expect(t, host, "a wall clock", Ref{PID: s.pid, Start: "1700000000.25"}, Unverifiable, "1")
	if !lives(s.pid) {
		t.Fatal("it is dead")
	}
	_ = s.Process.Kill()
	_ = s.Wait()
	for _, r := range []Ref{{PID: s.pid}, {PID: s.pid, Start: ref.Start}} {
		expect(t, host, "ended", r, Gone, "5")
	}
}
