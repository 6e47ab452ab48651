package sweep

import (
	"testing"

	"hob/identity"
)

func TestBoundaryOf(t *testing.T) {
	table := []struct {
		name string
		row  identity.Process
		want string
	}{
		{"tmux server by comm", identity.Process{Comm: "tmux: server", Args: []string{"tmux", "new", "-d"}}, tmuxBoundary},
		{"tmux server by title (BSD)", identity.Process{Comm: "tmux", Args: []string{"tmux: server (/tmp/s)"}}, tmuxBoundary},
		{"tmux before it has named itself", identity.Process{PID: 7, SID: 7, Comm: "tmux", Args: []string{"/usr/bin/tmux", "new"}}, tmuxBoundary},
		{"tmux client at a terminal", identity.Process{PID: 7, SID: 5, TTY: 34816, Comm: "tmux: client", Args: []string{"tmux", "attach"}}, ""},
		{"tmux client that leads a terminal's session", identity.Process{PID: 7, SID: 7, TTY: 34816, Comm: "tmux: client", Args: []string{"tmux"}}, ""},
		{"keeper", identity.Process{Args: []string{"/opt/hob", "keeper", "/s/runs/a/tasks/b/spec.json"}}, keeperBoundary},
		{"keeper with a flag before the verb", identity.Process{Args: []string{"hob", "--home", "/x", "keeper", "/s/spec.json"}}, keeperBoundary},
		{"another program's keeper", identity.Process{Args: []string{"zoo", "keeper", "lions"}}, ""},
		{"keeper without a spec", identity.Process{Args: []string{"hob", "keeper"}}, ""},
		{"a program that is called keeper", identity.Process{Args: []string{"keeper", "/s/spec.json"}}, ""},
		{"no command line", identity.Process{Comm: "x"}, ""},
		{"a server", identity.Process{Comm: "vllm", Args: []string{"vllm", "serve", "m"}}, ""},
	}
	for _, row := range table {
		if got := boundaryOf(row.row); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestTmuxOf(t *testing.T) {
	table := []struct {
		environ string
		want    int
	}{
		{"TMUX=/tmp/tmux-0/default,412,0", 412},
		{"TMUX=/tmp/a,b/default,412,3", 412},
		{"TMUX=412", -1},
		{"TMUX=/tmp/x,412", -1},
		{"TMUX=/tmp/x,all,0", -1},
		{"TMUX=/tmp/x,-1,0", -1},
		{"TMUX=", -1},
		{"XTMUX=/tmp/x,412,0", -1},
	}
	for _, row := range table {
		if got := tmuxOf([]string{"A=b", row.environ}); got != row.want {
			t.Errorf("%s: %d", row.environ, got)
		}
	}
}

func TestSparedByName(t *testing.T) {
	spare := []string{"ssh-agent", "syncthing"}
	table := []struct {
		args []string
		want bool
	}{
		{[]string{"ssh-agent", "-s"}, true},
		{[]string{"/usr/bin/ssh-agent"}, true},
		{[]string{"-syncthing"}, true},
		{[]string{"sh", "-c", "ssh-agent"}, false},
		{[]string{"/x/ssh-agent/run"}, false},
		{nil, false},
	}
	for _, row := range table {
		if got := sparedByName(row.args, spare); got != row.want {
			t.Errorf("%v: %v", row.args, got)
		}
	}
}

func TestBornDetached(t *testing.T) {
	const keeper, command = 10, 20
	table := []struct {
		name          string
		parent, sid   int
		belowDetached bool
		want          bool
	}{
		{"adopted, in a session of its own", keeper, 30, false, true},
		{"adopted, still in the command's session", keeper, command, false, false},
		{"below the command, in a session of its own", command, 30, false, false},
		{"below a detached one", 30, 30, true, true},
		{"the command while it is being started", keeper, keeper, false, false},
	}
	for _, row := range table {
		if got := bornDetached(row.parent, keeper, row.sid, command, row.belowDetached); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
	if bornDetached(keeper, keeper, 30, 0, false) {
		t.Error("without a known command nothing can be said to have left its session")
	}
	if bornDetached(0, 0, 30, command, false) {
		t.Error("without a keeper nothing is adopted")
	}
}

func TestSpareOf(t *testing.T) {
	ref := func(pid int) identity.Ref { return identity.Ref{PID: pid, Boot: "b", Start: "linux:1"} }
	report := StopPolicy{Detached: "report"}
	table := []struct {
		name   string
		m      Member
		t      Target
		from   Step
		spared bool
		counts bool
	}{
		{"a member", Member{Ref: ref(5)}, Target{Kind: Server}, StepAll, false, false},
		{"init", Member{Ref: ref(1)}, Target{Kind: Server}, StepAll, true, false},
		{"hob's tmux server", Member{Ref: ref(5)}, Target{Kind: Server, Spared: []identity.Ref{ref(5)}}, StepAll, true, false},
		{"its number, another process", Member{Ref: ref(5)}, Target{Kind: Server, Spared: []identity.Ref{{PID: 5, Boot: "b", Start: "linux:2"}}}, StepAll, false, false},
		{"boundary in a server", Member{Ref: ref(5), Boundary: tmuxBoundary}, Target{Kind: Server}, StepAll, true, true},
		{"boundary in a job", Member{Ref: ref(5), Boundary: keeperBoundary}, Target{Kind: Job}, StepAll, true, true},
		{"boundary in a shell", Member{Ref: ref(5), Boundary: tmuxBoundary}, Target{Kind: Shell}, StepAll, true, false},
		{"stop.spare in a server", Member{Ref: ref(5), Spare: "stop.spare"}, Target{Kind: Server}, StepAll, true, false},
		{"detached, to be reported", Member{Ref: ref(5), Detached: true}, Target{Kind: Shell, Stop: report}, StepAll, true, false},
		{"detached, to be killed", Member{Ref: ref(5), Detached: true}, Target{Kind: Shell, Stop: StopPolicy{Detached: "kill"}}, StepAll, false, false},
		{"not detached", Member{Ref: ref(5)}, Target{Kind: Shell, Stop: report}, StepAll, false, false},
		{"left in a shell that ended", Member{Ref: ref(5)}, Target{Kind: Shell}, StepTerm, true, false},
		{"left by a server that ended", Member{Ref: ref(5)}, Target{Kind: Server}, StepTerm, false, false},
	}
	for _, row := range table {
		got := spareOf(row.m, row.t, row.from)
		if (got.why != "") != row.spared || got.counts != row.counts {
			t.Errorf("%s: %+v", row.name, got)
		}
	}
}
