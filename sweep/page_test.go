package sweep

import (
	"strings"
	"testing"
	"time"
)

// hostileReport is of processes that would like to write to the page.
func hostileReport() Report {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	end := at.Add(800 * time.Millisecond)
	port, memory := 7, int64(3<<20)
	return Report{
		Run: "chat", Task: "llm", Reason: "down", StartedAt: at, EndedAt: at.Add(time.Second), Verdict: Survivors,
		Host: ReportHost{OS: "linux", Inspection: "partial", Notes: []string{"hidepid <b>hides</b> others"}},
		Members: []ReportMember{
			{PID: 10, Args: []string{"vllm", "serve"}, Evidence: []Evidence{Captured}, Fate: Terminated, Signals: []string{"TERM"},
				Sent: []Sent{{Signal: "TERM", At: at.Add(100 * time.Millisecond)}}, EndedAt: &end, MemoryBytes: &memory},
			{PID: 11, Parent: 10, Args: []string{"<script>alert(1)</script>", "a|b", "``", "\x1b[2J"}, Evidence: []Evidence{Child}, Fate: Survived,
				Signals: []string{"TERM", "KILL"}, Note: "stuck: state D | x"},
		},
		Lookalikes: []Lookalike{{PID: 99, User: "eve", Why: []string{"command"}, Args: []string{"</li><img src=x>"}}},
		Ports:      []PortState{{Port: 8000, State: "held", PID: &port}},
	}
}

func TestHTML(t *testing.T) {
	var b strings.Builder
	if err := HTML(&b, []Report{hostileReport()}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"<script", "<img", "<b>hides", "\x1b"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, want := range []string{
		"<!DOCTYPE html>", `<span class="badge survivors">survivors</span>`, `class="fate terminated">terminated`,
		"└─ ", "&lt;script&gt;", "<svg ", ">TERM</text>", `<circle class="terminated"`, "8000 held by 7", "99, eve, same command",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "http://") || strings.Contains(page, "https://") {
		t.Error("the page needs something else")
	}
}

func TestMarkdown(t *testing.T) {
	var b strings.Builder
	if err := hostileReport().Markdown(&b); err != nil {
		t.Fatal(err)
	}
	want := "### `chat/llm`: survivors\n\n" +
		"down, took 1s, inspection partial, linux\n\n" +
		"| pid | fate | signals | memory | command |\n|---:|---|---|---:|---|\n" +
		"| 10 | terminated | TERM | 3.0 MiB | `vllm serve` |\n" +
		"| 11 | survived | TERM KILL | - | ``` └─ \"<script>alert(1)</script>\" \"a\\|b\" \"``\" \"\\x1b[2J\" ```<br>stuck: state D \\| x |\n\n" +
		"- port 8000: held by 7\n" +
		"- looks alike, not touched: 99 (`eve`), same command: `\"</li><img src=x>\"`\n"
	if got := b.String(); !strings.HasPrefix(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
