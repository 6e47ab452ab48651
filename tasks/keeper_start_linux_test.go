package tasks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"hob/sweep"
)

func TestWrongRecordsStartNothing(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(g *rig)
		code    int
	}{
		"another nonce": {func(g *rig) { g.task(Task{State: Starting, Nonce: "other"}) }, keeperRefused},
		"no nonce":      {func(g *rig) { g.spec.Nonce = ""; g.task(Task{State: Starting}) }, keeperRefused},
		"already up":    {func(g *rig) { g.task(Task{State: Up, Nonce: "nonce-1"}) }, keeperRefused},
		"stopped":       {func(g *rig) { g.task(Task{State: Stopped, Nonce: "nonce-1"}) }, keeperRefused},
		"a second keeper": {func(g *rig) {
			g.task(Task{State: Starting, Nonce: "nonce-1"})
			_ = g.dir.WriteKeeper(Keeper{Nonce: "nonce-1"})
		}, keeperRefused},
		"no task.json": {func(g *rig) {}, keeperUnverified},
		"torn task.json": {func(g *rig) {
			_ = os.WriteFile(g.dir.file("task.json"), []byte("{"), 0o600)
		}, keeperUnverified},
		"contained without owner": {func(g *rig) {
			g.spec.Lifetime = Contained
			g.task(Task{State: Starting, Nonce: "nonce-1"})
		}, keeperRefused},
		"owner not proven": {func(g *rig) {
			g.spec.Lifetime = Contained
			ref := testRef(os.Getpid())
			g.spec.Owner = &ref
			g.task(Task{State: Starting, Nonce: "nonce-1"})
		}, keeperRefused},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, sweep.Server).sh(`echo x >started; sleep 300`)
			c.prepare(g)
			if err := g.dir.WriteSpec(g.spec); err != nil {
				t.Fatal(err)
			}
			g.launch()
			if code := g.code(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if _, err := os.Stat(filepath.Join(g.spec.Dir, "started")); err == nil {
				t.Error("the command was started")
			}
			g.until("the pane says why", func() bool { return strings.Contains(g.screen.String(), "hob: ") })
		})
	}
}

func (g *rig) task(t Task) {
	g.t.Helper()
	t.Run, t.Task, t.Kind = "chat", "llm", g.spec.Kind
	if err := g.dir.WriteTask(t); err != nil {
		g.t.Fatal(err)
	}
}

// TestAKeeperLooksAgain: a stop that began after the first look, and could not see
// a keeper that had not written itself down yet, is seen by the second.
func TestAKeeperLooksAgain(t *testing.T) {
	for name, after := range map[string]Task{
		"a stop has begun":    {State: Stopping, Nonce: "nonce-1"},
		"another has started": {State: Starting, Nonce: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, sweep.Server).sh(`sleep 300`)
			g.task(Task{State: Starting, Nonce: "nonce-1"})
			if err := g.dir.WriteSpec(g.spec); err != nil {
				t.Fatal(err)
			}
			k, err := newKeeper(g.h, g.dir.SpecPath(), "test")
			if err != nil {
				t.Fatal(err)
			}
			g.task(after)
			t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }) // open has made a keeper of this test
			var no *refusal
			if err := k.open(); !errors.As(err, &no) || no.code != keeperRefused {
				t.Errorf("opened: %v", err)
			}
		})
	}
}

func TestFailedStarts(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"plain": 0o600, "noshebang": 0o700, "badinterp": 0o700} {
		text := map[string]string{"plain": "x", "noshebang": "echo", "badinterp": "#!/no/such/interpreter\n"}[name]
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		dir  string
		code int
		says string
	}{
		{[]string{"no-such-command-of-hob"}, "", 127, "not found in PATH"},
		{[]string{"./nothing"}, "", 127, "nothing"},
		{[]string{filepath.Join(dir, "plain")}, "", 126, "not executable"},
		{[]string{dir}, "", 126, "is a folder"},
		{[]string{filepath.Join(dir, "noshebang")}, "", 126, "no #! line"},
		{[]string{filepath.Join(dir, "badinterp")}, "", 126, "interpreter"},
		{[]string{"true"}, "/no/such/folder", 126, "/no/such/folder"},
		{[]string{}, "", 127, "empty"},
	} {
		g := newRig(t, sweep.Server, c.args...)
		if c.dir != "" {
			g.spec.Dir = c.dir
		}
		g.start()
		if code := g.code(); code != c.code {
			t.Errorf("%q: exit code %d, want %d", c.args, code, c.code)
		}
		e := g.exit()
		if e.Code == nil || *e.Code != c.code || !strings.Contains(e.Error, c.says) {
			t.Errorf("%q: exit.json %+v does not say %q", c.args, e, c.says)
		}
		if !strings.Contains(g.log(), c.says) {
			t.Errorf("%q: the log says %q", c.args, g.log())
		}
		g.until("the pane says "+c.says, func() bool { return strings.Contains(g.screen.String(), c.says) })
		if k := g.keeper(); k.Command != nil || !k.Empty {
			t.Errorf("%q: keeper.json %+v", c.args, k)
		}
	}
}

// TestSecretsStandOnlyInTheSpec: in no argument list, no other record and no log of hob's.
func TestSecretsStandOnlyInTheSpec(t *testing.T) {
	t.Parallel()
	const secret = "hf_tHiSiStHeSeCrEt"
	g := newRig(t, sweep.Server).sh(stragglers + `test -n "$TOKEN" && echo has it; while :; do sleep 0.1; done`)
	g.spec.Env = append(g.spec.Env, "TOKEN="+secret)
	g.start().up()
	g.stragglers()
	g.untilLog("has it")
	for _, file := range []string{"cmdline", "environ"} {
		if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", g.cmd.Process.Pid, file)); err != nil || strings.Contains(string(data), secret) {
			t.Errorf("the keeper's %s: %q, %v", file, data, err)
		}
	}
	g.signal(syscall.SIGTERM)
	g.code()
	err := filepath.WalkDir(g.run.store.Home, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), secret) != (filepath.Base(path) == "spec.json") {
			t.Errorf("%s holds the secret, or lacks it", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestCommandStartsClean: whatever the keeper was started with, the command has
// default signals, no blocked ones, no descriptor but its terminal, and that
// one blocking. Signals 32 and 33 are the C library's own: its posix_spawn, by
// which make starts programs, leaves them ignored, and no program can tell.
func TestCommandStartsClean(t *testing.T) {
	// Not by a shell: dash empties its signal mask and resets what it likes.
	g := newRig(t, sweep.Job, "grep", "-E", "Sig(Blk|Ign)|flags", "/proc/self/status", "/proc/self/fdinfo/0")
	g.role = "tainted"
	g.start().code()
	for _, want := range []string{"SigBlk:\t0{16}", "SigIgn:\t0{7}[01][08]0{7}\r?\n", "flags:\t0100002"} { // O_RDWR, O_LARGEFILE
		if !regexp.MustCompile(want).MatchString(g.log()) {
			t.Errorf("no %q in %s", want, g.log())
		}
	}
	g = newRig(t, sweep.Job, "ls", "-l", "/proc/self/fd")
	g.role = "tainted"
	g.start().code()
	// The fourth is the one that ls reads the folder with.
	if log := g.log(); strings.Count(log, " -> ") != 4 || strings.Count(log, "-> /dev/pts/") != 3 {
		t.Errorf("descriptors: %s", log)
	}
}

func TestEnvironmentOfTheCommand(t *testing.T) {
	s := Spec{Run: "chat", Task: "llm", RunID: "id", Kind: sweep.Server, Dir: "/d", Env: []string{
		"A=1", "A=2", "TMUX=/user,1,2", "TMUX_PANE=%0", "TERM=xterm-kitty", "PWD=/x", "OLDPWD=/y", "HOB_RUN=old", "PATH=/bin", "junk",
	}}
	getenv := func(name string) string {
		return map[string]string{"TMUX": "/hob,1,2", "TMUX_PANE": "%7", "TERM": "tmux-256color"}[name]
	}
	want := "A=2 PATH=/bin HOB_RUN=chat HOB_TASK=llm HOB_RUN_ID=id HOB_HOME=/home SPT_NOENV=1 PWD=/d TERM=tmux-256color"
	if got := strings.Join(environment(s, "/home", getenv), " "); got != want {
		t.Errorf("server:\n%s\nwant\n%s", got, want)
	}
	s.Kind = sweep.Shell
	if got := strings.Join(environment(s, "/home", getenv), " "); got != want+" TMUX=/hob,1,2 TMUX_PANE=%7" {
		t.Errorf("shell:\n%s", got)
	}
	if got := strings.Join(environment(s, "/home", func(string) string { return "" }), " "); !strings.HasSuffix(got, "TERM=screen") {
		t.Errorf("outside tmux:\n%s", got)
	}
}
