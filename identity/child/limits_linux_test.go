package child

import (
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestProcessorsAsText(t *testing.T) {
	for text, cpus := range map[string][]int{"0": {0}, "0-3": {0, 1, 2, 3}, "1+3-4+1023": {1, 3, 4, 1023}} {
		var set unix.CPUSet
		for _, cpu := range cpus {
			set.Set(cpu)
		}
		if got := cpusText(&set); got != text {
			t.Errorf("%v: %q", cpus, got)
		}
		if back, err := cpusOf(text); err != nil || back != set {
			t.Errorf("%q: %v, %v", text, back, err)
		}
	}
	for _, text := range []string{"", "x", "1-", "-1", "99999", "0,1"} {
		if _, err := cpusOf(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	if l := threadLimits(); l[priorityName] == "" || l[cpusName] == "" {
		t.Errorf("our own: %v", l)
	}
}

// A nice level that may not be had is said, with the one that is had instead.
func TestPriorityThatNeedsRights(t *testing.T) {
	said := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with what it has lost
		had, err := niceLevel()
		if err == nil {
			err = withoutRights()
		}
		if err == nil {
			err = unix.Setpriority(unix.PRIO_PROCESS, 0, had+1)
		}
		if err != nil {
			t.Error(err)
		}
		if err := takeThread(priorityName, strconv.Itoa(had+2)); err != nil {
			t.Errorf("a higher one: %v", err)
		}
		said <- takeThread(priorityName, strconv.Itoa(had))
	}()
	if err := <-said; err == nil || !strings.Contains(err.Error(), "to raise it again needs rights") {
		t.Errorf("it was raised: %v", err)
	}
}

// withoutRights gives up CAP_SYS_NICE for the calling thread, and how far it may go
// without (the limit is the whole process's, and no test raises its own again).
func withoutRights() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	data[0].Effective &^= 1 << unix.CAP_SYS_NICE
	return errors.Join(unix.Capset(&head, &data[0]), unix.Setrlimit(unix.RLIMIT_NICE, &unix.Rlimit{}))
}
