package identity

import (
	"errors"
	"os/exec"
	"reflect"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestOpenAll: many that are looked at side by side are each what Open, Read and Verify
// say one after the other: the living, a corpse, and a number that nobody has.
func TestOpenAll(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	host := localHost(t)
	var pids []int
	for range 3 * looksEach {
		pid := sleeper(t).Process.Pid
		pids = append(pids, pid)
		eventually(t, "it sleeps", func() bool { // its arguments come late in an exec
			row, err := readRow(procPath(pid)+"/", pid, WantArgs|WantWchan)
			return err == nil && row.State == 'S' && len(row.Args) == 2
		})
	}
	dead, reaped := sleeper(t), exec.Command("true")
	if err := errors.Join(dead.Process.Signal(syscall.SIGKILL), reaped.Run()); err != nil {
		t.Fatal(err)
	}
	pids = append(pids, dead.Process.Pid, reaped.Process.Pid)
	eventually(t, "the corpse lies there", func() bool {
		h, err := host.Open(dead.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		return h.Verify().Zombie
	})
	for i, o := range OpenAll(host, pids, WantArgs|WantPidfs) {
		h, err := host.Open(pids[i])
		if pids[i] == reaped.Process.Pid {
			if !errors.Is(err, ErrGone) || !errors.Is(o.Err, ErrGone) || o.Pin != nil {
				t.Errorf("reaped: %v, %+v", err, o)
			}
			continue
		}
		if err != nil || o.Err != nil {
			t.Fatal(err, o.Err)
		}
		want, got := h.Ref(), o.Pin.Ref()
		row, err := h.Read(WantArgs | WantPidfs)
		if f := h.Verify(); err != nil || f != o.Found || f != o.Pin.Verify() {
			t.Errorf("found %+v, want %+v, %v", o.Found, f, err)
		}
		got.RecordedAt, want.RecordedAt, o.Row.RSS, row.RSS = time.Time{}, time.Time{}, 0, 0
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(o.Row, row) {
			t.Errorf("got %+v, %+v\nwant %+v, %+v", got, o.Row, want, row)
		}
		_, _ = h.Close(), o.Pin.Close()
	}
}
