package identity

import (
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// aStamp is one that no process of this host has otherwise.
const aStamp = 1<<30 | 87_654_321

func init() {
	observers["stamps by the file"] = func(o *observer) {
		refuse(o, unix.SYS_PRLIMIT64, unix.EPERM)
		o.look()
		if _, ok := askStamp(o.refs["bears"].PID); ok {
			o.Errorf("prlimit was not refused")
		}
		expectStamps(o, o, o.refs["bears"].PID, o.refs["other"].PID)
	}
}

// TestStamps: who bears one is found by a whole look and by the lighter one, where
// prlimit(2) answers and where it is refused, as to another user or in a sandbox.
func TestStamps(t *testing.T) {
	host := localHost(t)
	bears, other := start(t, exec.Command("sleep", "600")), start(t, exec.Command("sleep", "600"))
	if err := unix.Prlimit(bears.pid, unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: aStamp, Max: aStamp}, nil); err != nil {
		t.Fatal(err)
	}
	expectStamps(t, host, bears.pid, other.pid)
	observe(t, "stamps by the file", map[string]Ref{"bears": refOf(t, host, bears.pid), "other": refOf(t, host, other.pid)}, nil)
}

func expectStamps(t tb, host Host, bears, other int) {
	t.Helper()
	b, err := host.Bearers(bg, aStamp)
	if err != nil || !slices.Equal(b.PIDs, []int{bears}) || slices.Contains(b.Unread, other) {
		t.Errorf("bearers %+v, %v; want %d", b, err, bears)
	}
	table, err := host.Snapshot(bg, WantStamp)
	if err != nil {
		t.Fatalf("%v", err)
	}
	want := map[int]uint64{bears: aStamp, other: 0}
	for _, p := range table.Procs {
		if stamp, ok := want[p.PID]; ok && (p.Stamp != stamp || p.Missing != 0) {
			t.Errorf("pid %d shows %d, missing %b; want %d", p.PID, p.Stamp, p.Missing, stamp)
		}
		delete(want, p.PID)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
}

// TestStampOfNobody: a number that nobody has shows nothing, which is no stamp.
func TestStampOfNobody(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if stamp, ok, err := readStamp(cmd.Process.Pid); ok || !absent(err) {
		t.Errorf("pid %d: %d, %v", cmd.Process.Pid, stamp, err)
	}
}
