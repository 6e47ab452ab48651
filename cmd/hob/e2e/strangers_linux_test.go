package e2e

import (
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hob/identity"
	"hob/identity/porttest"
	"hob/sweep"
	"hob/tasks"
)

// TestStrangersAreNamed: each that looks alike is named with why, whose, since
// when and how it was started; none is touched.
func TestStrangersAreNamed(t *testing.T) {
	t.Parallel()
	k, other := open(t), open(t)
	port := freePort(t)
	command := []string{python3, k.testdata("stall.py"), k.d(), strconv.Itoa(port)}
	k.recipe(fmt.Sprintf("name: m\nservers:\n  llm: {command: [%s], port: %d}\n", strings.Join(command, ", "), port))
	k.must("up")
	k.check(os.WriteFile(k.d()+"/close", nil, 0o600))
	k.until("the port to be free", func() bool { _, err := os.Stat(k.d() + "/closed"); return err == nil })
	other.recipe(fmt.Sprintf("name: m\nservers:\n  llm: {command: [%s]}\n", strings.Join(command, ", ")))
	other.must("up")

	same := k.stranger("with the same command line", exec.Command(command[0], command[1:]...))
	copied := exec.Command("sleep", "86412")
	copied.Env = append(slices.Clone(k.env), "HOB_RUN=m", "HOB_TASK=llm", "HOB_RUN_ID="+k.run("m").ID)
	marked := k.stranger("with a copied marker", copied)
	listener := k.stranger("on the task's port", exec.Command(python3, "-m", "http.server", "--bind", "127.0.0.1", strconv.Itoa(port)))
	k.until("the port to be taken", func() bool {
		c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	folder := exec.Command("sleep", "86413")
	folder.Dir = k.dir
	inside := k.stranger("in the same folder", folder)

	theirs := other.commandOf("m/llm")
	rep := k.reports(k.must("down", "--json", "m"))[0]
	want := map[int][]string{
		same.pin.Ref().PID:     {"command"},
		marked.pin.Ref().PID:   {"marker"},
		listener.pin.Ref().PID: {fmt.Sprintf("port %d", port)},
		theirs.PID:             {"command"},
	}
	for _, l := range rep.Lookalikes {
		if !slices.Equal(l.Why, want[l.PID]) {
			t.Errorf("%+v, want %v", l, want[l.PID])
		}
		if l.User == "" || l.StartedAt == nil || len(l.Args) == 0 || !strings.Contains(l.Note, "in /") {
			t.Errorf("not described: %+v", l)
		}
		if l.PID == theirs.PID && !strings.Contains(l.Note, "m/llm") {
			t.Errorf("it is not said whose it is: %+v", l)
		}
		delete(want, l.PID)
	}
	if len(want) > 0 {
		t.Errorf("not named: %v", want)
	}
	if p := rep.Ports[0]; p.State != "held" || p.PID == nil || *p.PID != listener.pin.Ref().PID {
		t.Errorf("the port: %+v", p)
	}
	if rep.Verdict != sweep.Clean {
		t.Errorf("look-alikes change no verdict: %s", rep.Verdict)
	}
	k.untouched(same, marked, listener, inside)
	if other.commandOf("m/llm").PID != theirs.PID || other.stateOf("m/llm") != tasks.Ready {
		t.Errorf("the other home's task is %s", other.stateOf("m/llm"))
	}
	other.must("down", "m")
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := porttest.Free()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// commandOf is a task's command, which lives.
func (k *kitchen) commandOf(name string) identity.Ref {
	k.t.Helper()
	rec, err := k.task(name).ReadKeeper()
	k.check(err)
	pin, f := k.host.Verify(*rec.Command)
	if pin == nil {
		k.t.Fatalf("the command of %s: %s %s", name, f.Verdict, f.Reason)
	}
	defer pin.Close()
	return pin.Ref()
}

// TestTheUsersOwnTmux: hob called from a pane of a person's own tmux works on its
// own server, and leaves theirs as it is, also with a session of the run's name.
func TestTheUsersOwnTmux(t *testing.T) {
	t.Parallel()
	k := open(t)
	k.recipe("name: m\nservers:\n  llm: {command: [sleep, '86420']}\n")
	k.check(os.Mkdir(k.path("tmux"), 0o700))
	k.env = append(k.env, "TMUX_TMPDIR="+k.path("tmux"))
	theirs := k.person("new-session", "-d", "-s", "m", "-P", "-F", "#{socket_path},#{pid},0", "sleep 86421")
	k.person("new-session", "-d", "-s", "m-other", "sleep 86422")
	before := k.person("list-panes", "-a", "-F", "#{session_name} #{pane_id} #{pane_pid} #{pane_dead}")
	k.t.Cleanup(func() {
		k.person("kill-server")
		k.until("it to end", func() bool { return len(k.marked()) == 0 })
	})

	env := []string{"TMUX=" + strings.TrimSpace(theirs), "TMUX_PANE=%0"}
	for _, args := range [][]string{{"up"}, {"restart", "m"}, {"down", "--all"}, {"sweep"}} {
		if r := k.hobWith(env, args...); r.code != 0 {
			t.Errorf("hob %v: %v", args, r)
		}
	}
	if after := k.person("list-panes", "-a", "-F", "#{session_name} #{pane_id} #{pane_pid} #{pane_dead}"); after != before {
		t.Errorf("the person's panes were\n%sand are\n%s", before, after)
	}
}

// person runs tmux as a person does, on the default socket.
func (k *kitchen) person(args ...string) string {
	k.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-f", "/dev/null"}, args...)...)
	cmd.Env = k.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		k.t.Errorf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// TestAnotherHomeBelow: a job, or a person in a shell, starts another hob home. Its
// tmux server and keeper are below the task's keeper, and are a boundary.
func TestAnotherHomeBelow(t *testing.T) {
	for kind, c := range map[string]struct {
		recipe string
		code   int
		fate   sweep.Fate
	}{
		"job": {"name: m\njobs:\n  task: {command: [sh, -c, 'HOB_HOME=@K/inner @H up @K/inner.yaml; sleep 86430'], stop: {grace: 1s}}\n",
			3, sweep.Survived},
		"shell": {"name: m\nshells:\n  task: {command: [sh]}\n", 0, sweep.Spared},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			k := open(t)
			k.check(os.WriteFile(k.path("inner.yaml"), []byte("name: inner\nservers:\n  llm: {command: [sleep, '86431']}\n"), 0o600))
			k.recipe(strings.ReplaceAll(c.recipe, "@H", k.bin))
			k.must("up")
			if kind == "shell" {
				k.tmux("m", "send-keys", "-t", "=m:task", "HOB_HOME="+k.path("inner")+" "+k.bin+" up "+k.path("inner.yaml"), "Enter")
			}
			inner := *k
			inner.env = append(slices.Clone(k.env), "HOB_HOME="+k.path("inner"))
			inner.home = k.path("inner")
			inner.until("the inner task to be up", func() bool {
				rec, err := inner.task("inner/llm").ReadKeeper()
				return err == nil && rec.Ready
			})
			command := inner.commandOf("inner/llm")

			r := k.hob("down", "--json", "m")
			if r.code != c.code {
				t.Errorf("hob down: %v", r)
			}
			fates := map[sweep.Fate]int{}
			for _, m := range k.reports(r)[0].Members {
				if strings.Contains(m.Note, "left alone") {
					fates[m.Fate]++
				}
			}
			if len(fates) != 1 || fates[c.fate] < 3 { // the server, the keeper, the command
				t.Errorf("left alone: %v\n%s", fates, r)
			}
			if inner.commandOf("inner/llm") != command && inner.stateOf("inner/llm") != tasks.Ready {
				t.Errorf("the inner task is %s", inner.stateOf("inner/llm"))
			}
			inner.must("down", "inner")
			k.must("down", "--all")
			k.must("sweep")
			if s := k.stateOf("m/task"); s != tasks.Stopped {
				t.Errorf("in the end the task is %s", s)
			}
		})
	}
}

// TestATmuxServerBelow: the same with a plain tmux server, as a person starts one.
func TestATmuxServerBelow(t *testing.T) {
	const start = "tmux -S @D/nest -f /dev/null new-session -d 'sleep 86450'"
	for kind, c := range map[string]struct {
		recipe string
		code   int
		fate   sweep.Fate
	}{
		"server": {"name: m\nservers:\n  task:\n    command: [sh, -c, \"" + start + "; sleep 86451\"]\n    stop: {grace: 1s}\n", 3, sweep.Survived},
		"shell":  {"name: m\nshells:\n  task: {command: [sh, -c, \"" + start + "; sleep 86451\"]}\n", 0, sweep.Spared},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			k := open(t)
			k.recipe(c.recipe)
			k.must("up")
			nest := func(args ...string) string {
				cmd := exec.Command("tmux", append([]string{"-S", k.d() + "/nest"}, args...)...)
				cmd.Env = k.env
				out, _ := cmd.Output() // it may not be there yet, or any more
				return strings.TrimSpace(string(out))
			}
			k.until("the nested server", func() bool { return nest("display-message", "-p", "#{pid}") != "" })
			inside := nest("list-panes", "-a", "-F", "#{pane_pid}")
			r := k.hob("down", "--json", "m")
			if r.code != c.code {
				t.Errorf("hob down: %v", r)
			}
			fates := map[sweep.Fate]int{}
			for _, m := range k.reports(r)[0].Members {
				fates[m.Fate]++
			}
			if fates[c.fate] != 2 { // the server and the sleep in its pane
				t.Errorf("fates: %v\n%s", fates, r)
			}
			if now := nest("list-panes", "-a", "-F", "#{pane_pid}"); now != inside {
				t.Errorf("the pane of the nested server was %s and is %q", inside, now)
			}
			for _, pid := range []string{nest("display-message", "-p", "#{pid}"), inside} {
				n, err := strconv.Atoi(pid)
				k.check(err)
				k.pins[pid], err = k.host.Open(n)
				k.check(err)
			}
			nest("kill-server") // it answers nobody before it has ended, and what is in it ends after that
			k.until("all of it to end", func() bool {
				return !slices.ContainsFunc(slices.Collect(maps.Keys(k.pins)), k.alive)
			})
			k.must("down", "--all")
		})
	}
}
