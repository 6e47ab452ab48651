package sweep

import (
	_ "embed"
	"fmt"
	"html"
	"strings"
)

//go:embed report.css
var htmlStyle string

// htmlPage is a page that grows. It is put together here and not by html/template,
// which calls methods by their names: with it the linker keeps every method of every
// type, and all of it is part of each keeper, too.
type htmlPage struct{ strings.Builder }

// put adds a piece of the page. Whatever is filled in is escaped, as text and as an
// attribute in double quotes: no form puts it anywhere else.
func (p *htmlPage) put(form string, values ...any) {
	for i, v := range values {
		values[i] = html.EscapeString(fmt.Sprint(v))
	}
	fmt.Fprintf(p, form, values...)
}

// each calls add for each of the values, between head and foot; with none there is nothing.
func each[T any](p *htmlPage, head string, values []T, foot string, add func(T)) {
	if len(values) == 0 {
		return
	}
	p.WriteString(head)
	for _, v := range values {
		add(v)
	}
	p.WriteString(foot)
}

func (p *htmlPage) all(reports []htmlReport) {
	p.put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>hob report`)
	for _, r := range reports {
		p.put(` · %v %v`, r.Name, r.Verdict)
	}
	p.put("</title>\n<style>\n")
	p.WriteString(htmlStyle)
	p.put("</style>\n</head>\n<body>\n")
	for _, r := range reports {
		p.report(r)
	}
	p.put("</body>\n</html>\n")
}

func (p *htmlPage) report(r htmlReport) {
	p.put("<article>\n<h1>%v <span class=\"chip %v\">%v</span></h1>\n", r.Name, r.Verdict, r.Verdict)
	p.put("<p class=\"meta\">%v · %v · took %v · inspection %v</p>\n", r.Reason, r.Started, r.Took, r.Inspection)
	each(p, `<h2>What remains</h2><ul>`, r.Advice, `</ul>`, p.advice)
	p.put("\n<h2>Processes</h2>\n")
	p.processes(r)
	p.put("\n")
	each(p, `<h2>Ports</h2><p>`, r.Ports, `</p>`, func(o htmlPort) {
		p.put(`<span class="chip %v">%v %v</span> <span class="note">%v</span> `, o.State, o.Port, o.State, o.Note)
	})
	p.put("\n")
	each(p, `<h2>Looks alike, not proven ours, not touched</h2><div class="scroll"><table>
<thead><tr><th class="num">pid</th><th>same</th><th>user</th><th>since</th><th>command</th><th>to end it</th></tr></thead>
<tbody>`, r.Lookalikes, `</tbody></table></div>`, func(l htmlLike) { p.lookalike(r, l) })
	p.put("\n")
	each(p, `<h2>Notes</h2><ul class="note">`, r.Notes, `</ul>`, func(n string) { p.put(`<li>%v</li>`, n) })
	p.put("\n</article>\n")
}

func (p *htmlPage) advice(words []htmlWord) {
	p.put(`<li>`)
	for _, w := range words {
		if w.Code {
			p.put(`<code>%v</code>`, w.Text)
		} else {
			p.put(`%v`, w.Text)
		}
	}
	p.put(`</li>`)
}

func (p *htmlPage) processes(r htmlReport) {
	if len(r.Rows) == 0 {
		p.put(`<p class="meta">No process was captured.</p>`)
		return
	}
	p.put(`<div class="scroll"><table>
<thead><tr><th class="num">pid</th><th class="tight">fate</th><th>command</th><th class="num">memory</th>`)
	if r.GPU {
		p.put(`<th class="num">GPU</th>`)
	}
	p.put("<th class=\"time\">\n<svg role=\"img\" aria-label=\"time since the begin\">")
	for _, t := range r.Ticks {
		p.put(`<text x="%v%%" y="1.2em">%v</text>`, t.At, t.Text)
	}
	p.put("</svg></th></tr></thead>\n<tbody>")
	for _, row := range r.Rows {
		p.row(r, row)
	}
	p.put(`</tbody></table></div>
<p class="meta">Open dots are signals, red ones KILL; a line ends where the process's end was seen.</p>`)
}

func (p *htmlPage) row(r htmlReport, row htmlRow) {
	p.put("<tr>\n<td class=\"num\">%v</td>\n<td><span class=\"chip %v\">%v</span></td>\n", row.PID, row.Fate, row.Fate)
	p.put(`<td class="cmd" title="%v · evidence: %v"><span class="branch">%v</span>%v`, row.Command, row.Evidence, row.Branch, row.Command)
	if row.Note != "" {
		p.put("\n<span class=\"branch\">%v</span><span class=\"note\">%v</span>", row.Below, row.Note)
	}
	p.put("</td>\n<td class=\"num\">%v</td>", row.Memory)
	if r.GPU {
		p.put(`<td class="num">%v</td>`, row.GPU)
	}
	p.put("\n<td class=\"time %v\">", row.Fate)
	p.timeline(r, row)
	p.put("</td>\n</tr>")
}

func (p *htmlPage) timeline(r htmlReport, row htmlRow) {
	p.put(`<svg role="img" aria-label="`)
	for _, m := range row.Marks {
		p.put(`%v after %v, `, m.Signal, m.When)
	}
	p.put("%v\">\n", row.Fate)
	for _, t := range r.Ticks {
		p.put(`<line class="grid" x1="%v%%" x2="%v%%" y1="0" y2="100%%"/>`, t.At, t.At)
	}
	open := ""
	if row.Open {
		open = " open"
	}
	p.put("\n<line class=\"life%v\" x1=\"0\" x2=\"%v%%\" y1=\"50%%\" y2=\"50%%\"/>\n", open, row.End)
	if !row.Open {
		p.put(`<circle class="end" cx="%v%%" cy="50%%" r="4"><title>%v</title></circle>`, row.End, row.Fate)
	}
	p.put("\n")
	for _, m := range row.Marks {
		p.put(`<circle class="mark %v" cx="%v%%" cy="50%%" r="3.5"><title>%v after %v</title></circle>`, m.Signal, m.At, m.Signal, m.When)
	}
	p.put("</svg>")
}

func (p *htmlPage) lookalike(r htmlReport, l htmlLike) {
	p.put("<tr><td class=\"num\">%v</td><td>%v</td><td>%v</td><td>%v</td>\n<td class=\"cmd wrap\">%v", l.PID, l.Why, l.User, l.Since, l.Command)
	if l.Note != "" {
		p.put("\n<span class=\"note\">%v</span>", l.Note)
	}
	p.put(`</td><td><code>hob sweep %v --take %v</code></td></tr>`, r.Name, l.Take)
}
