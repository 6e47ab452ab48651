package identity

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// reuseRounds is how often a number is forced to be given away again.
const reuseRounds = 200

func init() { observers["reuse"] = reuse }

// TestForcedReuse: in a pid namespace of its own, where the next number can be
// chosen, recorded numbers are given to other processes.
func TestForcedReuse(t *testing.T) {
	needRoot(t)
	observe(t, "reuse", nil, cloned(newPIDs))
}

// round is one number, given twice.
type round struct {
	first, second Ref
	pin           Handle // on the first process
}

func reuse(o *observer) {
	o.private()
	o.mountProc("")
	if !o.Facts().Pidfs {
		o.Errorf("no pidfs here: the inode cannot be tested")
	}
	equalTicks := 0
	for i := range reuseRounds {
		if checkReuse(o, i) {
			equalTicks++
		}
	}
	// What ticks alone cannot do is stated, not hidden: pairs born in one tick look
	// alike to a kernel without pidfs. Apart by one tick they never do.
	fmt.Printf("%d of %d pairs had equal ticks\n", equalTicks, reuseRounds)
}

// checkReuse makes one round and reports whether both processes had one start
// tick. In every fourth round the second comes at least one tick later.
func checkReuse(o *observer, i int) (equal bool) {
	later := i%4 == 3
	r, second := forceReuse(o, later)
	defer func() { _ = second.Process.Kill(); _ = second.Wait() }()
	defer r.pin.Close()
	equal = r.first.Start == r.second.Start
	if later && equal {
		o.Fatalf("round %d: a tick apart, and equal", i)
	}
	expect(o, o, "by inode", r.first, Foreign, "9")
	if equal {
		expect(o, o, "by ticks, equal", byToken(r.first), Owned, "11")
	} else {
		expect(o, o, "by ticks", byToken(r.first), Foreign, "10")
		expect(o, o, "legacy", Ref{PID: r.first.PID, Start: r.first.Start}, Foreign, "10")
	}
	expect(o, o, "the second", r.second, Owned, "11")
	if err := r.pin.Signal(syscall.SIGKILL); !errors.Is(err, ErrGone) {
		o.Errorf("round %d: signal through the pin of the first: %v", i, err)
	}
	if _, err := r.pin.Read(0); !errors.Is(err, ErrGone) {
		o.Errorf("round %d: read through the pin of the first: %v", i, err)
	}
	if !lives(second.Process.Pid) {
		o.Fatalf("round %d: the second is dead", i)
	}
	return equal
}

// forceReuse starts a process, ends it, and starts another with its number.
func forceReuse(o *observer, later bool) (round, *exec.Cmd) {
	for {
		first := exec.Command("/bin/sleep", "600")
		o.must("start", first.Start())
		pin, err := o.Open(first.Process.Pid)
		o.must("open", err)
		o.must("kill", pin.Signal(syscall.SIGKILL))
		_ = first.Wait()
		if later {
			nextTick(tokenNumber(pin.Ref().Start))
		}
		second := exec.Command("/bin/sleep", "600")
		o.must("choose the next pid", os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(first.Process.Pid-1)), 0))
		o.must("start", second.Start())
		if second.Process.Pid == first.Process.Pid {
			return round{pin.Ref(), stored2(o, second.Process.Pid), pin}, second
		}
		_ = pin.Close() // a thread of ours took the number: again
		_ = second.Process.Kill()
		_ = second.Wait()
	}
}

// nextTick waits until a process that is born now has a later start than tick.
func nextTick(tick uint64) {
	for {
		var up unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &up)
		if uint64(up.Nano())/10_000_000 > tick {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestFrozen: a frozen process is alive; where KILL does not reach it (version 1)
// it stays owned, and its row says where it waits.
func TestFrozen(t *testing.T) {
	needRoot(t)
	v1 := cgroupOf(t, "cgroup", "freezer")
	v2 := cgroupOf(t, "cgroup2", "")
	if v1 == "" && v2 == "" {
		t.Fatal("no cgroup filesystem with a freezer is mounted")
	}
	if v1 != "" {
		t.Run("v1", func(t *testing.T) { frozen(t, v1, "freezer.state", "FROZEN", "THAWED", true) })
	}
	if v2 != "" {
		t.Run("v2", func(t *testing.T) { frozen(t, v2, "cgroup.freeze", "1", "0", false) })
	}
}

// cgroupOf finds where a cgroup filesystem is mounted.
func cgroupOf(t *testing.T, fstype, option string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if f[2] == fstype && (option == "" || strings.Contains(","+f[3]+",", ","+option+",")) {
			return f[1]
		}
	}
	return ""
}

func frozen(t *testing.T, root, file, freeze, thaw string, stuck bool) {
	host := localHost(t)
	s := start(t, exec.Command("sleep", "600"))
	group := filepath.Join(root, "hob-test-"+strconv.Itoa(s.pid))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(group, name), []byte(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		write(file, thaw)
		_ = s.Process.Kill()
		eventually(t, "the cgroup is empty", func() bool { return os.Remove(group) == nil })
	})
	write("cgroup.procs", strconv.Itoa(s.pid))
	ref := refOf(t, host, s.pid)
	write(file, freeze)
	if stuck {
		eventually(t, "it is frozen", func() bool {
			text, _ := os.ReadFile(filepath.Join(group, file))
			return strings.TrimSpace(string(text)) == freeze
		})
	}
	h, f := host.Verify(ref)
	if f.Verdict != Owned {
		t.Fatalf("frozen: %+v", f)
	}
	defer h.Close()
	if err := h.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if stuck {
		if err := host.Wait(t.Context(), []Handle{h}, time.Now().Add(100*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		expect(t, host, "killed, and frozen still", ref, Owned, "11")
		if row, err := h.Read(WantWchan); err != nil || row.State != 'D' || row.Wchan == "" {
			t.Errorf("state %c in %q, %v", row.State, row.Wchan, err)
		}
		write(file, thaw)
	}
	waitGone(t, host, h)
}
