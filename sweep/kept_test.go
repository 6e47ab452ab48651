package sweep

import (
	"testing"

	"hob/identity"
)

// Who keeps a process is the nearest keeper above it, but for the task's own; a parent
// that cannot be read may have been one.
func TestKeepersOf(t *testing.T) {
	row := func(pid, parent int, args ...string) identity.Process {
		return identity.Process{PID: pid, PPID: parent, Args: args}
	}
	keeper := func(pid, parent int, spec string) identity.Process {
		return row(pid, parent, "/usr/bin/hob", "keeper", spec)
	}
	unread := row(70, 1)
	unread.Missing = identity.WantArgs
	server := keeper(80, 1, "/h/runs/a/tasks/b/spec.json")
	server.Comm = "tmux: server"
	rows := keepersIn(&identity.Table{Procs: []identity.Process{
		keeper(10, 2, "/h/runs/z/tasks/three/spec.json"), row(11, 10, "sh"), row(2, 1, "tmux"),
		keeper(20, 2, "/h/runs/own/tasks/it/spec.json"), row(21, 20, "sh"), keeper(22, 21, "/other home/runs/n/tasks/m/spec.json"),
		row(30, 31, "sh"), row(31, 30, "sh"), unread, server,
	}})
	for name, c := range map[string]struct {
		parent int
		kept   string
		told   bool
	}{
		"nobody's":                       {parent: 1, told: true},
		"of another pid namespace":       {parent: 0, told: true},
		"a keeper's child":               {parent: 10, kept: "hob --home /h down z/three", told: true},
		"its grandchild":                 {parent: 11, kept: "hob --home /h down z/three", told: true},
		"below tmux":                     {parent: 2, told: true},
		"the task's own":                 {parent: 21, told: true},
		"another home's in the own tree": {parent: 22, kept: `hob --home "/other home" down n/m`, told: true},
		"a parent that is not there":     {parent: 99},
		"a parent without a command":     {parent: 70},
		"a circle":                       {parent: 30},
		"tmux in a keeper's words":       {parent: 80, told: true},
	} {
		kept, told := rows.of(row(50, c.parent, "sleep"), 20)
		got := ""
		if kept != nil {
			got = kept.Down()
		}
		if got != c.kept || told != c.told {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, told, c.kept, c.told)
		}
	}
}
