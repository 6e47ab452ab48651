package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"hob/identity"
	"hob/sweep"
	"hob/tasks"
)

// TestAdopt: a foreground server is adopted, shown, stopped and reported, with all
// that it left behind; shell, background job, a stranger with the same command line
// and the tmux server are untouched.
func TestAdopt(t *testing.T) {
	t.Parallel()
	k, p := byHand(t, hobs.plain)
	before := p.all()
	r := k.must("adopt", "-S", p.socket, "%0", "--name", "m/stew", "--dry-run", "--json")
	if _, err := os.Stat(k.path("home/runs/m")); err == nil {
		t.Error("a dry run has written")
	}
	var list []tasks.Adopted
	k.check(json.Unmarshal([]byte(r.out), &list))
	if a := list[0]; a.PID != k.truth["main"].Ref().PID || len(a.Background) != 1 || a.Background[0].PID != k.truth["behind"].Ref().PID {
		t.Errorf("%+v", a)
	}
	k.must("adopt", "-S", p.socket, "%0", "--name", "m/stew")
	if again := k.hob("adopt", "-S", p.socket, "%0", "--name", "n"); again.code != 2 || !strings.Contains(again.err, "is of m/stew already") {
		t.Errorf("twice: %v", again)
	}
	if got := k.stateOf("m/stew"); got != tasks.Up {
		t.Errorf("it is %s", got)
	}
	for verb, want := range map[string]string{"logs": "hob has no log of it", "restart": "was adopted", "rm m": "lets it run on"} {
		if r := k.hob(strings.Fields(verb)...); r.code == 0 || !strings.Contains(r.err, want) {
			t.Errorf("%s: %v", verb, r)
		}
	}
	k.must("reap")
	rep := k.reports(k.must("down", "m", "--json"))[0]
	fates := map[int]sweep.Fate{}
	for _, m := range rep.Members {
		fates[m.PID] = m.Fate
	}
	for _, name := range stew {
		want := rep.Verdict == sweep.Clean && k.dead(name)
		if name == "deaf" { // it had left the tree before: it can only be named
			want = !k.dead(name)
		} else if fates[k.truth[name].Ref().PID] == "" {
			t.Errorf("%s is not reported", name)
		}
		if !want {
			t.Errorf("%s: %+v", name, rep)
		}
	}
	if k.dead("behind") {
		t.Error("the background job was ended")
	}
	if rep.Verdict != sweep.Clean || len(rep.Lookalikes) == 0 {
		t.Errorf("%+v", rep)
	}
	p.unchanged(before)
	k.must("rm", "m")
}

// TestAdoptPipeline: the other end of a pipeline is of the job too, though it is
// below the shell and bears the person's tmux in its environment; one that has left
// for a session of its own, while it is captured, ends with it.
func TestAdoptPipeline(t *testing.T) {
	t.Parallel()
	k := open(t)
	p := k.guest()
	p.types("sh -c '" + k.note("front") + "; exec sleep 616' | sh -c 'trap \"\" HUP; setsid sh -c \"" + k.note("away") + "; exec sleep 618\" & " + k.note("back") + "; read -r _; exec sleep 617'")
	for _, name := range []string{"front", "back", "away"} {
		p.keep(name)
	}
	before := p.all()
	k.must("adopt", "-S", p.socket, "%0", "--name", "m/pipe")
	r := k.must("down", "m")
	for _, name := range []string{"front", "back", "away"} {
		if !k.dead(name) {
			t.Errorf("%s lives: %v", name, r)
		}
	}
	p.unchanged(before)
}

// TestAdoptCapturedAgain: each verb that acts captures the tree again, so that what
// was below it then is ended although its parent has ended since.
func TestAdoptCapturedAgain(t *testing.T) {
	t.Parallel()
	k := open(t)
	p := k.guest()
	k.check(unix.Mkfifo(k.d()+"/go", 0o600))
	k.check(unix.Mkfifo(k.d()+"/never", 0o600))
	late := fmt.Sprintf("#!/bin/sh\n%s\nexec sleep 620\n", k.note("late"))
	mid := fmt.Sprintf("%s\nsetsid sh %s/late.sh &\nread -r _ <%s/never\n", k.note("mid"), k.dir, k.d())
	main := fmt.Sprintf("%s\nread -r _ <%s/go\nsh %s/mid.sh &\nread -r _ <%s/never\n", k.note("main"), k.d(), k.dir, k.d())
	for name, text := range map[string]string{"late.sh": late, "mid.sh": mid, "main.sh": main} {
		k.check(os.WriteFile(k.path(name), []byte(text), 0o600))
	}
	p.types("sh " + k.path("main.sh"))
	p.keep("main")
	k.must("adopt", "-S", p.socket, "%0", "--name", "m/main")
	k.check(os.WriteFile(k.d()+"/go", []byte("go\n"), 0o600))
	p.keep("mid")
	p.keep("late")
	k.must("reap")
	k.check(k.truth["mid"].Signal(syscall.SIGKILL))
	k.until("mid to end", func() bool { return k.dead("mid") })
	if r := k.must("down", "m"); !k.dead("late") || !k.dead("main") {
		t.Errorf("not ended: %v", r)
	}
}

// dead reports whether a process of the person's has ended.
func (k *kitchen) dead(name string) bool { return k.truth[name].Verify().Verdict == identity.Gone }

// TestAdoptCut: a hob that is killed in the middle of adopting, or of stopping what
// was adopted, leaves what the next one finishes.
func TestAdoptCut(t *testing.T) {
	bin, err := cuttable()
	if err != nil {
		t.Fatal(err)
	}
	adopt := func(p *guest) []string { return []string{"adopt", "-S", p.socket, "%0", "--name", "m/stew"} }
	scenes := map[string]func(k *kitchen, p *guest, told string){
		"adopt": func(k *kitchen, p *guest, told string) { k.hobWith([]string{"HOB_CUT=" + told}, adopt(p)...) },
		"down": func(k *kitchen, p *guest, told string) {
			k.must(adopt(p)...)
			k.hobWith([]string{"HOB_CUT=" + told}, "down", "m")
		},
	}
	for name, play := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, p := byHand(t, bin)
			trace := k.path("trace")
			play(k, p, "trace="+trace)
			k.must("down", "--all")
			for i, point := range firstTurns(k, trace) {
				if os.Getenv("HOB_SOAK") == "" && name == "down" && i%3 > 0 {
					continue // the stop is cut at each of its points by TestEveryCut
				}
				t.Run(point, func(t *testing.T) {
					t.Parallel()
					k, p := byHand(t, bin)
					before := p.all()
					play(k, p, "cut="+point)
					if k.dead("main") && name == "adopt" {
						t.Fatal("adopting has ended it")
					}
					if r := k.hob(adopt(p)...); r.code != 0 && name == "adopt" && !strings.Contains(r.err, "is of m/stew already") {
						t.Errorf("again: %v", r)
					}
					r := k.must("down", "--all")
					k.settled(r)
					for _, name := range []string{"main", "child", "daemon"} {
						if !k.dead(name) {
							t.Errorf("%s lives", name)
						}
					}
					if k.dead("behind") || k.dead("deaf") {
						t.Error("the background job, or what had left the tree, was ended")
					}
					p.unchanged(before)
				})
			}
		})
	}
}

// firstTurns are the points that a trace has, each once.
func firstTurns(k *kitchen, trace string) []string {
	k.t.Helper()
	text, err := os.ReadFile(trace)
	k.check(err)
	var points []string
	for point := range strings.Lines(string(text)) {
		if point = strings.TrimSpace(point); !slices.Contains(points, point) {
			points = append(points, point)
		}
	}
	if len(points) < 10 {
		k.t.Fatalf("only %d points are passed: %q", len(points), points)
	}
	return points
}

// TestAdoptRestartedServer: the person's tmux server was restarted, and its ids
// repeat. The new pane is nobody's business of hob.
func TestAdoptRestartedServer(t *testing.T) {
	t.Parallel()
	k, p := byHand(t, hobs.plain)
	k.must("adopt", "-S", p.socket, "%0", "--name", "m/stew")
	p.tmux("kill-server")
	for _, name := range []string{"main"} {
		k.until(name+" to be hung up", func() bool { return k.dead(name) })
	}
	k.until("the old server to be gone", func() bool { return exec.Command("tmux", "-S", p.socket, "list-sessions").Run() != nil })
	p.start()
	p.types("sh -c '" + k.note("new") + "; exec sleep 615'")
	p.keep("new")
	before := p.all()
	if got := k.stateOf("m/stew"); got != tasks.Survivors && got != tasks.Lost {
		t.Errorf("it is %s", got)
	}
	k.must("down", "m")
	if k.dead("new") || !k.dead("daemon") || k.dead("deaf") {
		t.Error("the stop went wrong")
	}
	p.unchanged(before)
	k.must("adopt", "-S", p.socket, "%0", "--name", "m/stew") // the pane's new program, over the ended run
	k.must("down", "m")
	if !k.dead("new") {
		t.Error("the new one lives")
	}
	if old, err := filepath.Glob(k.path("home/archive/m-*")); err != nil || len(old) != 1 {
		t.Errorf("the first adoption is not in the archive: %v %v", old, err)
	}
}

// TestAdoptRefusals: what is not to be adopted, each with its code.
func TestAdoptRefusals(t *testing.T) {
	t.Parallel()
	k, p := byHand(t, hobs.plain)
	k.recipe("name: own\nservers: {llm: {command: [sleep, '86414']}}\n")
	k.must("up")
	own := k.run("own").Tmux.Socket
	other := open(t)
	other.recipe("name: o\nservers: {llm: {command: [sleep, '86415']}}\n")
	other.must("up")
	p.tmux("set-option", "-g", "remain-on-exit", "on")
	dead := p.pane("true")
	k.until("the pane to be dead", func() bool { return p.tmux("display-message", "-p", "-t", dead, "#{pane_dead}") == "1" })
	idle := p.pane("bash", "--rcfile", k.path("rc"), "-i")
	k.until("a prompt", func() bool { return strings.Contains(p.tmux("capture-pane", "-p", "-t", idle), "$") })
	nobody := p.pane("setpriv", "--reuid=65534", "--clear-groups", "sleep", "86416")
	before := p.all()
	for _, c := range []struct {
		what string
		args []string
		code int
		says string
	}{
		{"no id", []string{"0"}, 2, "is not the id of a tmux pane"},
		{"a name", []string{"-S", p.socket, "Mine"}, 2, "is not the id of a tmux pane"},
		{"two", []string{"%0", "%1"}, 2, "takes the id of one pane"},
		{"no such pane", []string{"-S", p.socket, "%99"}, 2, "has no pane %99"},
		{"no server", []string{"-S", k.path("none"), "%0"}, 2, "no tmux server listens"},
		{"hob's own server", []string{"-S", own, "%0"}, 2, "kept already"},
		{"another hob's pane", []string{"-S", other.run("o").Tmux.Socket, "%0"}, 5, "keeper of another hob"},
		{"a dead pane", []string{"-S", p.socket, dead}, 2, "is dead"},
		{"a shell at its prompt", []string{"-S", p.socket, idle}, 2, "nothing runs in its foreground"},
		{"a port of another's", []string{"-S", p.socket, "%0", "--port", listenerOf(k)}, 5, "is another process's"},
		{"a bad name", []string{"-S", p.socket, "%0", "--name", "../x"}, 2, "is not the name"},
		{"a run of a recipe", []string{"-S", p.socket, "%0", "--name", "own"}, 2, "was started from a recipe"},
	} {
		if r := k.hob(append([]string{"adopt"}, c.args...)...); r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%s: %v", c.what, r)
		}
	}
	if os.Geteuid() == 0 {
		k.must("adopt", "-S", p.socket, nobody, "--name", "root", "--dry-run") // root may end it
	}
	p.unchanged(before)
	if k.dead("main") || k.dead("behind") {
		t.Error("something was ended")
	}
	k.must("down", "--all")
	other.must("down", "--all")
}

// TestAdoptElsewhere: a tmux server in another pid namespace names numbers that are
// other processes' here.
func TestAdoptElsewhere(t *testing.T) {
	needRoot(t)
	t.Parallel()
	k := open(t)
	socket := k.path("u")
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "tmux", "-D", "-S", socket, "-f", "/dev/null")
	cmd.Env = k.env
	k.check(cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		k.until("the server to end", func() bool { return len(k.marked()) == 0 })
	})
	k.until("the server to listen", func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	k.check(exec.Command("tmux", "-S", socket, "new-session", "-d", "-s", "a", "--", "sleep", "86417").Run())
	if r := k.hob("adopt", "-S", socket, "%0"); r.code != 5 || !strings.Contains(r.err, "another container") {
		t.Errorf("%v", r)
	}
}

// TestAdoptOfAnotherUser: what another user's tmux server runs cannot be verified,
// whether its socket may be connected to or not.
func TestAdoptOfAnotherUser(t *testing.T) {
	t.Parallel()
	k := openNobody(t)
	p := k.guest()
	for _, mode := range []os.FileMode{0o600, 0o777} {
		k.check(os.Chmod(p.socket, mode))
		if r := k.hob("adopt", "-S", p.socket, "%0"); r.code != 4 || !strings.Contains(r.err, "could not be asked") && !strings.Contains(r.err, "another user") {
			t.Errorf("%#o: %v", mode, r)
		}
	}
}

// listenerOf is a port that a stranger listens on.
func listenerOf(k *kitchen) string {
	port := fmt.Sprint(freePort(k.t))
	k.stranger("on a port", exec.Command(python3, "-m", "http.server", "--bind", "127.0.0.1", port))
	k.until("the port to be taken", func() bool {
		return exec.Command("sh", "-c", "exec 3<>/dev/tcp/127.0.0.1/"+port).Run() == nil ||
			exec.Command("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/"+port).Run() == nil
	})
	return port
}
