package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"hob/identity"
	"hob/tasks"
)

// otherBoot mounts another boot id over this one's, and what of the host else is
// to be another's.
func (k *kitchen) otherBoot(more string) string {
	k.t.Helper()
	path := k.path("boot_id")
	k.check(os.WriteFile(path, []byte("5ca1ab1e-0000-4000-8000-000000000001\n"), 0o600))
	return "mount --bind " + path + " /proc/sys/kernel/random/boot_id" + more
}

// TestReboot: after a restart of the host nothing of a task can live. It is shown
// as ended, nothing is signalled, its port is free, and it can be started again.
func TestReboot(t *testing.T) {
	t.Parallel()
	k := open(t)
	port := freePort(t)
	k.recipe(fmt.Sprintf("name: m\nservers:\n  llm: {command: [%s, %s, @D, '%d'], port: %d, stop: {grace: 1s}}\njobs:\n  done: {command: [sh, -c, 'echo made']}\n",
		python3, k.testdata("stall.py"), port, port))
	k.must("up")
	k.must("wait", "m/done")
	stranger := k.stranger("with the same command line", exec.Command("sleep", "86470"))
	k.signal(*k.run("m").Tmux.Server, syscall.SIGSTOP) // it would resume a stopped pane
	k.killAllBut(stranger)
	boot := k.otherBoot("")

	var list []struct {
		Task  string
		State tasks.State
		PID   *int
	}
	r := k.in(boot, "ps", "--json")
	k.check(json.Unmarshal([]byte(r.out), &list))
	for _, s := range list {
		if want := map[string]tasks.State{"llm": tasks.Lost, "done": tasks.Completed}[s.Task]; s.State != want || s.PID != nil {
			t.Errorf("%+v, want %s", s, want)
		}
	}
	if r := k.in(boot, "ps", "-v"); !strings.Contains(r.out, "the host was restarted") {
		t.Errorf("why: %v", r)
	}
	if r := k.in(boot, "up"); r.code != 0 {
		t.Errorf("up: %v", r)
	}
	if r := k.in(boot, "down", "m"); r.code != 0 {
		t.Errorf("down: %v", r)
	}
	k.untouched(stranger)
}

// killAllBut ends everything of the kitchen at once, as the end of the host does.
func (k *kitchen) killAllBut(stranger stranger) {
	k.t.Helper()
	for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		for _, p := range k.marked() {
			if pin, err := k.host.Open(p.PID); err == nil && p.PID != stranger.pin.Ref().PID {
				_ = pin.Signal(sig)
				pin.Close()
			}
		}
	}
	k.until("all to end", func() bool { return len(k.marked()) == 1 })
	k.rebootCgroups()
}

// TestAnotherHost: records of a state folder that hosts share tell another host
// nothing of what lives. Nothing is signalled or forgotten there but by force.
func TestAnotherHost(t *testing.T) {
	t.Parallel()
	k := open(t)
	k.recipe("name: m\nservers:\n  llm: {command: [sh, -c, 'exec sleep 86471'], stop: {grace: 1s}}\n")
	k.must("up")
	command := k.commandOf("m/llm")
	// A machine id that is empty makes no two hosts one, and a name alone neither.
	there := k.otherBoot(" && mount --bind /dev/null /etc/machine-id && hostname elsewhere")
	in := func(args ...string) result {
		t.Helper()
		words := []string{"--mount", "--uts", "--propagation", "private", "sh", "-c", there + ` && exec "$@"`, "sh", k.bin}
		cmd := exec.Command("unshare", append(words, args...)...)
		cmd.Dir, cmd.Env = k.dir, k.env
		k.penned(cmd)
		return run(t, cmd)
	}
	if r := in("ps", "-v"); !strings.Contains(r.out, "unverified") || !strings.Contains(r.out, "unverifiable: ") {
		t.Errorf("ps: %v", r)
	}
	for _, args := range [][]string{{"down", "m"}, {"up"}, {"restart", "m"}, {"sweep", "m"}, {"rm", "m"}} {
		if r := in(args...); r.code != 4 {
			t.Errorf("hob %v: %v", args, r)
		}
	}
	if r := in("rm", "m"); !strings.Contains(r.err, "hob rm --forget m") {
		t.Errorf("rm does not say what would do it: %v", r)
	}
	if k.commandOf("m/llm").PID != command.PID || k.stateOf("m/llm") != tasks.Ready {
		t.Errorf("at home the task is %s", k.stateOf("m/llm"))
	}
	k.must("down", "m")
}

// TestOneReaper: of ten hobs that start together one stops what nobody is left to
// want. Until then ps says why it is still there.
func TestOneReaper(t *testing.T) {
	t.Parallel()
	k := open(t)
	k.recipe("name: m\nservers:\n  deaf:\n    command: [sh, -c, 'trap \"\" HUP; echo up; while :; do sleep 86472; done']\n    ready: {log: up}\n    stop: {grace: 300ms, term_grace: 300ms}\n")
	cmd := k.command("run")
	k.check(cmd.Start())
	k.until("the run to be up", func() bool {
		rec, err := k.task("m/deaf").ReadKeeper()
		return err == nil && rec.Ready
	})
	rec, err := k.task("m/deaf").ReadKeeper()
	k.check(err)
	k.signal(rec.Keeper, syscall.SIGKILL) // first: it would see its owner end
	k.check(cmd.Process.Kill())
	_ = cmd.Wait()
	k.until("the keeper to be gone", func() bool {
		h, f := k.host.Verify(rec.Keeper)
		if h != nil {
			h.Close()
		}
		return f.Verdict == identity.Gone
	})
	r := k.hob("ps", "-v")
	if !strings.Contains(r.out, "its keeper is gone") || !strings.Contains(r.out, "gone: ") || !strings.Contains(r.out, string(identity.Owned)) {
		t.Errorf("why it is still there: %v", r)
	}
	var wg sync.WaitGroup
	hobs := make([]*exec.Cmd, 10)
	for i := range hobs {
		hobs[i] = k.command("reap", "--json")
	}
	for _, c := range hobs {
		wg.Go(func() {
			if out, err := c.CombinedOutput(); err != nil && !strings.Contains(string(out), "deaf") {
				t.Errorf("hob reap: %v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	events, _, err := k.store().Run("m").Events()
	k.check(err)
	stops := slices.DeleteFunc(events, func(e tasks.Event) bool { return e.What != "stopping: owner" })
	if len(stops) != 1 {
		t.Errorf("it was stopped %d times: %+v", len(stops), events)
	}
	k.must("down", "--all")
}

// TestUpAfterAKilledKeeper: the kernel hangs up on a command whose keeper is killed,
// and the command may take a moment to end. An up that comes then waits for that
// and starts it anew.
func TestUpAfterAKilledKeeper(t *testing.T) {
	t.Parallel()
	k := open(t)
	k.recipe("name: m\nservers:\n  llm:\n    command: [sh, -c, 'trap \"sleep 0.3; exit 1\" HUP; echo up; while :; do sleep 0.1; done']\n    ready: {log: up}\n")
	k.must("up")
	rec, err := k.task("m/llm").ReadKeeper()
	k.check(err)
	keeper, err := k.host.Open(rec.Keeper.PID)
	k.check(err)
	defer keeper.Close()
	k.signal(rec.Keeper, syscall.SIGKILL)
	k.until("the keeper to be gone", func() bool { return keeper.Verify().Verdict != identity.Owned })
	k.must("up")
	now, err := k.task("m/llm").ReadKeeper()
	k.check(err)
	if now.Keeper.PID == rec.Keeper.PID || k.stateOf("m/llm") != tasks.Ready {
		t.Errorf("it is %s", k.stateOf("m/llm"))
	}
	k.must("down", "m")
}

// TestIDsOfARestartedServer: a task that ended with an earlier server has a pane
// whose id is another task's now. That one is left alone, and nothing is refused.
func TestIDsOfARestartedServer(t *testing.T) {
	t.Parallel()
	k := open(t)
	k.recipe("name: m\nservers:\n  a: {command: [sh, -c, 'exec sleep 86473']}\n  b: {command: [sh, -c, 'exec sleep 86474']}\n")
	k.must("up")
	pane := func(name string) string {
		rec, err := k.task(name).ReadTask()
		k.check(err)
		return rec.Pane.Pane
	}
	first, again := "m/a", "m/b" // by their ids
	if pane(first) > pane(again) {
		first, again = again, first
	}
	was := pane(first)
	k.signal(*k.run("m").Tmux.Server, syscall.SIGKILL)
	k.until("the keepers to see to their tasks", func() bool {
		s := k.states()
		return s[first] == tasks.Stopped && s[again] == tasks.Stopped
	})
	k.must("restart", again)
	if pane(again) != was {
		t.Fatalf("the new server does not repeat its ids: %s, then %s", was, pane(again))
	}
	k.must("down", first)
	if s := k.stateOf(again); s != tasks.Ready {
		t.Errorf("the task whose pane has that id now is %s", s)
	}
	k.must("down", "--all")
}
