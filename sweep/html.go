package sweep

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"sync"
	"time"
)

//go:embed report.html.tmpl
var htmlText string

// htmlPage is parsed when a page is asked for: every keeper is this program, too.
var htmlPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("report").Parse(htmlText))
})

// HTML writes reports as one page that needs nothing else: the trees drawn, fates
// coloured, and a timeline of signals and ends. What processes say of
// themselves is escaped twice, for the page and for the eye.
func HTML(w io.Writer, reports []Report) error {
	page := struct{ Reports []htmlReport }{}
	for _, r := range reports {
		page.Reports = append(page.Reports, newHTMLReport(r))
	}
	if err := htmlPage().Execute(w, page); err != nil {
		return fmt.Errorf("write the report as a page: %w", err)
	}
	return nil
}

// htmlReport is a report as the page shows it.
type htmlReport struct {
	Name, Verdict, Reason, Took, Started, Inspection string
	GPU                                              bool
	Rows                                             []htmlRow
	Ticks                                            []htmlTick
	Ports                                            []htmlPort
	Lookalikes                                       []htmlLike
	Advice                                           [][]htmlWord
	Notes                                            []string
}

// htmlWord is a piece of a sentence, one that is to be typed if Code.
type htmlWord struct {
	Text string
	Code bool
}

// htmlRow is a member: a line of the tree, and its line of the timeline.
type htmlRow struct {
	Branch, Below, Command, Fate, Memory, GPU, Evidence, Note string
	PID                                                       int
	End                                                       float64 // where its line ends, in per cent of the time
	Open                                                      bool    // it lives on
	Marks                                                     []htmlMark
}

// htmlMark is a signal on the timeline.
type htmlMark struct {
	At           float64
	Signal, When string
}

// htmlTick is a time on the axis.
type htmlTick struct {
	At   float64
	Text string
}

type htmlPort struct{ Port, State, Note string }

type htmlLike struct {
	PID                             int
	Command, User, Since, Why, Note string
	End                             string
}

func newHTMLReport(r Report) htmlReport {
	h := htmlReport{Name: safe(r.Run + "/" + r.Task), Verdict: string(r.Verdict), Reason: safe(r.Reason), Took: took(r.Took()),
		Started: clock(r.StartedAt), Inspection: r.Host.Inspection, Ticks: ticks(r.Took())}
	for _, b := range forest(r.Members) {
		m := r.Members[b.index]
		h.GPU = h.GPU || m.GPUBytes != nil
		h.Rows = append(h.Rows, newHTMLRow(r, m, b))
	}
	for _, p := range r.Ports {
		h.Ports = append(h.Ports, htmlPort{fmt.Sprint(p.Port), p.State, portNote(p)})
	}
	for _, l := range r.Lookalikes {
		h.Lookalikes = append(h.Lookalikes, htmlLike{PID: l.PID, Command: shown(l.Args), User: safe(who(l.User)), Since: since(l),
			Why: strings.Join(l.Why, ", "), Note: safe(l.Note), End: toEnd(r, l)})
	}
	for _, a := range r.Advice() {
		h.Advice = append(h.Advice, htmlWords(safe(a)))
	}
	for _, n := range r.notesToShow() {
		h.Notes = append(h.Notes, safe(n))
	}
	return h
}

func newHTMLRow(r Report, m ReportMember, b branch) htmlRow {
	row := htmlRow{Branch: b.branch, Below: b.below, PID: m.PID, Command: shown(m.Args), Fate: fateWord(m.Fate), Memory: amount(m.MemoryBytes),
		GPU: amount(m.GPUBytes), Evidence: evidenceText(m.Evidence), Note: safe(m.Note), End: 100, Open: m.EndedAt == nil}
	if m.EndedAt != nil {
		row.End = share(r, *m.EndedAt)
	}
	for _, s := range m.Sent {
		row.Marks = append(row.Marks, htmlMark{share(r, s.At), s.Signal, took(max(0, s.At.Sub(r.StartedAt)))})
	}
	return row
}

// share is where a time lies between the begin and the end of the report, in
// per cent. What happened before (in a stop that was cut) is at the begin.
func share(r Report, t time.Time) float64 {
	if r.Took() <= 0 {
		return 0
	}
	at := 100 * float64(t.Sub(r.StartedAt)) / float64(r.Took())
	return math.Round(10*min(max(at, 0), 100)) / 10
}

// ticks are about five round times for the axis.
func ticks(d time.Duration) []htmlTick {
	if d <= 0 {
		return nil
	}
	step := time.Millisecond
	for _, factor := range []time.Duration{1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 36e5} {
		if step = factor * time.Millisecond; d/step <= 5 {
			break
		}
	}
	var out []htmlTick
	for at := time.Duration(0); at < d && len(out) < 20; at += step {
		tick := htmlTick{math.Round(1000*float64(at)/float64(d)) / 10, at.String()}
		if tick.At > 92 {
			tick.Text = "" // it would stand over the edge
		}
		out = append(out, tick)
	}
	return out
}

// htmlWords sets what stands between backticks apart.
func htmlWords(s string) []htmlWord {
	var out []htmlWord
	for i, part := range strings.Split(s, "`") {
		out = append(out, htmlWord{part, i%2 == 1})
	}
	return out
}

func evidenceText(evidence []Evidence) string {
	words := make([]string, 0, len(evidence))
	for _, e := range evidence {
		words = append(words, fmt.Sprintf("%s (%c)", safe(string(e)), e.Grade()))
	}
	return strings.Join(words, ", ")
}

func portNote(p PortState) string {
	note := safe(p.Note)
	if p.PID != nil {
		note = strings.TrimSpace(fmt.Sprintf("by %d %s", *p.PID, note))
	}
	return note
}

func since(l Lookalike) string {
	if l.StartedAt == nil {
		return "?"
	}
	return clock(*l.StartedAt)
}

func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
