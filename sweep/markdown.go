package sweep

import (
	"fmt"
	"io"
	"strings"
)

// Markdown writes the report for pasting into an issue. What processes say of
// themselves stands in code spans that it cannot leave.
func (r Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %s\n\n", code(r.Run+"/"+r.Task), r.Verdict)
	fmt.Fprintf(&b, "%s, took %s, inspection %s, %s\n\n", safe(r.Reason), took(r.Took()), r.Host.Inspection, safe(r.Host.OS))
	markdownMembers(&b, r)
	for _, p := range r.Ports {
		fmt.Fprintf(&b, "- port %d: %s\n", p.Port, portText(p))
	}
	for _, l := range r.Lookalikes {
		fmt.Fprintf(&b, "- looks alike, not touched: %d (%s), same %s: %s\n", l.PID, code(who(l.User)), strings.Join(l.Why, ", "), code(shown(l.Args)))
	}
	for _, a := range r.Advice() {
		fmt.Fprintf(&b, "- remains: %s\n", text(a))
	}
	for _, n := range r.notesToShow() {
		fmt.Fprintf(&b, "- note: %s\n", text(n))
	}
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}

func markdownMembers(b *strings.Builder, r Report) {
	if len(r.Members) == 0 {
		b.WriteString("No process was captured.\n\n")
		return
	}
	b.WriteString("| pid | fate | signals | memory | command |\n|---:|---|---|---:|---|\n")
	for _, row := range forest(r.Members) {
		m := r.Members[row.index]
		command := code(row.branch + shown(m.Args))
		if m.Note != "" {
			command += "<br>" + text(m.Note)
		}
		fmt.Fprintf(b, "| %d | %s | %s | %s | %s |\n", m.PID, fateWord(m.Fate), strings.Join(m.Signals, " "), amount(m.MemoryBytes), command)
	}
	b.WriteString("\n")
}

// code is a code span: its fence is longer than any run of backticks inside, and
// a "|" would end a table's cell even there.
func code(s string) string {
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	pad := pick(len(fence) > 1, " ", "")
	return fence + pad + strings.ReplaceAll(s, "|", `\|`) + pad + fence
}

// text is words of hob's own that may hold some of others.
func text(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`).Replace(safe(s))
}

func portText(p PortState) string {
	t := p.State
	if p.PID != nil {
		t += fmt.Sprintf(" by %d", *p.PID)
	}
	if p.Note != "" {
		t += " (" + text(p.Note) + ")"
	}
	return t
}
