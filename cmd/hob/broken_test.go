package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hob/identity"
	"hob/sweep"
	"hob/tasks"
)

// brokenHome is a state folder with a run whose task's records are to be broken, beside one that
// is whole.
type brokenHome struct {
	t    *testing.T
	home string
	dead identity.Ref // of a process that has ended
	dir  string       // where the recipe is
}

func newBrokenHome(t *testing.T) *brokenHome {
	t.Helper()
	short, err := os.MkdirTemp("", "hobr")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	b := &brokenHome{t: t, home: filepath.Join(short, "home"), dir: short}
	recipe := "name: bad\nservers:\n  a: {command: [sleep, '1']}\n  c: {command: [sleep, '1']}\n"
	if err := os.WriteFile(filepath.Join(short, "hob.yaml"), []byte(recipe), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := identity.Local()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sleep", "1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	pin, err := h.Open(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	b.dead = pin.Ref()
	_ = pin.Close()
	_ = c.Process.Kill()
	_ = c.Wait()
	return b
}

// fill makes the state folder anew, and returns the folder of bad/a, which is in
// state s.
func (b *brokenHome) fill(s tasks.State) string {
	b.t.Helper()
	whole := b.home + "-" + string(s)
	if _, err := os.Stat(whole); err != nil {
		b.write(s)
		if err := os.Rename(b.home, whole); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := errors.Join(os.RemoveAll(b.home), os.CopyFS(b.home, os.DirFS(whole))); err != nil {
		b.t.Fatal(err)
	}
	return filepath.Join(b.home, "runs", "bad", "tasks", "a")
}

// write writes the records of both runs.
func (b *brokenHome) write(s tasks.State) {
	b.t.Helper()
	if err := os.RemoveAll(b.home); err != nil {
		b.t.Fatal(err)
	}
	store, err := tasks.OpenStore(b.home)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, name := range []string{"bad", "good"} {
		r := store.Run(name)
		err := errors.Join(r.Create(),
			r.Write(tasks.Run{Name: name, ID: "feedface", Tasks: []string{"a", "c"}, Recipe: filepath.Join(b.dir, "hob.yaml"), Dir: b.dir, Tmux: tasks.TmuxServer{Socket: filepath.Join(b.dir, "hob", "s.sock")}}),
			r.Append(tasks.Event{At: time.Now(), Verb: "up", Task: "a", What: "started"}))
		for _, task := range []string{"a", "c"} {
			state := tasks.Stopped
			if name == "bad" && task == "a" {
				state = s
			}
			err = errors.Join(err, b.task(r.Task(task), state))
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *brokenHome) task(d *tasks.TaskDir, state tasks.State) error {
	now, code := time.Now(), 0
	member := sweep.Member{Ref: b.dead, Args: []string{"sleep", "1000"}, Evidence: []sweep.Evidence{sweep.Captured}, SeenAt: now}
	return errors.Join(d.Create(),
		d.WriteTask(tasks.Task{Run: d.Run, Task: d.Name, Kind: sweep.Server, State: state, Nonce: "n", StartedAt: &now}),
		d.WriteSpec(tasks.Spec{Run: d.Run, Task: d.Name, Nonce: "n", Args: []string{"sleep", "1000"}, Dir: "/"}),
		writeKeeper(d, tasks.Keeper{Schema: tasks.Schema, Nonce: "n", Keeper: b.dead, Command: &b.dead, Empty: true}),
		d.WriteExit(tasks.Exit{Nonce: "n", Code: &code, At: now}),
		d.WriteStop(tasks.StopRequest{Nonce: "n", Reason: "down", At: now}),
		d.WriteCapture(sweep.Capture{Run: d.Run, Task: d.Name, Phase: "stop", Members: []sweep.Member{member}}, true),
		d.WriteReport(sweep.Report{Run: d.Run, Task: d.Name, Reason: "down", EndedAt: now, Verdict: sweep.Clean}),
		os.WriteFile(d.LogPath(), []byte("a line\n"), 0o600))
}

// writeKeeper writes what only a keeper does.
func writeKeeper(d *tasks.TaskDir, k tasks.Keeper) error {
	data, err := json.Marshal(k)
	return errors.Join(err, os.WriteFile(filepath.Join(d.Path, "keeper.json"), data, 0o600))
}

// hob runs a verb in this process.
func (b *brokenHome) hob(args ...string) (code int, out, errs string) {
	var stdout, stderr bytes.Buffer
	a := newApp()
	env := map[string]string{"HOB_HOME": b.home, "XDG_RUNTIME_DIR": b.dir, "HOME": b.dir, "PATH": os.Getenv("PATH")}
	a.getenv = func(name string) string { return env[name] }
	a.env = nil
	for name, value := range env {
		a.env = append(a.env, name+"="+value)
	}
	a.out, a.err, a.outTTY, a.errTTY, a.inTTY = &stdout, &stderr, false, false, false
	code = a.run(args)
	return code, stdout.String(), stderr.String()
}

// brokenVerbs are the verbs by the records that they need. Where one of those
// cannot be trusted the verb names it and exits 4.
var brokenVerbs = []struct {
	needs string // run, task … ; "*" is all that a look at a task needs
	args  []string
	rest  bool // it goes on with the rest, and says so
}{
	{"run *", []string{"ps"}, true},
	{"run *", []string{"ps", "--json"}, true},
	{"run *", []string{"why", "bad"}, false},
	{"run *", []string{"wait", "bad"}, false},
	{"run * capture", []string{"up", "RECIPE", "--dry-run"}, false},
	{"run *", []string{"reap"}, false},
	{"run report", []string{"report", "bad"}, false},
	{"run report", []string{"report", "--list"}, true},
	{"run", []string{"events"}, true},
	{"run", []string{"logs", "bad"}, false},
	{"run * capture spec", []string{"sweep"}, true},
	{"run * capture spec?", []string{"down", "bad"}, false},
	{"run * capture spec?", []string{"down", "--all"}, true},
	{"run * capture spec stop report", []string{"rm", "bad"}, false},
	{"run * capture spec?", []string{"restart", "bad"}, false},
	{"run * capture spec?", []string{"up", "RECIPE"}, false},
}

// needed reports whether a verb needs a record; what has a question mark only when
// the task's stop was cut.
func needed(needs, file string, cut bool) bool {
	for word := range strings.FieldsSeq(needs) {
		word, maybe := strings.CutSuffix(word, "?")
		look := word == "*" && (file == "task" || file == "keeper" || file == "exit")
		if (look || word == file) && (!maybe || cut) {
			return true
		}
	}
	return false
}

// TestBrokenRecords breaks each kind of record in each way, and calls each verb:
// the file is named and kept as it is, the verb does the rest and exits 4.
func TestBrokenRecords(t *testing.T) {
	ways := map[string]func(path string, whole []byte) error{
		"cut":   func(path string, whole []byte) error { return os.WriteFile(path, whole[:len(whole)/2], 0o600) },
		"empty": func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
		"zeros": func(path string, whole []byte) error { return os.WriteFile(path, make([]byte, len(whole)), 0o600) },
		"newer": func(path string, _ []byte) error { return os.WriteFile(path, []byte(`{"schema": 99}`), 0o600) },
		"foreign": func(path string, _ []byte) error {
			return os.WriteFile(path, []byte(`{"of": "another program"}`), 0o600)
		},
		"bare":     func(path string, _ []byte) error { return os.WriteFile(path, []byte(`{"schema": 1}`), 0o600) },
		"a folder": func(path string, _ []byte) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"a link":   func(path string, _ []byte) error { return errors.Join(os.Remove(path), os.Symlink("/dev/null", path)) },
	}
	b := newBrokenHome(t)
	for _, state := range []tasks.State{tasks.Up, tasks.Stopping} {
		for _, file := range []string{"run", "task", "spec", "keeper", "capture", "exit", "stop", "report"} {
			for way, breaks := range ways {
				t.Run(fmt.Sprint(state, " ", file, " ", way), func(t *testing.T) {
					path := filepath.Join(b.fill(state), file+".json")
					if file == "run" {
						path = filepath.Join(b.home, "runs", "bad", "run.json")
					}
					whole, err := os.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					if err := breaks(path, whole); err != nil {
						t.Fatal(err)
					}
					b.verbs(t, path, file, state == tasks.Stopping)
				})
			}
		}
	}
}

// verbs calls every verb over a file that was broken.
func (b *brokenHome) verbs(t *testing.T, path, file string, cut bool) {
	broken := content(path)
	for _, v := range brokenVerbs {
		args := slices.Clone(v.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "RECIPE", filepath.Join(b.dir, "hob.yaml"))
		}
		need := needed(v.needs, file, cut)
		switch verb := args[0]; {
		case !need && (verb == "down" || verb == "sweep" || verb == "rm" || verb == "restart" || verb == "up" && len(args) == 2):
			continue // it may do what it is to do
		}
		code, out, errs := b.hob(args...)
		if now := content(path); now != broken {
			t.Errorf("%s: the file was %q and is %q", v.args, broken, now)
		}
		if need && (code != exitUnverified || !strings.Contains(out+errs, path)) {
			t.Errorf("%s: exit code %d, and it says:\n%s%s", v.args, code, out, errs)
		}
		if need && !strings.Contains(errs, "hint: ") {
			t.Errorf("%s: nothing that a person can do:\n%s", v.args, errs)
		}
		if v.rest && !strings.Contains(out, "good") {
			t.Errorf("%s: nothing of the rest:\n%s%s", v.args, out, errs)
		}
	}
}

// content is what stands at a path, whatever that is.
func content(path string) string {
	fi, err := os.Lstat(path)
	if err != nil {
		return err.Error()
	}
	data, _ := os.ReadFile(path) // a folder has none
	return fi.Mode().String() + " " + string(data)
}
