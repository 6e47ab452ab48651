package sweep

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"hob/identity"
)

func TestWhy(t *testing.T) {
	w := wanted{
		marker: "m1", task: "llm",
		recipe:   []string{"vllm", "serve", "qwen"},
		commands: [][]string{{"/usr/bin/python3", "-c", "worker"}},
		sessions: map[int]bool{20: true},
		ports:    map[int][]int{7: {8000, 8001}},
		gpus:     map[int]string{8: "0"},
	}
	env := func(e ...string) identity.Process { return identity.Process{PID: 5, Environ: e} }
	args := func(a ...string) identity.Process { return identity.Process{PID: 5, Args: a} }
	table := []struct {
		name string
		row  identity.Process
		want string
	}{
		{"nothing in common", args("bash"), ""},
		{"the marker", env("A=b", "HOB_RUN_ID=m1"), "marker"},
		{"the marker and the task", env("HOB_RUN_ID=m1", "HOB_TASK=llm"), "marker"},
		{"another task of the run", env("HOB_RUN_ID=m1", "HOB_TASK=other"), ""},
		{"a longer marker", env("HOB_RUN_ID=m12"), ""},
		{"the recipe's command line", args("vllm", "serve", "qwen"), "command"},
		{"by its path", args("/opt/venv/bin/vllm", "serve", "qwen"), "command"},
		{"behind an interpreter", args("/usr/bin/python3", "/opt/venv/bin/vllm", "serve", "qwen"), "command"},
		{"another model", args("vllm", "serve", "llama"), ""},
		{"more arguments", args("vllm", "serve", "qwen", "--port", "1"), ""},
		{"fewer", args("vllm", "serve"), ""},
		{"a member's live command line", args("/usr/bin/python3", "-c", "worker"), "command"},
		{"its ports", identity.Process{PID: 7}, "port 8000, port 8001"},
		{"its kernel session, without an anchor", identity.Process{PID: 5, SID: 20}, "sid"},
		{"the leader of a session with a number used again", identity.Process{PID: 20, SID: 20}, ""},
		{"its GPU", identity.Process{PID: 8}, "gpu 0"},
	}
	for _, row := range table {
		if got := strings.Join(w.why(row.row), ", "); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	if (wanted{}).why(env("HOB_RUN_ID=")) != nil {
		t.Error("without a marker nothing is marked")
	}
}

func TestTelling(t *testing.T) {
	table := []struct {
		args []string
		want bool
	}{
		{[]string{"bash"}, false}, {[]string{"-bash"}, false}, {[]string{"[kworker]"}, false}, {nil, false},
		{[]string{"/opt/model/run"}, true}, {[]string{"ollama", "serve"}, true},
	}
	for _, row := range table {
		if telling(row.args) != row.want {
			t.Errorf("%v: %v", row.args, !row.want)
		}
	}
}

func TestInspectionOf(t *testing.T) {
	row := func(missing identity.Field) identity.Process {
		return identity.Process{PID: 9, State: 'S', Missing: missing}
	}
	table := []struct {
		name  string
		table identity.Table
		want  string
		note  string
	}{
		{"all seen", identity.Table{Procs: []identity.Process{row(0)}}, inspectedFull, ""},
		{"hidepid", identity.Table{Hidden: true}, inspectedPartial, "hidepid"},
		{"a row that could not be read", identity.Table{Unreadable: []identity.Unreadable{{PID: 5, Err: errors.New("x")}}}, inspectedPartial, "1 process "},
		{"environments of others", identity.Table{Procs: []identity.Process{row(identity.WantEnviron), row(identity.WantEnviron)}}, inspectedPartial, "2 processes"},
		{"a start time is no evidence", identity.Table{Procs: []identity.Process{row(identity.WantStarted)}}, inspectedFull, ""},
		{"kernel threads have none", identity.Table{Procs: []identity.Process{{PID: 9, Kernel: true, Missing: identity.WantEnviron}}}, inspectedFull, ""},
		{"corpses neither", identity.Table{Procs: []identity.Process{{PID: 9, State: 'Z', Missing: identity.WantEnviron}}}, inspectedFull, ""},
	}
	for _, row := range table {
		got, notes := inspectionOf(&row.table)
		if got != row.want || !strings.Contains(strings.Join(notes, " "), row.note) {
			t.Errorf("%s: %s, %q", row.name, got, notes)
		}
	}
}

func TestWhose(t *testing.T) {
	table := []struct {
		environ []string
		want    string
	}{
		{[]string{"HOB_RUN=chat", "HOB_TASK=llm"}, "its environment says chat/llm"},
		{[]string{"HOB_RUN=chat"}, ""},
		{nil, ""},
	}
	for _, row := range table {
		if got := whose(row.environ); got != row.want {
			t.Errorf("%v: %q", row.environ, got)
		}
	}
}

func TestPortState(t *testing.T) {
	pid := func(n int) *int { return &n }
	table := []struct {
		name      string
		pids      []int
		note      string
		listening bool
		want      PortState
	}{
		{"nobody listens", nil, "", false, PortState{Port: 8000, State: "free"}},
		{"one does", []int{7}, "", true, PortState{Port: 8000, State: "held", PID: pid(7)}},
		{"two do (SO_REUSEPORT, or fork)", []int{7, 9}, "", true, PortState{Port: 8000, State: "held", PID: pid(7), Note: "also held by [9]"}},
		{"one that cannot be read", nil, "the open files of 3 processes could not be read", true,
			PortState{Port: 8000, State: "held", Note: "the open files of 3 processes could not be read"}},
		{"one that nobody shows", nil, "", true, PortState{Port: 8000, State: "held", Note: "no process shows the listening socket"}},
	}
	for _, row := range table {
		got := portState(8000, row.pids, row.note, row.listening)
		if got.State != row.want.State || got.Note != row.want.Note || (got.PID == nil) != (row.want.PID == nil) || got.PID != nil && *got.PID != *row.want.PID {
			t.Errorf("%s: %+v", row.name, got)
		}
	}
}

func TestListeners(t *testing.T) {
	at := func(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
	sockets := []identity.Socket{
		{Inode: 1, Local: at("127.0.0.1:8000"), Listen: true},
		{Inode: 2, Local: at("[::]:8000"), Listen: true},
		{Inode: 3, Local: at("127.0.0.1:8000"), Remote: at("127.0.0.1:5000")},
		{Inode: 4, Local: at("0.0.0.0:80"), Listen: true},
	}
	var got []uint64
	for _, s := range listeners(sockets, 8000) {
		got = append(got, s.Inode)
	}
	if !slices.Equal(got, []uint64{1, 2}) {
		t.Errorf("%v", got)
	}
}
