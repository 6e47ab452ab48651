package sweep

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func inUTC(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = local })
}

func TestHTML(t *testing.T) {
	inUTC(t)
	r := sample()
	r.Members[1].Args = []string{"</td><script>alert(1)</script>", "\x1b[2J\u202e"}
	r.Members[2].Note = `"><img src=x onerror=alert(1)>`
	r.Lookalikes[0].User = "<b>"
	r.Members[3].Sent = []Sent{{"TERM", at(1)}, {"KILL", at(2)}}
	var b strings.Builder
	if err := HTML(&b, []Report{r, {Run: "a", Task: "b", Verdict: Clean, StartedAt: noon, EndedAt: noon}}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	golden(t, "report.html", page)
	for _, bad := range []string{"<script>alert", "<img", "<b>", "\x1b", "\u202e", "http://", "https://", "src=", "@import"} {
		if strings.Contains(strings.ReplaceAll(page, `src=x`, ""), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	wellFormed(t, page)
	if err := HTML(brokenWriter{}, []Report{r}); err == nil {
		t.Error("a page that could not be written is no page")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("full") }

// wellFormed checks that every element is closed.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = true, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestShare(t *testing.T) {
	r := Report{StartedAt: noon, EndedAt: at(10)}
	for s, want := range map[float64]float64{0: 0, 2.5: 25, 10: 100, -3: 0, 99: 100} {
		if got := share(r, at(s)); got != want {
			t.Errorf("%v s: %v, want %v", s, got, want)
		}
	}
	if share(Report{StartedAt: noon, EndedAt: noon}, at(1)) != 0 {
		t.Error("a report without a duration")
	}
}

func TestTicks(t *testing.T) {
	table := []struct {
		took time.Duration
		want string
	}{
		{0, ""}, {3 * time.Millisecond, "0s 1ms 2ms"}, {3250 * time.Millisecond, "0s 1s 2s "},
		{35 * time.Second, "0s 10s 20s 30s"}, {10 * time.Minute, "0s 2m0s 4m0s 6m0s 8m0s"},
	}
	for _, row := range table {
		var got []string
		for _, tick := range ticks(row.took) {
			got = append(got, tick.Text)
		}
		if s := strings.Join(got, " "); s != row.want {
			t.Errorf("%v: %s, want %s", row.took, s, row.want)
		}
	}
	if n := len(ticks(1000 * time.Hour)); n > 20 {
		t.Errorf("%d ticks", n)
	}
}

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
