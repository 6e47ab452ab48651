package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hob/identity"
)

// pin takes hold of the process that has written its pid to the file of this
// name, so that the test knows the truth about it whatever becomes of its number.
func (k *kitchen) pin(name string) identity.Handle {
	k.t.Helper()
	if pin := k.pins[name]; pin != nil {
		return pin
	}
	var pin identity.Handle
	k.until(name+" to be there", func() bool {
		text, err := os.ReadFile(k.d() + "/" + name)
		if err != nil {
			return false
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil { // a shell makes the file before it writes
			return false
		}
		pin, err = k.host.Open(pid)
		k.check(err)
		return true
	})
	k.pins[name] = pin
	return pin
}

// forget gives up the pins and pid files of names, so that the next start is seen.
func (k *kitchen) forget() {
	for name, pin := range k.pins {
		pin.Close()
		_ = os.Remove(k.d() + "/" + name)
		delete(k.pins, name)
	}
}

// endPins ends pinned processes that a test has shown hob to leave alone.
func (k *kitchen) endPins(names []string) {
	k.t.Helper()
	for _, name := range names {
		k.check(k.pin(name).Signal(syscall.SIGKILL))
		k.until(name+" to be gone", func() bool { return !k.alive(name) })
	}
}

// alive reports whether a pinned process lives.
func (k *kitchen) alive(name string) bool {
	k.t.Helper()
	return k.pin(name).Verify().Verdict == identity.Owned
}

// signal sends a signal to a process that this test has had started.
func (k *kitchen) signal(ref identity.Ref, sig syscall.Signal) {
	k.t.Helper()
	pin, f := k.host.Verify(ref)
	if pin == nil {
		k.t.Fatalf("process %d: %s %s", ref.PID, f.Verdict, f.Reason)
	}
	defer pin.Close()
	k.check(pin.Signal(sig))
}

// stranger is a process that looks like hob's and is not.
type stranger struct {
	what string
	pin  identity.Handle
}

// stranger starts one. It must live until the end of the test, whatever hob does.
func (k *kitchen) stranger(what string, cmd *exec.Cmd) stranger {
	k.t.Helper()
	if cmd.Env == nil {
		cmd.Env = k.env
	}
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	k.check(cmd.Start())
	k.strange[cmd.Process.Pid] = true
	pin, err := k.host.Open(cmd.Process.Pid)
	k.check(err)
	k.t.Cleanup(func() {
		if pin.Verify().Verdict != identity.Owned {
			k.t.Errorf("the stranger %s was ended", what)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		pin.Close()
	})
	return stranger{what, pin}
}

// untouched checks that strangers live.
func (k *kitchen) untouched(list ...stranger) {
	k.t.Helper()
	for _, s := range list {
		if s.pin.Verify().Verdict != identity.Owned {
			k.t.Errorf("the stranger %s was ended", s.what)
		}
	}
}

// marked are the living processes that carry the kitchen's mark.
func (k *kitchen) marked() []identity.Process {
	table, err := k.host.Snapshot(context.Background(), identity.WantArgs|identity.WantEnviron)
	if err != nil {
		k.t.Errorf("the host cannot be looked at: %v", err)
		return nil
	}
	return slices.DeleteFunc(table.Procs, func(p identity.Process) bool { return !k.marks(p) })
}

// marks reports whether a living process carries the kitchen's mark.
func (k *kitchen) marks(p identity.Process) bool {
	has := func(text string) bool { return strings.Contains(text, k.dir+"/") || strings.HasSuffix(text, k.dir) }
	return !dead(p) && (slices.ContainsFunc(p.Args, has) || slices.ContainsFunc(p.Environ, has))
}

// dead reports whether a process has ended and is not reaped.
func dead(p identity.Process) bool { return p.State == 'Z' && p.Threads <= 1 }

// close fails the test when something of the kitchen is left, and ends that.
func (k *kitchen) close() {
	for _, p := range k.marked() {
		k.t.Errorf("left behind: %s", line(p))
	}
	for name, pin := range k.pins {
		if pin.Verify().Verdict == identity.Owned {
			k.t.Errorf("left behind: %s, pid %d", name, pin.Ref().PID)
			_ = pin.Signal(syscall.SIGKILL)
		}
		pin.Close()
	}
	if k.t.Failed() {
		k.t.Log(k.story())
	}
	k.endMarked()
	k.endCgroups()
	for _, f := range k.last {
		f()
	}
	_ = os.RemoveAll(k.dir)
}

// endMarked ends what a failed test has left.
func (k *kitchen) endMarked() {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		left := k.marked()
		for _, p := range left {
			if pin, err := k.host.Open(p.PID); err == nil {
				_ = pin.Signal(syscall.SIGKILL)
				pin.Close()
			}
		}
		if len(left) == 0 {
			return
		}
	}
}

// line describes a process in a line.
func line(p identity.Process) string {
	return fmt.Sprintf("%d, parent %d, session %d: %.160s", p.PID, p.PPID, p.SID, strings.Join(p.Args, " "))
}
