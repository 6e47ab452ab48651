package sweep

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hob/sweep/gpu"
)

// sample is a report with one of everything.
func sample() Report {
	ended, started := at(3), at(-3600)
	memory, card, pid := int64(3<<30), int64(16<<30), 5123
	return Report{
		Schema: 1, Run: "chat", Task: "llm", Reason: "down", StartedAt: noon, EndedAt: at(3.25),
		Host: ReportHost{OS: "linux", Boot: "b", Inspection: inspectedPartial, Notes: []string{"the environment of 2 processes could not be read", gpu.NoGPU}},
		Members: []ReportMember{
			{PID: 100, Start: "linux:1", Parent: 90, Args: []string{"vllm", "serve", "a b"}, Evidence: []Evidence{Captured},
				Signals: []string{"TERM"}, Fate: Terminated, MemoryBytes: &memory, GPUBytes: &card, Sent: sent("TERM"), EndedAt: &ended},
			{PID: 101, Start: "linux:2", Parent: 100, Args: []string{"engine\x1b]0;owned\x07core"}, Evidence: []Evidence{Captured},
				Signals: []string{"TERM", "KILL"}, Fate: Killed, EndedAt: &ended},
			{PID: 103, Start: "linux:4", Parent: 101, Args: []string{"worker", "0"}, Evidence: []Evidence{Child}, Fate: Exited, EndedAt: &ended},
			{PID: 104, Start: "linux:5", Parent: 101, Args: []string{"worker", "1"}, Evidence: []Evidence{Adopted},
				Signals: []string{"TERM", "KILL"}, Fate: Survived, Note: "stuck: alive after KILL, in state D, waiting in nv_ioctl"},
			{PID: 102, Start: "linux:3", Parent: 100, Args: []string{"ssh-agent"}, Evidence: []Evidence{Captured}, Fate: Spared, Note: "left alone: stop.spare"},
			{PID: 110, Start: "linux:9", Parent: 90, Args: nil, Evidence: []Evidence{Captured, Adopted}, Fate: Unverifiable, Note: "could not be verified: hidden"},
		},
		Lookalikes: []Lookalike{{PID: pid, Start: "linux:7", Args: []string{"vllm", "serve", "a b"}, User: "ada", StartedAt: &started,
			Why: []string{"command", "port 8000"}, Note: "its environment says other/llm"}},
		Ports:   []PortState{{Port: 8000, State: "held", PID: &pid}, {Port: 8001, State: "free"}, {Port: 8002, State: "unknown", Note: "no access"}},
		Verdict: Survivors,
	}
}

// golden compares with a file in testdata; HOB_UPDATE_GOLDEN=1 writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("HOB_UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (HOB_UPDATE_GOLDEN=1 writes it):\n%s", name, got)
	}
}

func TestText(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	defer func() { time.Local = local }()
	for name, o := range map[string]TextOptions{"report.txt": {}, "report-80.txt": {Width: 80}, "report-color.txt": {Width: 100, Color: true}} {
		var b strings.Builder
		if err := sample().Text(&b, o); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.String())
	}
}

// TestNothingOfAProcessReachesTheTerminalRaw: whatever it calls itself.
func TestNothingOfAProcessReachesTheTerminalRaw(t *testing.T) {
	nasty := "a\x1b[2J\r\n\tb\u202ec\x9b31m\xff\x00"
	r := sample()
	r.Members[0].Args, r.Members[0].Note = []string{nasty, nasty}, nasty
	r.Lookalikes[0].Args, r.Lookalikes[0].User, r.Lookalikes[0].Note = []string{nasty}, nasty, nasty
	r.Host.Notes = []string{nasty}
	r.Ports[0].Note, r.Reason = nasty, nasty
	var b strings.Builder
	if err := r.Text(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range b.String() {
		if c != '\n' && (c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 || c == '\u202e' || c == '\ufffd') {
			t.Fatalf("%U reached the terminal: %q", c, b.String())
		}
	}
}

func TestCommandLine(t *testing.T) {
	table := []struct {
		args []string
		want string
	}{
		{[]string{"vllm", "serve", "Qwen/Qwen3-8B", "--port=8000"}, "vllm serve Qwen/Qwen3-8B --port=8000"},
		{[]string{"sh", "-c", "a; b"}, `sh -c "a; b"`},
		{[]string{"", "ä"}, `"" ä`},
		{[]string{"a\nb"}, `"a\nb"`},
		{nil, ""},
	}
	for _, row := range table {
		if got := CommandLine(row.args); got != row.want {
			t.Errorf("%q: %s, want %s", row.args, got, row.want)
		}
	}
}

// TestJSON: the contract, with empty lists as [] and unknown numbers as null.
func TestJSON(t *testing.T) {
	full, err := json.MarshalIndent([]Report{sample()}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", string(full)+"\n")
	empty, err := json.Marshal([]Report{{Members: []ReportMember{{}}, Lookalikes: []Lookalike{{}}}, {}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"members":[]`, `"lookalikes":[]`, `"ports":[]`, `"notes":[]`, `"args":[]`, `"evidence":[]`,
		`"signals":[]`, `"why":[]`, `"gpu_bytes":null`, `"memory_bytes":null`, `"started_at":null`} {
		if !strings.Contains(string(empty), want) {
			t.Errorf("no %s in %s", want, empty)
		}
	}
	var back []Report
	if err := json.Unmarshal(full, &back); err != nil {
		t.Fatal(err)
	}
	again, _ := json.MarshalIndent(back, "", "  ")
	if string(again) != string(full) {
		t.Error("a report changes when it is read and written")
	}
}

func TestForest(t *testing.T) {
	m := func(pid, parent int) ReportMember { return ReportMember{PID: pid, Parent: parent} }
	table := []struct {
		name    string
		members []ReportMember
		want    string
	}{
		{"a chain", []ReportMember{m(2, 1), m(3, 2), m(4, 3)}, "2; └─ 3;    └─ 4"},
		{"siblings in order", []ReportMember{m(2, 1), m(3, 2), m(9, 1), m(4, 2)}, "2; ├─ 3; └─ 4; 9"},
		{"a number used again", []ReportMember{m(2, 1), m(3, 2), m(2, 3), m(5, 2)}, "2; └─ 3;    └─ 2;       └─ 5"},
		{"its own parent", []ReportMember{m(2, 2)}, "2"},
		{"a parent that came later is none", []ReportMember{m(3, 2), m(2, 1)}, "3; 2"},
	}
	for _, row := range table {
		var lines []string
		for _, b := range forest(row.members) {
			lines = append(lines, b.branch+itoa(row.members[b.index].PID))
		}
		if got := strings.Join(lines, "; "); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

func TestAdvice(t *testing.T) {
	got := strings.Join(sample().Advice(), "\n")
	golden(t, "advice.txt", got+"\n")
	clean := Report{Run: "a", Task: "b", Members: []ReportMember{{PID: 3, Fate: Killed}}, Verdict: Clean}
	if a := clean.Advice(); len(a) > 0 {
		t.Errorf("nothing remains, and yet: %q", a)
	}
	blind := Report{Run: "a", Task: "b", Verdict: Unverified}
	if a := blind.Advice(); len(a) != 1 {
		t.Errorf("what could not be seen: %q", a)
	}
}
