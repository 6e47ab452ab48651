package tasks

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"hob/identity"
)

// TestChooseRoot: which process of a pane is adopted, and which panes have none.
func TestChooseRoot(t *testing.T) {
	const first, tty = 100, 34816
	row := func(pid, ppid, pgid, tpgid int, args ...string) identity.Process {
		return identity.Process{PID: pid, PPID: ppid, PGID: pgid, SID: first, TTY: tty, TPGID: tpgid, State: 'S', Threads: 1, Args: args}
	}
	shell := func(tpgid int, args ...string) identity.Process { return row(first, 1, first, tpgid, args...) }
	bash := func(tpgid int) identity.Process { return shell(tpgid, "-bash") }
	other := identity.Process{PID: 900, PPID: 1, PGID: 900, SID: 900, State: 'S', Args: []string{"vllm", "serve"}}
	client := row(200, first, 200, 200, "tmux", "attach")
	client.Comm = "tmux: client"
	dead := bash(first)
	dead.State = 'Z'
	corpse := row(200, first, 200, 200, "vllm")
	corpse.State = 'Z'
	orphan := row(201, 1, 200, 200, "worker")
	tests := []struct {
		name   string
		procs  []identity.Process
		want   int
		others []int
		shell  bool
		behind []int
		err    error
		words  string
	}{
		{"the foreground job of a shell", []identity.Process{bash(200), row(200, first, 200, 200, "vllm", "serve"), other}, 200, nil, true, nil, nil, ""},
		{"its workers are no jobs", []identity.Process{bash(200), row(200, first, 200, 200, "vllm"), row(201, 200, 200, 200, "worker")}, 200, nil, true, nil, nil, ""},
		{"a pipeline", []identity.Process{bash(200), row(200, first, 200, 200, "vllm"), row(201, first, 200, 200, "tee", "log")}, 200, []int{201}, true, nil, nil, ""},
		{"a pipeline whose first has ended", []identity.Process{bash(200), corpse, row(201, first, 200, 200, "vllm")}, 201, nil, true, nil, nil, ""},
		{"a pipeline of two whose first has ended", []identity.Process{bash(200), row(201, first, 200, 200, "a"), row(202, first, 200, 200, "b")}, 0, nil, true, nil, ErrUsage, "is 2 processes"},
		{"a background job stays", []identity.Process{bash(200), row(200, first, 200, 200, "vllm"), row(300, first, 300, 200, "ollama")}, 200, nil, true, []int{300}, nil, ""},
		{"a shell at its prompt", []identity.Process{bash(first)}, 0, nil, true, nil, ErrUsage, "nothing runs in its foreground"},
		{"a shell at its prompt, jobs behind it", []identity.Process{bash(first), row(300, first, 300, first, "/opt/ollama", "serve")}, 0, nil, true, []int{300}, ErrUsage, "in the background: 300 (ollama)"},
		{"a shell in the shell", []identity.Process{bash(200), row(200, first, 200, 200, "fish")}, 0, nil, true, nil, ErrUsage, "nothing runs in its foreground"},
		{"a job of a shell in the shell", []identity.Process{bash(201), row(200, first, 200, 201, "zsh"), row(201, 200, 201, 201, "vllm")}, 201, nil, true, nil, nil, ""},
		{"a shell that hob has no name for", []identity.Process{shell(200, "qsh"), row(200, first, 200, 200, "vllm")}, 200, nil, true, nil, nil, ""},
		{"the pane's process is the command", []identity.Process{shell(first, "vllm", "serve"), row(201, first, first, first, "worker")}, first, nil, false, nil, nil, ""},
		{"a script is a command", []identity.Process{shell(first, "bash", "/tmp/serve_run.sh"), row(201, first, first, first, "vllm")}, first, nil, false, nil, nil, ""},
		{"sh -c is a command", []identity.Process{shell(first, "sh", "-c", "vllm serve | tee log"), row(201, first, first, first, "vllm")}, first, nil, false, nil, nil, ""},
		{"an orphan in the job's group is nobody's child here", []identity.Process{bash(200), orphan}, 0, nil, true, nil, ErrUsage, "nothing runs"},
		{"it shows another tmux", []identity.Process{bash(200), client}, 200, nil, true, nil, ErrUsage, "shows another tmux"},
		{"its process is gone", []identity.Process{other}, 0, nil, false, nil, ErrUsage, "has ended"},
		{"its process is a corpse", []identity.Process{dead}, 0, nil, false, nil, ErrUsage, "has ended"},
		{"its process is hidden", []identity.Process{other}, 0, nil, false, nil, ErrUnverified, "lives and could not be looked at"},
		{"its job is hidden", []identity.Process{bash(200)}, 0, nil, true, nil, ErrUnverified, "its foreground job, process 200, lives"},
		{"its job has just ended", []identity.Process{bash(200)}, 0, nil, true, nil, ErrUsage, "nothing runs in its foreground"},
		{"a system that does not say", []identity.Process{bash(0), row(200, first, 200, 0, "vllm")}, 0, nil, false, nil, ErrUnverified, "does not say"},
	}
	for _, tt := range tests {
		got, err := chooseRoot(tt.procs, first, func(pid int) bool { return strings.Contains(tt.name, "hidden") })
		if !errors.Is(err, tt.err) || tt.err != nil && !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if tt.err != nil && tt.want == 0 {
			got.Command, got.Others = 0, nil
		}
		if got.Command != tt.want || !slices.Equal(got.Others, tt.others) || got.Shell != tt.shell || !slices.Equal(got.Background, tt.behind) {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

func TestTypedInto(t *testing.T) {
	for line, want := range map[string]bool{
		"-bash": true, "bash": true, "/bin/zsh -l": true, "sh": true, "bash --norc -i": true, "bash --rcfile x -i": true, "bash -o vi": true,
		"busybox sh": true, "fish --private": true, "bash -": true, "-zsh": true,
		"bash run.sh": false, "sh -c x": false, "bash -lc x": false, "bash -ic x": false, "fish -c x": false, "fish --command=x": false,
		"bash -o vi run.sh": false, "bash -- run.sh": false, "python3": false, "vllm serve": false, "busybox httpd": false, "": false,
	} {
		if got := typedInto(strings.Fields(line)); got != want {
			t.Errorf("%q: %t", line, got)
		}
	}
}

func TestProgramOf(t *testing.T) {
	for line, want := range map[string]string{
		"vllm serve m": "vllm", "/usr/bin/python3.11 /opt/bin/vllm serve": "vllm", "python3 -m sglang.launch_server --port 1": "sglang",
		"python3 -u /srv/app.py": "app", "bash /tmp/x_run.sh": "x_run", "sh -c exec": "exec", "./llama-server -m x": "llama-server",
		"env ollama serve": "ollama", "python3": "python3", "": "comm",
	} {
		if got := programOf(identity.Process{Comm: "comm", Args: strings.Fields(line)}); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	title := identity.Process{Args: []string{"nginx: master process /usr/sbin/nginx"}}
	if got := programOf(title); got != "nginx" {
		t.Errorf("a title: %q", got)
	}
	for text, want := range map[string]string{"My Session": "my-session", "ÄÖ": "adopted", "": "adopted", "_x-": "x", strings.Repeat("a", 60): strings.Repeat("a", 41)} {
		if got := nameFrom(text, "adopted"); got != want || !ValidName(got) {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestChoosePort(t *testing.T) {
	l := listening{own: []int{8000}, others: []int{9000}, open: []int{7000}}
	tests := []struct {
		said int
		l    listening
		want int
		note string
		err  error
	}{
		{0, l, 8000, "", nil},
		{0, listening{own: []int{8000, 8000}}, 8000, "", nil},
		{0, listening{own: []int{8001, 8000}}, 0, "8000, 8001", nil},
		{0, listening{}, 0, "", nil},
		{8000, l, 8000, "", nil},
		{9000, l, 0, "", ErrRefused},
		{7000, l, 7000, "could not be found out", nil},
		{6000, l, 6000, "nobody listens", nil},
	}
	for _, tt := range tests {
		port, note, err := choosePort(tt.said, tt.l)
		if port != tt.want || !strings.Contains(note, tt.note) || (note == "") != (tt.note == "") || !errors.Is(err, tt.err) {
			t.Errorf("%d, %+v: %d, %q, %v", tt.said, tt.l, port, note, err)
		}
	}
}

// A server that is another process here than it says, as one in another container
// is, and one of another user.
func TestJudgePeer(t *testing.T) {
	for name, c := range map[string]struct {
		says, pid, owner, uid int
		want                  error
	}{
		"ours":                    {7, 7, 1000, 1000, nil},
		"asked by root":           {7, 7, 1000, 0, nil},
		"another user's":          {7, 7, 1001, 1000, ErrUnverified},
		"another number here":     {7, 4711, 1000, 1000, ErrRefused},
		"no number here":          {7, 0, 1000, 0, ErrRefused},
		"another's, and in a box": {7, 0, 1001, 1000, ErrRefused},
	} {
		if err := judgePeer(c.says, c.pid, c.owner, c.uid); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecideAdopt(t *testing.T) {
	for _, c := range []struct {
		exists   bool
		recorded string
		lives    bool
		want     adoptInto
	}{
		{false, "", false, intoNew}, {true, "d", false, intoNew}, {true, "", false, intoNew}, {true, "", true, intoThis}, {true, "d", true, intoOthers},
	} {
		if got := decideAdopt(c.exists, c.recorded, c.lives); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// What was adopted and lives can be given back, and only that.
func TestMayForgetAdopted(t *testing.T) {
	for _, c := range []struct {
		state           State
		forget, adopted bool
		may             bool
	}{
		{Up, true, true, true}, {Up, false, true, false}, {Up, true, false, false},
		{Stopping, true, true, false}, {Survivors, true, true, false}, {Lost, true, true, true}, {Lost, false, true, false}, {Stopped, false, true, true},
	} {
		if err := mayForget(Name{"a", "b"}, Derived{State: c.state}, c.forget, c.adopted); (err == nil) != c.may {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
