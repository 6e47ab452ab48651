package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"hob/identity"
	"hob/sweep"
	"hob/tasks"
)

// withoutCgroups runs a command in a mount namespace in which no cgroup of version
// 2 is mounted. The process stays the one that was started.
var withoutCgroups = []string{"unshare", "--mount", "--propagation", "private", "sh", "-ec", `
	while d=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts) && [ "$d" ]; do umount -l "$d"; done
	exec "$@"`, "sh"}

// makeBare has hob run where no cgroup can be made. It is false where only root
// could arrange that.
func (k *kitchen) makeBare() bool {
	k.bare = os.Getuid() == 0
	if !k.bare {
		k.t.Log("left out: only root can hide the cgroups from hob")
	}
	return k.bare
}

// cgroups reports whether hob can make a cgroup here: root can wherever they are
// mounted, others where one was delegated to them.
func (k *kitchen) cgroups() bool {
	k.t.Helper()
	if k.bare {
		return false
	}
	all := k.host.Cgroups()
	at, err := all.Place(filepath.Base(k.dir) + "-try")
	var g identity.Cgroup
	if err == nil {
		g, err = all.Make(at)
	}
	if err != nil {
		k.t.Logf("no cgroup can be made here: %v", err)
		if os.Getuid() == 0 && !errors.Is(err, identity.ErrUnsupported) {
			k.t.Errorf("although we are root: %v", err)
		}
		return false
	}
	defer g.Close()
	k.check(g.Remove())
	return true
}

// cgroup is that of a task.
func (k *kitchen) cgroup(name string) identity.CgroupRef {
	k.t.Helper()
	rec, err := k.task(name).ReadKeeper()
	k.check(err)
	if rec.Cgroup == nil {
		k.t.Fatalf("%s has no cgroup: %s", name, rec.CgroupNote)
	}
	return *rec.Cgroup
}

// moveTo moves a process to a cgroup, as root does it.
func (k *kitchen) moveTo(pid int, dir string) {
	k.t.Helper()
	k.check(os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0))
}

// orphan starts a stranger whose parent has ended, as a daemon's has.
func (k *kitchen) orphan(name string) identity.Handle {
	k.t.Helper()
	cmd := exec.Command("setsid", "-f", "sh", "-c", "echo $$ > @/x; mv @/x @/"+name+"; exec sleep 613")
	cmd.Args[4] = strings.ReplaceAll(cmd.Args[4], "@", k.d())
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	k.check(cmd.Run())
	pin := k.pin(name)
	k.strange[pin.Ref().PID] = true
	k.until("the stranger to sleep", func() bool {
		row, err := pin.Read(identity.WantArgs)
		return err == nil && slices.Equal(row.Args, []string{"sleep", "613"})
	})
	return pin
}

// endCgroups removes the cgroups that are left, which is a failure.
func (k *kitchen) endCgroups() {
	k.t.Helper()
	left, err := k.pen.Left()
	if err != nil || len(left) > 0 {
		k.t.Errorf("left behind: cgroups %q %v", left, err)
	}
	in, err := k.pen.Procs()
	if err != nil || len(in) > 0 {
		k.t.Errorf("left behind, in the cgroups: %v %v", in, err)
	}
	for _, pid := range in {
		if pin, err := k.host.Open(pid); err == nil {
			_ = pin.Signal(syscall.SIGKILL)
			pin.Close()
		}
	}
	k.until("the cgroups to be removed", func() bool { return k.pen.Remove() == nil })
}

// rebootCgroups removes the cgroups of the kitchen, all of whose processes have
// ended: after the restart of a host there are none.
func (k *kitchen) rebootCgroups() {
	k.t.Helper()
	k.until("the cgroups to be removed", func() bool { return k.pen.Empty() == nil })
}

// visitor starts a stranger whose parent, this test, lives.
func (k *kitchen) visitor() identity.Handle {
	k.t.Helper()
	cmd := exec.Command("sleep", "614")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	k.check(cmd.Start())
	pin, err := k.host.Open(cmd.Process.Pid)
	k.check(err)
	k.pins["guest"] = pin
	k.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return pin
}

const cgroupRecipe = `
name: m
servers:
  s:
    command: [sh, -c, "echo $$$$ > @D/s; exec tail -f @K/hob.yaml"]
    stop: {grace: 200ms, term_grace: 200ms}
`

// kitchenWithCgroups is for tests in which root moves processes about.
func kitchenWithCgroups(t *testing.T) *kitchen {
	t.Helper()
	k := open(t)
	if os.Getuid() != 0 {
		t.Skip("left out: only root may move strangers to another cgroup")
	}
	if !k.cgroups() {
		t.Fatal("no cgroup of version 2 can be made here")
	}
	k.recipe(cgroupRecipe)
	return k
}

// looksAlike checks that a stranger lives, and is named for being in the cgroup.
func (k *kitchen) looksAlike(rep sweep.Report, pin identity.Handle, what string) {
	k.t.Helper()
	if pin.Verify().Verdict != identity.Owned {
		k.t.Errorf("%s was ended", what)
	}
	named := slices.ContainsFunc(rep.Lookalikes, func(l sweep.Lookalike) bool {
		return l.PID == pin.Ref().PID && slices.Contains(l.Why, "cgroup")
	})
	if !named {
		k.t.Errorf("%s is not named: %+v, notes %q", what, rep.Lookalikes, rep.Host.Notes)
	}
}

// TestStrangerInTheCgroup: root moves strangers into a task's cgroup. None is
// signalled, each is named, and nothing that only the cgroup would show is ended.
func TestStrangerInTheCgroup(t *testing.T) {
	for name, c := range map[string]struct {
		old    bool // the stranger is older than the command, and an orphan
		killed bool // the keeper is killed before it comes
	}{
		"while the keeper lives":     {},
		"an orphan, to a keeper":     {old: true},
		"after the keeper is killed": {killed: true},
		"an orphan, to no keeper":    {old: true, killed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := kitchenWithCgroups(t)
			var guest identity.Handle
			if c.old {
				guest = k.orphan("guest")
			}
			k.must("up")
			if !c.old {
				guest = k.visitor()
			}
			dir := k.cgroup("m/s").Path
			rec, err := k.task("m/s").ReadKeeper()
			k.check(err)
			if c.killed {
				k.signal(rec.Keeper, syscall.SIGKILL)
			}
			k.moveTo(guest.Ref().PID, dir)
			rep := k.reports(k.must("down", "--json", "m"))[0]
			k.looksAlike(rep, guest, "the stranger")
			if notes := strings.Join(rep.Host.Notes, " "); !strings.Contains(notes, "does not bear the stamp of the task's keeper") {
				t.Errorf("notes %q", notes)
			}
			if _, err := os.Stat(dir); err != nil {
				t.Errorf("the cgroup is gone, and the stranger was in it: %v", err)
			}
			k.check(guest.Signal(syscall.SIGKILL))
			k.until("the stranger to end", func() bool { return guest.Verify().Verdict != identity.Owned })
			k.must("down", "m") // the next hob removes what the keeper could not
			k.until("the cgroup to be removed", func() bool {
				k.must("rm", "m")
				_, err := os.Stat(dir)
				return errors.Is(err, os.ErrNotExist)
			})
		})
	}
}

// TestCgroupRemade: after the keeper and all of the task have ended another cgroup
// is made by the same name. It is none of hob's, and neither is who is in it.
func TestCgroupRemade(t *testing.T) {
	t.Parallel()
	k := kitchenWithCgroups(t)
	k.must("up")
	ref := k.cgroup("m/s")
	rec, err := k.task("m/s").ReadKeeper()
	k.check(err)
	command := k.pin("s")
	k.signal(rec.Keeper, syscall.SIGKILL)
	k.until("the command to be hung up on", func() bool { return command.Verify().Verdict != identity.Owned })
	k.until("the cgroup to be empty", func() bool { return os.Remove(ref.Path) == nil })
	k.check(os.Mkdir(ref.Path, 0o755))
	guest := k.orphan("guest")
	k.moveTo(guest.Ref().PID, ref.Path)
	rep := k.reports(k.must("down", "--json", "m"))[0]
	if rep.Verdict != sweep.Clean || len(rep.Lookalikes) > 0 || guest.Verify().Verdict != identity.Owned {
		t.Errorf("%s, look-alikes %+v, the stranger is %s", rep.Verdict, rep.Lookalikes, guest.Verify().Verdict)
	}
	if _, err := os.Stat(ref.Path); err != nil {
		t.Errorf("a cgroup that is not hob's was removed: %v", err)
	}
	k.check(guest.Signal(syscall.SIGKILL))
	k.until("it to be removed", func() bool { return os.Remove(ref.Path) == nil })
}

// TestWithoutCgroups: hob says why there is none, and works as before.
func TestWithoutCgroups(t *testing.T) {
	t.Parallel()
	k := open(t)
	if !k.makeBare() {
		return
	}
	k.recipe(cgroupRecipe)
	k.must("up")
	rec, err := k.task("m/s").ReadKeeper()
	k.check(err)
	capture, err := k.task("m/s").ReadCapture()
	if !errors.Is(err, tasks.ErrNoRecord) { // before its keeper's first look
		k.check(err)
	}
	if rec.Cgroup != nil || capture.Cgroup != nil || rec.CgroupNote == "" {
		t.Errorf("cgroup %+v, %+v, note %q", rec.Cgroup, capture.Cgroup, rec.CgroupNote)
	}
	if r := k.reports(k.must("down", "--json", "m"))[0]; r.Verdict != sweep.Clean {
		t.Errorf("%s %q", r.Verdict, r.Host.Notes)
	}
}

// TestCgroupIsRemoved: a keeper that ends leaves no cgroup behind, however it comes to
// its end, and one that is killed leaves it to the next hob.
func TestCgroupIsRemoved(t *testing.T) {
	t.Parallel()
	k := kitchenWithCgroups(t)
	for i, end := range []func(){
		func() { k.must("down", "m") },
		func() { k.signal(k.pin("s").Ref(), syscall.SIGKILL) },
		func() { k.tmux("m", "kill-session", "-t", "=m") },
		func() {
			rec, err := k.task("m/s").ReadKeeper()
			k.check(err)
			k.signal(rec.Keeper, syscall.SIGKILL)
			k.must("down", "m")
		},
	} {
		k.must("up")
		dir := k.cgroup("m/s").Path
		k.pin("s")
		end()
		k.until(fmt.Sprintf("the cgroup of start %d to be removed", i), func() bool {
			_, err := os.Stat(dir)
			return errors.Is(err, os.ErrNotExist)
		})
		k.must("down")
		k.forget()
	}
}
