package tasks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hob/identity"
	"hob/tmux"
)

// Which session is meant: by its whole name or its id, else the caller's, else the
// only one. Never one whose name only begins so.
func TestPickSession(t *testing.T) {
	pane := func(session, name, id string) tmux.Seen {
		return tmux.Seen{Pane: tmux.Pane{Session: session, SessionName: name, ID: id}}
	}
	panes := []tmux.Seen{pane("$1", "web-prod", "%1"), pane("$1", "web-prod", "%2"), pane("$2", "web", "%3"), pane("$3", "$1", "%4")}
	for _, c := range []struct {
		panes         []tmux.Seen
		name, callers string
		want, wrong   string
	}{
		{panes, "web", "", "%3", ""},
		{panes, "web-prod", "%3", "%1 %2", ""},
		{panes, "$2", "", "%3", ""},
		{panes, "we", "", "", `no session "we"`},
		{panes, "", "", "", "say which session"},
		{panes, "", "%2", "%1 %2", ""},
		{panes, "", "%99", "", "say which session"},
		{panes[2:3], "", "", "%3", ""},
	} {
		got, err := pickSession(c.panes, c.name, c.callers)
		var ids []string
		for _, p := range got {
			ids = append(ids, p.ID)
		}
		if strings.Join(ids, " ") != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%q of the caller in %q is %v: %v", c.name, c.callers, ids, err)
		}
	}
}

// hides is a host whose table lacks rows (hidepid) of processes that live.
type hides struct {
	identity.Host
	living []int
	kids   map[int][]int
}

func (h hides) Children(pid int) ([]int, error) { return h.kids[pid], nil }

func (h hides) Open(pid int) (identity.Handle, error) {
	if !slices.Contains(h.living, pid) {
		return nil, identity.ErrGone
	}
	return living{}, nil
}

type living struct{ identity.Handle }

func (living) Verify() identity.Finding { return identity.Finding{Verdict: identity.Owned} }
func (living) Close() error             { return nil }

// What could not be looked at is said of its pane, never taken for a shell or for
// nothing; a dead pane's number is not looked at at all.
func TestFreezerSaysWhatItCouldNotSee(t *testing.T) {
	row := func(pid, ppid, sid, pgid, tpgid int, args ...string) identity.Process {
		return identity.Process{PID: pid, PPID: ppid, SID: sid, PGID: pgid, TPGID: tpgid, TTY: 5, State: 'S', Threads: 1, Args: args, Cwd: "/srv"}
	}
	hidden := row(20, 1, 20, 20, 20)
	hidden.Missing = identity.WantArgs | identity.WantCwd
	f := freezer{host: hides{living: []int{71, 81, 90}, kids: map[int][]int{70: {71}}}, rows: map[int]identity.Process{}, procs: []identity.Process{
		row(10, 1, 10, 10, 10, "-bash"), hidden,
		row(30, 1, 30, 30, 31, "-zsh"), row(31, 30, 30, 31, 31, "vllm", "serve"), row(32, 30, 30, 31, 31, "tee", "log"), row(33, 30, 30, 33, 31, "sleep", "9"),
		row(40, 1, 40, 40, 40, "hob", "keeper", "/h/runs/r/tasks/t/spec.json"), row(41, 40, 41, 41, 41, "llama-server"),
		row(50, 1, 50, 50, 50, "hob", "keeper", "/h/runs/r/tasks/u/spec.json"),
		row(70, 1, 70, 70, 70, "hob", "keeper", "/h/runs/r/tasks/v/spec.json"),
		row(80, 1, 80, 80, 81, "-bash"),
	}}
	for _, p := range f.procs {
		f.rows[p.PID] = p
	}
	var panes []tmux.Seen
	for i, pid := range []int{10, 20, 30, 40, 50, 60, 10, 70, 80, 90} {
		panes = append(panes, tmux.Seen{Pane: tmux.Pane{ID: fmt.Sprintf("%%%d", i), PID: pid, Window: "@1", Dead: i == 6}, Garbled: i == 0})
	}
	got := f.session(t.Context(), panes, "/bin/sh")
	var lines []string
	for _, p := range got.Session.Windows[0].Panes {
		lines = append(lines, fmt.Sprintf("%s dead=%t prompt=%t %v %v %v %s %s", p.ID, p.Dead, p.Prompt, p.Args, p.Others, p.Background, p.Dir, p.Trouble))
	}
	want := []string{
		"%0 dead=false prompt=true [-bash] [] [] /srv ",
		"%1 dead=false prompt=false [] [] []  the arguments of process 20 cannot be read",
		"%2 dead=false prompt=false [vllm serve] [[tee log]] [[sleep 9]] /srv ",
		"%3 dead=false prompt=false [llama-server] [] [] /srv ",
		"%4 dead=false prompt=false [] [] []  the command below its keeper, process 50, has ended",
		"%5 dead=false prompt=false [] [] []  its first process, 60, has ended",
		"%6 dead=true prompt=false [] [] []  ",
		"%7 dead=false prompt=false [] [] []  process 71 below its keeper lives and could not be looked at",
		"%8 dead=false prompt=false [] [] []  its foreground job, process 81, lives and could not be looked at",
		"%9 dead=false prompt=false [] [] []  its first process, 90, lives and could not be looked at",
	}
	if !slices.Equal(lines, want) || got.Unseen != 6 {
		t.Errorf("%d unseen:\n%s\nwant:\n%s", got.Unseen, strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if len(got.Session.Notes) != 1 || !strings.Contains(got.Session.Notes[0], "cannot be told apart") {
		t.Errorf("notes %v", got.Session.Notes)
	}
}
