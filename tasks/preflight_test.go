package tasks

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"hob/recipes"
)

func TestPreflight(t *testing.T) {
	const gib = 1 << 30
	free := uint64(4 * gib)
	g := ground{
		program: func(name, _, _ string) error {
			if name == "vllm" || name == "ffmpeg" || name == "./server" {
				return errors.New("it is not on PATH")
			}
			return nil
		},
		folder: func(dir string) error {
			if dir == "/gone" {
				return fs.ErrNotExist
			}
			return nil
		},
		memory:  &free,
		held:    map[int]string{8001: "pid 12 (python3 server.py)", 8002: "pid 13 (our own)"},
		claimed: map[int]Name{8000: {"other", "llm"}},
		mine:    map[int]struct{}{8002: {}},
	}
	plain := func(change func(*want)) []want {
		w := want{task: recipes.Task{Name: "llm"}, argv: []string{"sleep"}}
		change(&w)
		return []want{w}
	}
	tests := []struct {
		name  string
		wants []want
		fails []string
	}{
		{"nothing wrong", plain(func(*want) {}), nil},
		{"the command is missing", plain(func(w *want) { w.argv = []string{"vllm", "serve"} }),
			[]string{`llm needs the command "vllm": it is not on PATH`}},
		{"what it needs is missing, said once", plain(func(w *want) {
			w.argv, w.task.Needs.Commands = []string{"vllm"}, []string{"vllm", "ffmpeg"}
		}), []string{`llm needs the command "vllm": it is not on PATH`, `llm needs the command "ffmpeg": it is not on PATH`}},
		{"a hook's command is missing", plain(func(w *want) { w.task.AfterStop = &recipes.Hook{Command: []string{"ffmpeg"}} }),
			[]string{`llm needs the command "ffmpeg": it is not on PATH`}},
		{"a program that nobody makes", plain(func(w *want) { w.argv = []string{"./server"} }), []string{`llm needs the command "./server": it is not on PATH`}},
		{"a program that before may make", plain(func(w *want) {
			w.argv, w.task.Before = []string{"./server"}, &recipes.Hook{Command: []string{"make"}}
		}), nil},
		{"a program that a job may make", plain(func(w *want) { w.argv, w.made = []string{"./server"}, true }), nil},
		{"its folder is missing", plain(func(w *want) { w.task.Dir = "/gone" }), []string{"llm: its folder: file does not exist"}},
		{"another recipe's port", plain(func(w *want) { w.port = 8000 }), []string{"port 8000 of chat/llm belongs to other/llm"}},
		{"a stranger's port", plain(func(w *want) { w.port = 8001 }), []string{"port 8001 of chat/llm is held by pid 12 (python3 server.py)"}},
		{"a port of this run that is left alone", plain(func(w *want) { w.port = 8002 }), nil},
		{"a free port", plain(func(w *want) { w.port = 8003 }), nil},
		{"a port that hob chose", plain(func(w *want) { w.port, w.task.Port.Auto = 8001, true }), nil},
		{"too little memory for both", append(
			plain(func(w *want) { w.task.Needs.Memory = 3 * gib }),
			plain(func(w *want) { w.task.Needs.Memory = 2 * gib })...,
		), []string{"the tasks need 5.0 GiB of memory, and 4.0 GiB are free"}},
		{"everything at once", plain(func(w *want) { w.argv, w.port = []string{"vllm"}, 8001 }),
			[]string{`llm needs the command "vllm": it is not on PATH`, "port 8001 of chat/llm is held by pid 12 (python3 server.py)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			notes, err := preflight("chat", tt.wants, g)
			if len(notes) > 0 {
				t.Errorf("notes %q", notes)
			}
			want := strings.Join(tt.fails, "\n")
			if err == nil && want != "" || err != nil && err.Error() != want {
				t.Errorf("got:\n%v\nwant:\n%s", err, want)
			}
		})
	}
}

func TestPreflightWithoutFigures(t *testing.T) {
	// Memory that could not be read is not "none".
	blind := func(string) (uint64, string, error) { return 0, "", errors.New("no view") }
	g := ground{program: findProgram, folder: folderExists, disk: blind}
	notes, err := preflight("chat", []want{{task: recipes.Task{Name: "llm", Needs: recipes.Needs{Memory: 1 << 40, Disk: 1 << 30}, Dir: "/"}}}, g)
	wanted := []string{
		"the tasks need 1.0 TiB of memory, and how much is free could not be read",
		"llm needs 1.0 GiB of disk in /, and how much is free there could not be read: no view",
	}
	if err != nil || !slices.Equal(notes, wanted) {
		t.Errorf("%q, %v", notes, err)
	}
}

func TestWhoHasTheMemory(t *testing.T) {
	free, size := uint64(1), int64(3<<30)
	g := ground{folder: func(string) error { return nil }, memory: &free, hungry: func() holds {
		return holds{{words: "pid 7 (train.py)", bytes: &size}, {words: "pid 8 (worker)", task: Name{"old", "llm"}}}
	}}
	_, err := preflight("chat", []want{{task: recipes.Task{Name: "llm", Needs: recipes.Needs{Memory: 2}}}}, g)
	var p *Problem
	if !errors.As(err, &p) || !strings.HasSuffix(p.Msg, "most is held by pid 7 (train.py) with 3.0 GiB, pid 8 (worker), which outlived old/llm with an unknown amount") {
		t.Fatalf("%v", err)
	}
	if p.Tip != "hob sweep old/llm ends what outlived it" {
		t.Error(p.Tip)
	}
}

func TestDecideUp(t *testing.T) {
	up, ended, cut := Derived{State: Ready}, Derived{State: Failed}, Derived{State: Lost}
	tests := []struct {
		name      string
		recorded  string
		have      map[string]Derived
		want      runState
		differing bool
		starting  bool
	}{
		{"nothing there", "", nil, runNew, false, false},
		{"another hob is bringing it up", "a", map[string]Derived{"x": {State: Stopped}}, runLives, false, true},
		{"another hob is bringing it up, by another recipe", "b", nil, runLives, true, true},
		{"up, the same recipe", "a", map[string]Derived{"x": up, "y": ended}, runLives, false, false},
		{"up, another recipe", "b", map[string]Derived{"x": up}, runLives, true, false},
		{"ended, another recipe", "b", map[string]Derived{"x": ended}, runEnded, false, false},
		{"lost", "a", map[string]Derived{"x": cut}, runEnded, false, false},
		{"a record without tasks", "a", nil, runEnded, false, false},
	}
	for _, tt := range tests {
		got, err := decideUp("chat", tt.recorded, "a", tt.have, tt.starting)
		if got != tt.want || (err != nil) != tt.differing {
			t.Errorf("%s: got %d, %v", tt.name, got, err)
		}
		if tt.differing && !errors.Is(err, ErrUsage) {
			t.Errorf("%s: %v is not a wrong usage", tt.name, err)
		}
	}
}

func TestChooseAction(t *testing.T) {
	tests := []struct {
		state State
		named bool
		want  action
	}{
		{"", false, start}, {Ready, false, leave}, {Ready, true, leave}, {Stopping, false, settle},
		{Failed, false, start}, {Stopped, false, start}, {Exited, false, start},
		{Completed, false, leave}, {Completed, true, start},
		{Lost, false, settle}, {Survivors, false, settle}, {Unverified, false, settle},
	}
	for _, tt := range tests {
		if got := chooseAction(Derived{State: tt.state}, tt.named); got != tt.want {
			t.Errorf("%q, named %t: got %d, want %d", tt.state, tt.named, got, tt.want)
		}
	}
	if got := chooseAction(Derived{State: Failed, Tended: true}, false); got != settle {
		t.Errorf("failed, and its keeper still at work: got %d, want it settled first", got)
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 3 << 29: "1.5 GiB", 18 << 30: "18.0 GiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
