//go:build unix

package tmux_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
