package sweep

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"strings"
	"time"
)

//go:embed report.css
var reportCSS string

// HTML writes reports as one page that needs nothing else: the tree of each with
// its fates, the signals and exits along the time, what looks alike, what
// remains. What processes say of themselves is escaped twice: against the
// terminal, as everywhere, and against the page.
func HTML(w io.Writer, reports []Report) error {
	p := &page{}
	p.b.WriteString("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n")
	p.put("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>hob: %s</title>\n<style>\n", titles(reports))
	p.b.WriteString(reportCSS + "</style></head><body>\n")
	for _, r := range reports {
		p.report(r)
	}
	p.b.WriteString("</body></html>\n")
	_, err := io.WriteString(w, p.b.String())
	return err
}

func titles(reports []Report) string {
	var names []string
	for _, r := range reports {
		names = append(names, r.Run+"/"+r.Task)
	}
	return strings.Join(names, ", ")
}

// page builds the text.
type page struct {
	b strings.Builder
}

// put writes markup with texts in it; each text is escaped.
func (p *page) put(format string, texts ...string) {
	args := make([]any, len(texts))
	for i, t := range texts {
		args[i] = html.EscapeString(safe(t))
	}
	fmt.Fprintf(&p.b, format, args...)
}

func (p *page) report(r Report) {
	p.put("<section><h1>%s <span class=\"badge %s\">%s</span></h1>\n", r.Run+"/"+r.Task, string(r.Verdict), string(r.Verdict))
	p.put("<p class=\"faint\">%s, began %s, took %s, inspection %s, %s</p>\n",
		r.Reason, r.StartedAt.Format(time.RFC3339), took(r.Took()), r.Host.Inspection, r.Host.OS)
	p.tree(r)
	p.timeline(r)
	p.list("Ports", portLines(r))
	p.list("Looks alike, not proven ours, not touched", lookalikeLines(r))
	p.list("What remains", r.Advice())
	p.list("Notes", r.Host.Notes)
	p.b.WriteString("</section>\n")
}

func (p *page) tree(r Report) {
	if len(r.Members) == 0 {
		p.b.WriteString("<p>No process was captured.</p>\n")
		return
	}
	p.b.WriteString("<table><thead><tr><th>pid<th>fate<th>signals<th>memory<th>evidence<th>process</tr></thead><tbody>\n")
	for _, row := range forest(r.Members) {
		m := r.Members[row.index]
		var evidence []string
		for _, e := range m.Evidence {
			evidence = append(evidence, string(e))
		}
		fate := fateText(m.Fate)
		p.put("<tr><td class=\"n\">%s<td class=\"fate %s\">%s<td>%s<td class=\"n\">%s<td>%s<td class=\"tree\">%s%s",
			fmt.Sprint(m.PID), fate, fate, strings.Join(m.Signals, " "), amount(m.MemoryBytes), strings.Join(evidence, " "),
			row.branch, CommandLine(m.Args))
		if m.Note != "" {
			p.put("<br><span class=\"faint\">%s</span>", m.Note)
		}
		p.b.WriteString("</tr>\n")
	}
	p.b.WriteString("</tbody></table>\n")
}

// The timeline's measures, in units of its own.
const (
	timelineWidth = 1000
	timelineLeft  = 90
	timelineRow   = 22
)

// timeline draws a line for each process: from the start of the stop to its end,
// with a mark for every signal.
func (p *page) timeline(r Report) {
	if len(r.Members) == 0 || r.Took() <= 0 {
		return
	}
	height := timelineRow*len(r.Members) + timelineRow
	fmt.Fprintf(&p.b, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"signals and exits\">\n", timelineWidth, height)
	x := func(t time.Time) float64 {
		at := float64(t.Sub(r.StartedAt)) / float64(r.Took())
		return timelineLeft + min(max(at, 0), 1)*(timelineWidth-timelineLeft-60)
	}
	for i, row := range forest(r.Members) {
		p.lifeline(r.Members[row.index], timelineRow*i+timelineRow/2+4, x, r.EndedAt)
	}
	y := timelineRow*len(r.Members) + timelineRow/2 + 4
	p.put("<text x=\"%s\" y=\"%s\" class=\"faint\">0</text>", fmt.Sprint(timelineLeft), fmt.Sprint(y))
	p.put("<text x=\"%s\" y=\"%s\" class=\"faint\" text-anchor=\"end\">%s</text></svg>\n", fmt.Sprint(timelineWidth-60), fmt.Sprint(y), took(r.Took()))
}

func (p *page) lifeline(m ReportMember, y int, x func(time.Time) float64, end time.Time) {
	until, ended := end, m.EndedAt != nil
	if ended {
		until = *m.EndedAt
	}
	fate := fateText(m.Fate)
	fmt.Fprintf(&p.b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%d</text>", timelineLeft-10, y+4, m.PID)
	p.put("<line class=\"%s\" ", fate)
	fmt.Fprintf(&p.b, "x1=\"%d\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", timelineLeft, x(until), y, y)
	for _, s := range m.Sent {
		fmt.Fprintf(&p.b, "<line class=\"signal\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x(s.At), x(s.At), y-7, y+7)
		fmt.Fprintf(&p.b, "<text class=\"signal\" x=\"%.1f\" y=\"%d\">", x(s.At)+3, y-2)
		p.put("%s</text>", s.Signal)
	}
	if ended {
		p.put("<circle class=\"%s\" ", fate)
		fmt.Fprintf(&p.b, "cx=\"%.1f\" cy=\"%d\" r=\"4\"/>", x(until), y)
	}
	p.b.WriteString("\n")
}

func (p *page) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.put("<h2>%s</h2><ul>\n", title)
	for _, l := range lines {
		p.put("<li>%s</li>\n", l)
	}
	p.b.WriteString("</ul>\n")
}

func portLines(r Report) []string {
	var lines []string
	for _, port := range r.Ports {
		line := fmt.Sprintf("%d %s", port.Port, port.State)
		if port.PID != nil {
			line += fmt.Sprintf(" by %d", *port.PID)
		}
		if port.Note != "" {
			line += " (" + port.Note + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

func lookalikeLines(r Report) []string {
	var lines []string
	for _, l := range r.Lookalikes {
		line := fmt.Sprintf("%d, %s, same %s: %s", l.PID, who(l.User), strings.Join(l.Why, ", "), CommandLine(l.Args))
		if l.Note != "" {
			line += " (" + l.Note + ")"
		}
		lines = append(lines, line)
	}
	return lines
}
