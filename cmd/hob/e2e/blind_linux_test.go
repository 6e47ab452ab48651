package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hob/identity"
	"hob/sweep"
	"hob/tasks"
)

// What cannot be looked at is said, and is never taken for gone, for ours, or for
// clean. These tests need root, to become somebody with less sight.

const nobody = 65534

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this needs root: run the tests as root, or in a container")
	}
}

// openNobody is a kitchen of a user who may do little.
func openNobody(t *testing.T) *kitchen {
	t.Helper()
	needRoot(t)
	k := open(t)
	for _, path := range []string{k.dir, k.path("rt"), k.d()} {
		k.check(os.Chown(path, nobody, nobody))
	}
	k.user = &syscall.Credential{Uid: nobody, Gid: nobody}
	return k
}

// in runs a hob in a mount namespace of its own, after the mounts.
func (k *kitchen) in(mounts string, args ...string) result {
	k.t.Helper()
	needRoot(k.t)
	script := mounts + ` && exec "$@"`
	words := []string{"--mount", "--propagation", "private", "sh", "-c", script, "sh"}
	if k.user != nil {
		words = append(words, "setpriv", "--reuid", fmt.Sprint(nobody), "--regid", fmt.Sprint(nobody), "--clear-groups")
	}
	cmd := exec.Command("unshare", append(append(words, k.bin), args...)...)
	cmd.Dir, cmd.Env = k.dir, k.env
	k.penned(cmd)
	return run(k.t, cmd)
}

const (
	hidden   = "mount -t proc -o hidepid=2 proc /proc"
	noProcfs = "mount -t tmpfs none /proc"
)

const sleepers = "name: m\nservers:\n  llm:\n    command: [sh, -c, 'setsid sleep 86440 & echo up; exec sleep 86441']\n    ready: {log: up}\n    stop: {grace: 500ms}\n"

// TestOthersHidden: with hidepid the search for look-alikes sees only a part of
// the host. That is said, and all of the task is ended nevertheless.
func TestOthersHidden(t *testing.T) {
	t.Parallel()
	k := openNobody(t)
	k.recipe(sleepers)
	k.must("up")
	r := k.in(hidden, "down", "--json", "m")
	rep := k.reports(r)[0]
	if r.code != 0 || rep.Verdict != sweep.Clean || rep.Host.Inspection != "partial" || !strings.Contains(strings.Join(rep.Host.Notes, " "), "hidepid") {
		t.Errorf("%v", r)
	}
	if len(rep.Members) < 2 {
		t.Errorf("members: %+v", rep.Members)
	}
}

// TestNoProcfs: without a procfs there is no view. Nothing is called clean, and no
// record is changed for the worse: with a view, the next stop finishes.
func TestNoProcfs(t *testing.T) {
	for _, verb := range []string{"down", "sweep"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			k := open(t)
			needRoot(t)
			k.recipe(sleepers)
			k.must("up")
			stranger := k.stranger("with the same command line", exec.Command("sleep", "86441"))
			r := k.in(noProcfs, verb, "--json", "m")
			if r.code != 4 {
				t.Errorf("hob %s: %v", verb, r)
			}
			for _, rep := range k.reports(r) {
				if rep.Verdict != sweep.Unverified || rep.Host.Inspection != "none" {
					t.Errorf("verdict %s, inspection %s", rep.Verdict, rep.Host.Inspection)
				}
			}
			k.must("down", "m")
			k.untouched(stranger)
			if r := k.in(noProcfs, "sweep", "m"); r.code != 4 {
				t.Errorf("a sweep that saw nothing: %v", r)
			}
			if s := k.stateOf("m/llm"); s != tasks.Stopped {
				t.Errorf("in the end the task is %s", s)
			}
		})
	}
}

// TestVerbsWithoutProcfs: each verb that needs a view says that there is none, in
// those words, and does nothing.
func TestVerbsWithoutProcfs(t *testing.T) {
	t.Parallel()
	k := open(t)
	needRoot(t)
	k.recipe(sleepers)
	k.must("up")
	for verb, c := range map[string]struct {
		code  int
		words string
	}{
		"up --name other":  {4, "hob: no procfs is mounted on /proc"},
		"run --name other": {4, "hob: no procfs is mounted on /proc"},
		"restart m":        {4, "hob: no procfs is mounted on /proc"},
		"reap":             {4, "hob: no procfs is mounted on /proc"},
		"down m":           {4, "no process of it can be told from here"},
		"sweep m":          {4, "no process of it can be told from here"},
		"ps":               {4, "boot id cannot be read"},
		"wait m":           {4, "boot id cannot be read"},
		"doctor":           {1, "no procfs on /proc: nothing can be looked at"},
	} {
		r := k.in(noProcfs, strings.Fields(verb)...)
		if r.code != c.code || !strings.Contains(r.out+r.err, c.words) {
			t.Errorf("hob %s, want exit %d and %q: %v", verb, c.code, c.words, r)
		}
	}
	if s := k.stateOf("m/llm"); s != tasks.Ready {
		t.Errorf("the task is %s", s)
	}
	k.must("down", "m")
}

// TestFromAnotherPIDNamespace: a hob that can verify nothing changes nothing.
func TestFromAnotherPIDNamespace(t *testing.T) {
	t.Parallel()
	k := open(t)
	needRoot(t)
	k.recipe(sleepers)
	k.must("up")
	for _, args := range [][]string{{"down", "m"}, {"down", "--all", "--json"}, {"sweep"}, {"reap"}, {"down", "--dry-run", "m"}} {
		cmd := exec.Command("unshare", append([]string{"--pid", "--fork", "--mount-proc", k.bin}, args...)...)
		cmd.Dir, cmd.Env = k.dir, k.env
		r := run(t, cmd)
		if r.code != 4 || !strings.Contains(r.out+r.err, "pid namespace") {
			t.Errorf("hob %v: %v", args, r)
		}
		if s := k.stateOf("m/llm"); s != tasks.Ready {
			t.Errorf("after hob %v the task is %s", args, s)
		}
	}
	k.must("down", "m")
}

// TestASilentTmuxServer: a server that is stopped is said to be, and how to wake it;
// the task is ended all the same, and its pane by the next stop.
func TestASilentTmuxServer(t *testing.T) {
	t.Parallel()
	k := open(t)
	k.recipe(sleepers)
	k.must("up")
	server := *k.run("m").Tmux.Server
	k.signal(server, syscall.SIGSTOP)
	k.saysItIsStopped(server, k.hob("down", "m"))
	// What it stands in the way of does not hide it.
	k.saysItIsStopped(server, k.hob("up"))
	k.saysItIsStopped(server, k.hob("rm", "m"))
	if r := k.hob("doctor"); !strings.Contains(r.out, fmt.Sprintf("kill -CONT %d", server.PID)) {
		t.Errorf("hob doctor: %v", r)
	}
	k.signal(server, syscall.SIGCONT)
	if rep, ok := k.report("m/llm"); !ok || rep.Verdict != sweep.Clean {
		t.Errorf("the report: %+v", rep)
	}
	k.must("down", "--all")
}

func (k *kitchen) saysItIsStopped(server identity.Ref, r result) {
	k.t.Helper()
	if r.code != 1 || !strings.Contains(r.err, "does not answer: nothing within 5s") ||
		!strings.Contains(r.err, fmt.Sprintf("the tmux server, process %d, is stopped (T)", server.PID)) ||
		!strings.Contains(r.err, fmt.Sprintf("hint: kill -CONT %d lets it go on", server.PID)) {
		k.t.Errorf("%v", r)
	}
}

// TestWorkerOfAnotherUser: a worker that hob may not signal is a survivor that is
// named with its user, until somebody who may has ended it.
func TestWorkerOfAnotherUser(t *testing.T) {
	t.Parallel()
	k := openNobody(t)
	worker := filepath.Join(hobs.dir, "worker")
	if out, err := exec.Command("gcc", "-O1", "-Wall", "-o", worker, "testdata/worker.c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	k.check(os.Chmod(worker, 0o755|fs.ModeSetuid))
	k.recipe(fmt.Sprintf("name: m\nservers:\n  llm:\n    command: [sh, -c, '%s @D & exec sleep 86441']\n    stop: {grace: 500ms, term_grace: 500ms}\n", worker))
	k.must("up")
	pin := k.pin("worker")
	r := k.hob("down", "--json", "m")
	m, ok := memberOf(k.reports(r)[0], pin)
	if r.code != 3 || !ok || m.Fate != sweep.Survived || !strings.Contains(m.Note, "not permitted") || !strings.Contains(m.Note, "daemon") {
		t.Errorf("exit %d, worker %+v\n%s", r.code, m, r.err)
	}
	if !k.alive("worker") {
		t.Error("the worker was ended by somebody who may not")
	}
	k.endPins([]string{"worker"})
	k.must("down", "m")
	if s := k.stateOf("m/llm"); s != tasks.Stopped {
		t.Errorf("in the end the task is %s", s)
	}
}

// TestARecordThatProvesNothing: what a record names by a number alone, or by a
// number that is a stranger's now, is left alone.
func TestARecordThatProvesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		forge func(ref map[string]any, stranger int)
		code  int
		fate  sweep.Fate
	}{
		"a stranger's number":   {func(ref map[string]any, pid int) { ref["pid"] = pid }, 0, sweep.ForeignFate},
		"a number alone":        {func(ref map[string]any, pid int) { ref["pid"], ref["pidfs"], ref["start"] = pid, nil, "" }, 4, sweep.Unverifiable},
		"another pid namespace": {func(ref map[string]any, _ int) { ref["pidns"] = "4026530000" }, 4, sweep.Unverifiable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := open(t)
			k.recipe(sleepers)
			k.must("up")
			k.until("the keeper's first look", func() bool {
				_, err := k.task("m/llm").ReadCapture()
				return err == nil
			})
			k.killAll("m/llm")
			stranger := k.stranger("with the command's number", exec.Command("sleep", "86442"))
			pid := stranger.pin.Ref().PID
			k.forge("m/llm", "keeper.json", func(rec map[string]any) { c.forge(rec["command"].(map[string]any), pid) })
			k.forge("m/llm", "capture.json", func(rec map[string]any) {
				for _, m := range rec["members"].([]any) {
					c.forge(m.(map[string]any)["ref"].(map[string]any), pid)
				}
			})
			r := k.hob("down", "--json", "m")
			fates := map[sweep.Fate]int{}
			for _, m := range k.reports(r)[0].Members {
				fates[m.Fate]++
			}
			if r.code != c.code || fates[c.fate] == 0 {
				t.Errorf("exit %d, fates %v\n%v", r.code, fates, r)
			}
			k.untouched(stranger)
		})
	}
}

// killAll ends a task and its keeper the hard way.
func (k *kitchen) killAll(name string) {
	k.t.Helper()
	rec, err := k.task(name).ReadKeeper()
	k.check(err)
	k.signal(rec.Keeper, syscall.SIGKILL)
	run, _, _ := strings.Cut(name, "/")
	server := k.run(run).Tmux.Server.PID
	k.until("all to end", func() bool {
		left := 0
		for _, p := range k.marked() {
			if p.PID == server {
				continue
			}
			left++
			if pin, err := k.host.Open(p.PID); err == nil {
				_ = pin.Signal(syscall.SIGKILL)
				pin.Close()
			}
		}
		return left == 0
	})
}

// forge changes a record by hand.
func (k *kitchen) forge(name, file string, change func(map[string]any)) {
	k.t.Helper()
	path := filepath.Join(k.task(name).Path, file)
	text, err := os.ReadFile(path)
	k.check(err)
	var rec map[string]any
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber() // a pidfd's inode has 64 bits
	k.check(dec.Decode(&rec))
	change(rec)
	text, err = json.Marshal(rec)
	k.check(err)
	k.check(os.WriteFile(path, text, 0o600))
}
