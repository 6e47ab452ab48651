//go:build unix

package tmux_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"hob/tmux"
	"hob/tmux/tmuxtest"
)

// TestMain lets the test binary be the program in a pane: it writes down what it
// was started with.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "write-down" {
		os.Exit(writeDown(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

// started is what a pane's program saw.
type started struct {
	Args [][]byte // bytes: not all are UTF-8
	Env  []string
	Dir  string
}

func writeDown(path string, args []string) int {
	var s started
	for _, a := range args {
		s.Args = append(s.Args, []byte(a))
	}
	s.Env = os.Environ()
	s.Dir, _ = os.Getwd()
	b, _ := json.Marshal(s)
	if os.WriteFile(path+".part", b, 0o600) != nil || os.Rename(path+".part", path) != nil {
		return 1
	}
	return 0
}

// spawnWriter spawns the test binary and returns what it saw.
func spawnWriter(t *testing.T, s *tmux.Server, r tmux.Spawn, args ...string) (tmux.Pane, started) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seen")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r.Argv = append([]string{self, "write-down", path}, args...)
	pane, err := s.Spawn(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var seen started
	tmuxtest.WaitFor(t, "the pane's program writes down what it saw", func() bool {
		b, err := os.ReadFile(path)
		return err == nil && json.Unmarshal(b, &seen) == nil
	})
	return pane, seen
}

func TestSpawnSaysWhatItMade(t *testing.T) {
	s := tmuxtest.New(t)
	ctx := t.Context()
	if _, err := s.PID(ctx); !errors.Is(err, tmux.ErrNoServer) {
		t.Fatalf("PID without a server: %v", err)
	}
	first, err := s.Spawn(ctx, tmux.Spawn{Session: "chat", New: true, Window: "llm", Argv: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Spawn(ctx, tmux.Spawn{Session: first.Session, Window: "embed", Argv: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	third, err := s.Spawn(ctx, tmux.Spawn{Split: true, Window: second.Window, Argv: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	pid, err := s.PID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []tmux.Pane{first, second, third} {
		if p.ServerPID != pid || p.PID < 2 || !strings.HasPrefix(p.TTY, "/dev/") || p.Session != first.Session {
			t.Errorf("spawned %+v, server %d", p, pid)
		}
		got := tmuxtest.Find(t, s, p.ID)
		if got == nil || got.PID != p.PID || got.TTY != p.TTY || got.Window != p.Window || got.SessionName != "chat" || got.Dead {
			t.Errorf("spawned %+v, listed %+v", p, got)
		}
	}
	if second.Window == first.Window || third.Window != second.Window {
		t.Errorf("windows %s, %s, %s", first.Window, second.Window, third.Window)
	}
}

// Fault 32: what tmux would split, expand, run or take for a flag arrives as it is.
func TestArgumentsArriveAsTheyAre(t *testing.T) {
	s := tmuxtest.New(t)
	marker := filepath.Join(t.TempDir(), "ran")
	args := []string{
		";", "a;", `a\;`, `a\\;`, ";;", "; kill-server", "a;b", "\\",
		"#(touch " + marker + ")", "#{pid}", "##", "#", "#[fg=red]", "%Y-%m-%d", "%1", "$HOME", "~", "`id`", "$(id)",
		"-d", "--", "--port=1", "-", "", " ", "a b", `"`, `'`, `it's "quoted"`, "a\nb\n", "\t", "\r", "\x1b[31m", "\x7f",
		"naïve – 模型 🍳", "\xff\xfe", "{", "}", "{ a ; b }", "!", "*", "?", "=x", "@1", "&", "|", ">", "$9", ":", ".",
		strings.Repeat("x", 8000), "end;",
	}
	_, seen := spawnWriter(t, s, tmux.Spawn{Session: "args", New: true}, args...)
	for i, want := range args {
		if i >= len(seen.Args) || string(seen.Args[i]) != want {
			t.Fatalf("argument %d: sent %q, arrived %q", i, want, seen.Args[min(i, len(seen.Args)-1):])
		}
	}
	if len(seen.Args) != len(args) {
		t.Errorf("sent %d arguments, %d arrived", len(args), len(seen.Args))
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("tmux ran the #(…) of an argument")
	}
	if _, err := s.PID(t.Context()); err != nil {
		t.Errorf("the server is gone: %v", err)
	}
}

// Fault 32: 60 KB do not fit into one tmux command, and the error says so.
func TestTooLongArgumentsAreAnError(t *testing.T) {
	s := tmuxtest.New(t)
	tmuxtest.Sleeper(t, s, "live")
	_, err := s.Spawn(t.Context(), tmux.Spawn{Session: "long", New: true, Argv: []string{"echo", strings.Repeat("x", 60_000)}})
	var te *tmux.Error
	if !errors.As(err, &te) || !strings.Contains(te.Stderr, "too long") {
		t.Fatalf("60 KB of arguments: %v", err)
	}
	if strings.Contains(err.Error(), "xxx") {
		t.Error("the message repeats 60 KB of arguments")
	}
	if panes, err := s.Panes(t.Context()); err != nil || len(panes) != 1 {
		t.Errorf("panes after the refusal: %v, %v", panes, err)
	}
}

// A window may be called what a person likes.
func TestWindowNames(t *testing.T) {
	s := tmuxtest.New(t)
	first := tmuxtest.Sleeper(t, s, "names")
	for _, name := range []string{"main llm", "a.b:c", "-d", "模型 🍳", "x;", ";", "%Y", "=x", "$9", "a|b", "'q\"", "100%"} {
		p, err := s.Spawn(t.Context(), tmux.Spawn{Session: first.Session, Window: name, Argv: []string{"sleep", "600"}})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if got := tmuxtest.Find(t, s, p.ID); got == nil || got.WindowName != name {
			t.Errorf("%q became %+v", name, got)
		}
	}
}

// Fault 33: the first caller's environment does not stick to the server.
func TestNothingOfTheCallersEnvironmentSticks(t *testing.T) {
	s := tmuxtest.New(t)
	t.Setenv("CUDA_VISIBLE_DEVICES", "3")
	t.Setenv("HF_TOKEN", "secret-of-the-first")
	t.Setenv("SSH_AUTH_SOCK", "/nowhere")
	t.Setenv("TMUX", "/tmp/other,1,0")
	pane, seen := spawnWriter(t, s, tmux.Spawn{Session: "one", New: true})
	noneOf(t, s, seen.Env)

	// Nor does that of a terminal that attaches (tmux's update-environment).
	attach(t, s, pane, "SSH_AUTH_SOCK=/nowhere", "DISPLAY=:7", "HF_TOKEN=secret-of-the-second")
	tmuxtest.WaitFor(t, "the terminal is attached", func() bool {
		clients, err := s.Clients(t.Context())
		return err == nil && len(clients) == 1
	})
	_, seen = spawnWriter(t, s, tmux.Spawn{Session: pane.Session})
	noneOf(t, s, seen.Env)
}

// noneOf checks that a pane has nothing of its maker's environment.
func noneOf(t *testing.T, s *tmux.Server, env []string) {
	t.Helper()
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains([]string{"CUDA_VISIBLE_DEVICES", "HF_TOKEN", "SSH_AUTH_SOCK", "DISPLAY"}, name) {
			t.Errorf("the pane has the caller's %s", name)
		}
		if name == "TMUX" && !strings.Contains(kv, s.Socket) {
			t.Errorf("the pane's TMUX is not its server's: %s", kv)
		}
	}
}

// A folder's name is not expanded, and a missing one is an error, not the home folder.
func TestSpawnRunsInItsFolder(t *testing.T) {
	s := tmuxtest.New(t)
	odd := filepath.Join(t.TempDir(), `#{pid} #(id) %Y;`)
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	pane, seen := spawnWriter(t, s, tmux.Spawn{Session: "dir", New: true, Dir: odd})
	if seen.Dir != odd {
		t.Errorf("new session: in %q, wanted %q", seen.Dir, odd)
	}
	if _, seen = spawnWriter(t, s, tmux.Spawn{Session: pane.Session, Dir: odd}); seen.Dir != odd {
		t.Errorf("new window: in %q, wanted %q", seen.Dir, odd)
	}
	if _, seen = spawnWriter(t, s, tmux.Spawn{Split: true, Window: pane.Window, Dir: odd}); seen.Dir != odd {
		t.Errorf("split: in %q, wanted %q", seen.Dir, odd)
	}
	if _, seen = spawnWriter(t, s, tmux.Spawn{Session: pane.Session}); seen.Dir != "/" {
		t.Errorf("without a folder: in %q, wanted /", seen.Dir)
	}
	missing := filepath.Join(odd, "missing")
	if _, err := s.Spawn(t.Context(), tmux.Spawn{Session: "gone", New: true, Dir: missing, Argv: []string{"sleep", "1"}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
}

// Fault 35: hob called from inside another tmux, or with a broken TMUX.
func TestTMUXOfTheCallerIsNotFollowed(t *testing.T) {
	outer, s := tmuxtest.New(t), tmuxtest.New(t)
	p := tmuxtest.Sleeper(t, outer, "outer")
	t.Setenv("TMUX", fmt.Sprintf("%s,%d,0", outer.Socket, p.ServerPID))
	t.Setenv("TMUX_PANE", p.ID)
	mine := tmuxtest.Sleeper(t, s, "mine")
	if mine.ServerPID == p.ServerPID {
		t.Fatal("the pane was made on the caller's server")
	}
	if panes, err := outer.Panes(t.Context()); err != nil || len(panes) != 1 {
		t.Errorf("the outer server has %d panes, %v", len(panes), err)
	}
}

// Fault 34: without a locale tabs and UTF-8 come out of tmux as "_".
func TestLocaleOfTheCallerDoesNotMatter(t *testing.T) {
	for _, v := range []string{"LANG", "LC_ALL", "LC_CTYPE", "TERM"} {
		t.Setenv(v, "")
		os.Unsetenv(v)
	}
	t.Setenv("LC_ALL", "C")
	s := tmuxtest.New(t)
	_, seen := spawnWriter(t, s, tmux.Spawn{Session: "utf", New: true}, "模型")
	if string(seen.Args[0]) != "模型" {
		t.Errorf("arrived as %q", seen.Args[0])
	}
	p, err := s.Spawn(t.Context(), tmux.Spawn{Session: "say", New: true, Argv: []string{"sh", "-c", "echo 模型; sleep 600"}})
	if err != nil {
		t.Fatal(err)
	}
	tmuxtest.WaitFor(t, "the pane shows UTF-8", func() bool {
		text, err := s.Text(t.Context(), p.ID)
		return err == nil && strings.Contains(text, "模型")
	})
}

// Fault 28: a quick exit keeps its pane; its status is the right one or unknown,
// never 0.
func TestQuickExitsAreNotLost(t *testing.T) {
	s := tmuxtest.New(t)
	ctx := t.Context()
	keep := tmuxtest.Sleeper(t, s, "quick")
	for i := range 12 {
		p, err := s.Spawn(ctx, tmux.Spawn{Session: keep.Session, Argv: []string{"sh", "-c", "exit 7"}})
		if err != nil {
			t.Fatalf("spawn %d: %v", i, err)
		}
		tmuxtest.WaitFor(t, "the pane is listed as dead", func() bool {
			got := tmuxtest.Find(t, s, p.ID)
			if got == nil {
				t.Fatalf("the pane of a quick exit is gone")
			}
			return got.Dead
		})
		if got := tmuxtest.Find(t, s, p.ID); got.DeadStatus != nil && *got.DeadStatus != 7 {
			t.Errorf("exit 7 reads as %d", *got.DeadStatus)
		}
	}
}

// A pane that was ended by a signal has a signal and no status.
func TestSignalIsNoStatus(t *testing.T) {
	s := tmuxtest.New(t)
	keep := tmuxtest.Sleeper(t, s, "sig")
	p, err := s.Spawn(t.Context(), tmux.Spawn{Session: keep.Session, Argv: []string{"sh", "-c", "kill -9 $$"}})
	if err != nil {
		t.Fatal(err)
	}
	tmuxtest.WaitFor(t, "the pane is listed as dead", func() bool { return tmuxtest.Find(t, s, p.ID).Dead })
	if got := tmuxtest.Find(t, s, p.ID); got.DeadStatus != nil {
		t.Errorf("a killed pane has status %d", *got.DeadStatus)
	}
}

// A program that does not exist: tmux answers 0 and prints ids; the pane is dead
// with a status or an unknown one, and the first exit of a server is no matter.
func TestMissingProgram(t *testing.T) {
	s := tmuxtest.New(t)
	p, err := s.Spawn(t.Context(), tmux.Spawn{Session: "missing", New: true, Argv: []string{"/nonexistent/program", "x"}})
	if err != nil {
		t.Fatal(err)
	}
	tmuxtest.WaitFor(t, "the pane is listed as dead", func() bool { return tmuxtest.Find(t, s, p.ID).Dead })
	if got := tmuxtest.Find(t, s, p.ID); got.DeadStatus != nil && *got.DeadStatus == 0 {
		t.Error("a program that was never started has status 0")
	}
}

// Fault 27: the user's configuration is not read.
func TestUserConfigurationIsIgnored(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	conf := "set -g base-index 1\nset -g pane-base-index 1\nset -g destroy-unattached on\nset -g remain-on-exit off\n" +
		"set -g default-command 'exit 1'\nset-hook -g session-created 'new-window -d sleep 600'\n"
	for path, text := range map[string]string{".tmux.conf": conf, ".config/tmux/tmux.conf": "this is no command\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := tmuxtest.New(t)
	p := tmuxtest.Sleeper(t, s, "plain")
	panes, err := s.Panes(t.Context())
	if err != nil || len(panes) != 1 || panes[0].ID != p.ID || panes[0].Dead {
		t.Errorf("panes %+v, %v", panes, err)
	}
}

// Fault 27, the other way round: options of a server that is already up are set right again.
func TestOptionsAreSetAtEverySpawn(t *testing.T) {
	s := tmuxtest.New(t)
	first := tmuxtest.Sleeper(t, s, "first")
	tmuxCommand(t, s, "set-option", "-gw", "remain-on-exit", "off", ";", "set-option", "-g", "default-command", "exit 1", ";",
		"set-option", "-s", "exit-empty", "on")
	p, err := s.Spawn(t.Context(), tmux.Spawn{Session: first.Session, Argv: []string{"sh", "-c", "exit 3"}})
	if err != nil {
		t.Fatal(err)
	}
	tmuxtest.WaitFor(t, "the pane stays, dead", func() bool {
		got := tmuxtest.Find(t, s, p.ID)
		return got != nil && got.Dead
	})
}

// Twelve parallel first starts make one server with twelve sessions.
func TestParallelFirstStarts(t *testing.T) {
	s := tmuxtest.New(t)
	panes, errs := make([]tmux.Pane, 12), make([]error, 12)
	var wg sync.WaitGroup
	for i := range panes {
		wg.Go(func() {
			panes[i], errs[i] = s.Spawn(t.Context(), tmux.Spawn{
				Session: fmt.Sprintf("run%d", i), New: true, Argv: []string{"sleep", "600"},
			})
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, p := range panes {
		if p.ServerPID != panes[0].ServerPID {
			t.Errorf("two servers: %d and %d", p.ServerPID, panes[0].ServerPID)
		}
	}
	if got, err := s.Panes(t.Context()); err != nil || len(got) != len(panes) {
		t.Errorf("%d panes listed, %v", len(got), err)
	}
}

// A window takes more panes than a plain split has room for.
func TestManySplits(t *testing.T) {
	s := tmuxtest.New(t)
	p := tmuxtest.Sleeper(t, s, "split")
	for i := range 11 {
		layout := tmux.Layouts[0]
		if i == 10 {
			layout = "main-vertical"
		}
		if _, err := s.Spawn(t.Context(), tmux.Spawn{Split: true, Window: p.ID, Layout: layout, Argv: []string{"sleep", "600"}}); err != nil {
			t.Fatalf("split %d: %v", i, err)
		}
	}
}

func TestSpawnRefuses(t *testing.T) {
	s := tmuxtest.New(t)
	live := tmuxtest.Sleeper(t, s, "web")
	argv := []string{"sleep", "600"}
	for name, c := range map[string]struct {
		spawn tmux.Spawn
		want  error
	}{
		"a taken name":         {tmux.Spawn{Session: "web", New: true, Argv: argv}, tmux.ErrExists},
		"a name with dots":     {tmux.Spawn{Session: "web.1", New: true, Argv: argv}, tmux.ErrName},
		"a name with a colon":  {tmux.Spawn{Session: "web:1", New: true, Argv: argv}, tmux.ErrName},
		"a name that runs":     {tmux.Spawn{Session: "#(id)", New: true, Argv: argv}, tmux.ErrName},
		"a name that expands":  {tmux.Spawn{Session: "n#{pid}", New: true, Argv: argv}, tmux.ErrName},
		"a name like an id":    {tmux.Spawn{Session: "$9", New: true, Argv: argv}, tmux.ErrName},
		"a name like a flag":   {tmux.Spawn{Session: "-d", New: true, Argv: argv}, tmux.ErrName},
		"an empty name":        {tmux.Spawn{New: true, Argv: argv}, tmux.ErrName},
		"a name as target":     {tmux.Spawn{Session: "web", Argv: argv}, tmux.ErrName},
		"a missing session":    {tmux.Spawn{Session: "$99", Argv: argv}, tmux.ErrNoTarget},
		"a missing window":     {tmux.Spawn{Split: true, Window: "@99", Argv: argv}, tmux.ErrNoTarget},
		"a missing pane":       {tmux.Spawn{Split: true, Window: "%99", Argv: argv}, tmux.ErrNoTarget},
		"a window by name":     {tmux.Spawn{Split: true, Window: "web", Argv: argv}, tmux.ErrName},
		"a window name, runs":  {tmux.Spawn{Session: live.Session, Window: "#(id)", Argv: argv}, tmux.ErrName},
		"a window name, torn":  {tmux.Spawn{Session: live.Session, Window: "a\nb", Argv: argv}, tmux.ErrName},
		"a window name, bytes": {tmux.Spawn{Session: live.Session, Window: "a\xff", Argv: argv}, tmux.ErrName},
		"an unknown layout":    {tmux.Spawn{Split: true, Window: live.Window, Layout: "round", Argv: argv}, tmux.ErrName},
		"one argument":         {tmux.Spawn{Session: "one", New: true, Argv: argv[:1]}, tmux.ErrName},
		"a NUL byte":           {tmux.Spawn{Session: "nul", New: true, Argv: []string{"echo", "a\x00b"}}, tmux.ErrName},
		"a split of a new one": {tmux.Spawn{Session: "two", New: true, Split: true, Window: "@0", Argv: argv}, tmux.ErrName},
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := s.Spawn(t.Context(), c.spawn); !errors.Is(err, c.want) {
				t.Errorf("spawned %+v, error %v, wanted %v", p, err, c.want)
			}
		})
	}
	if panes, err := s.Panes(t.Context()); err != nil || len(panes) != 1 {
		t.Errorf("after the refusals: %+v, %v", panes, err)
	}
}

// list are rows of a tmux format, for what a Pane does not hold.
func list(t *testing.T, s *tmux.Server, args ...string) []string {
	t.Helper()
	out, err := exec.Command(s.Bin, append([]string{"-S", s.Socket}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// Windows and panes have the order that was asked for, not that of their making.
func TestOrder(t *testing.T) {
	s := tmuxtest.New(t)
	sleep := []string{"sleep", "600"}
	spawn := func(r tmux.Spawn) tmux.Pane {
		t.Helper()
		r.Argv = sleep
		p, err := s.Spawn(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	third := spawn(tmux.Spawn{Session: "o", New: true, Window: "three", Index: 3})
	spawn(tmux.Spawn{Session: third.Session, Window: "one", Index: 1})
	spawn(tmux.Spawn{Session: third.Session, Window: "next"})
	mid := spawn(tmux.Spawn{Session: third.Session, Window: "five", Index: 5})
	if got := list(t, s, "list-windows", "-t", "=o:", "-F", "#{window_index} #{window_name}"); !slices.Equal(got, []string{"0 one", "1 next", "2 three", "4 five"}) {
		t.Errorf("windows %q", got)
	}
	if _, err := s.Spawn(t.Context(), tmux.Spawn{Session: third.Session, Window: "x", Index: 1, Argv: sleep}); !errors.Is(err, tmux.ErrIndex) {
		t.Errorf("a place that is taken: %v", err)
	}
	last := spawn(tmux.Spawn{Split: true, Window: mid.ID, Layout: "even-vertical"})
	first := spawn(tmux.Spawn{Split: true, Window: mid.ID, Before: true, Layout: "even-vertical"})
	between := spawn(tmux.Spawn{Split: true, Window: mid.ID, Layout: "even-vertical"})
	want := []string{first.ID, mid.ID, between.ID, last.ID}
	if got := list(t, s, "list-panes", "-t", mid.Window, "-F", "#{pane_id}"); !slices.Equal(got, want) {
		t.Errorf("panes %q, want %q", got, want)
	}
	other := spawn(tmux.Spawn{Session: "p", New: true, Window: "w"})
	if got := list(t, s, "list-windows", "-t", other.Session, "-F", "#{window_index}"); !slices.Equal(got, []string{"0"}) {
		t.Errorf("the next session begins at %q", got)
	}
}

// A pane shows hob's name for it, whatever its program calls it.
func TestDress(t *testing.T) {
	s := tmuxtest.New(t)
	a, err := s.Spawn(t.Context(), tmux.Spawn{Session: "d", New: true, Window: "w", Argv: []string{"sh", "-c", "printf '\\033]2;my own\\007'; exec sleep 600"}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Spawn(t.Context(), tmux.Spawn{Split: true, Window: a.ID, Argv: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Spawn(t.Context(), tmux.Spawn{Session: a.Session, Window: "x", Argv: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	for pane, look := range map[*tmux.Pane]tmux.Look{&a: {Title: "chat"}, &b: {Title: "rerank", Focus: true}, &c: {Front: true}} {
		if err := s.Dress(t.Context(), *pane, look); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{a.ID + " chat 0", b.ID + " rerank 1"}
	if got := list(t, s, "list-panes", "-t", a.Window, "-F", "#{pane_id} #{@hob} #{pane_active}"); !slices.Equal(got, want) {
		t.Errorf("panes %q, want %q", got, want)
	}
	if got := list(t, s, "display-message", "-p", "-t", a.ID, "#{E:pane-border-format}"); got[0] != "chat" {
		t.Errorf("above the pane stands %q", got)
	}
	if got := list(t, s, "display-message", "-p", "-t", "=d:", "#{window_name}"); got[0] != "x" {
		t.Errorf("the session shows %q", got)
	}
	for _, bad := range []tmux.Pane{{ID: "%x", Window: a.Window}, {ID: a.ID, Window: "w"}} {
		if err := s.Dress(t.Context(), bad, tmux.Look{Focus: true}); !errors.Is(err, tmux.ErrName) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := s.Dress(t.Context(), a, tmux.Look{Title: "#(touch x)"}); !errors.Is(err, tmux.ErrName) {
		t.Errorf("a title that tmux would run: %v", err)
	}
}
