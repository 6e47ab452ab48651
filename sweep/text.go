package sweep

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"hob/sweep/gpu"
)

// TextOptions say how a report looks on a terminal.
type TextOptions struct {
	Width int  // columns; 0: lines are not cut
	Color bool // ANSI colours
}

// Text writes the report for people: the tree with each process's fate, what
// remains and what to do, what looks alike, the ports. What processes say of
// themselves is escaped, so that none can write to the terminal.
func (r Report) Text(w io.Writer, o TextOptions) error {
	p := &printer{o: o}
	p.head(r)
	p.members(r)
	p.ports(r)
	p.lookalikes(r)
	p.remains(r)
	p.host(r)
	_, err := io.WriteString(w, p.b.String())
	return err
}

// printer builds the text.
type printer struct {
	b strings.Builder
	o TextOptions
}

// Colours by meaning (SGR codes).
const (
	plainInk  = ""
	goodInk   = "32"
	warnInk   = "33"
	badInk    = "31"
	otherInk  = "36"
	strongInk = "1"
	faintInk  = "2"
)

var fateInk = map[Fate]string{
	Exited: goodInk, Terminated: goodInk, Killed: warnInk, ForeignFate: faintInk,
	Survived: badInk, Unverifiable: badInk, Spared: otherInk,
}

var verdictInk = map[Verdict]string{Clean: goodInk, Survivors: badInk, Unverified: badInk}

func (p *printer) ink(code, s string) string {
	if !p.o.Color || code == plainInk {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// line writes one line: head is never cut, tail gives way to the width. used is
// the number of columns that head takes on the screen.
func (p *printer) line(used int, head, tail string) {
	p.b.WriteString(strings.TrimRight(head+p.cut(tail, used), " "))
	p.b.WriteByte('\n')
}

func (p *printer) cut(s string, used int) string {
	if p.o.Width <= 0 {
		return s
	}
	room := max(p.o.Width-used, 8)
	if runes := []rune(s); len(runes) > room {
		return string(runes[:room-1]) + "…"
	}
	return s
}

func (p *printer) head(r Report) {
	name := safe(r.Run + "/" + r.Task)
	if r.living && r.Verdict == Clean {
		fmt.Fprintf(&p.b, "%s  lives  %s\n", p.ink(strongInk, name), p.ink(faintInk, "(looked for what looks like it: what is its own is left alone)"))
		return
	}
	if r.DryRun {
		fmt.Fprintf(&p.b, "%s  %s  %s\n", p.ink(strongInk, name), wouldBe[r.Verdict], p.ink(faintInk, "(dry run of "+safe(r.Reason)+": nothing was done)"))
		return
	}
	fmt.Fprintf(&p.b, "%s  %s  %s  %s\n", p.ink(strongInk, name), p.ink(verdictInk[r.Verdict], string(r.Verdict)),
		safe(r.Reason), p.ink(faintInk, "took "+took(r.Took())))
}

// wouldBe is what a dry run says in place of the verdict.
var wouldBe = map[Verdict]string{
	Clean:      "would be clean",
	Survivors:  "survivors would remain",
	Unverified: "could not all be verified",
}

// members draws the tree: pid, fate, signals and memory in columns, then the branch.
func (p *printer) members(r Report) {
	if len(r.Members) == 0 && !r.living {
		fmt.Fprintf(&p.b, "  %s\n", p.ink(faintInk, "no process was captured"))
	}
	gpus := slices.ContainsFunc(r.Members, func(m ReportMember) bool { return m.GPUBytes != nil })
	used := 42 + 10*count01(gpus)
	for _, row := range forest(r.Members) {
		m := r.Members[row.index]
		head := fmt.Sprintf("%9d  %s  %-9s  %9s  ", m.PID, p.ink(fateInk[m.Fate], fmt.Sprintf("%-12s", fateWord(m.Fate))),
			strings.Join(m.Signals, " "), amount(m.MemoryBytes))
		if gpus {
			head += fmt.Sprintf("%9s ", amount(m.GPUBytes))
		}
		p.line(used, head, row.branch+shown(m.Args))
		if m.Note != "" {
			p.line(used, strings.Repeat(" ", used), row.below+safe(m.Note))
		}
	}
}

// fateWord is the fate, or what a dry run says of the living.
func fateWord(f Fate) string {
	if f == "" {
		return "alive"
	}
	return string(f)
}

// shown is a command line, or that there is none to show.
func shown(args []string) string {
	if len(args) == 0 {
		return "(no command line)"
	}
	return CommandLine(args)
}

func count01(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (p *printer) ports(r Report) {
	for _, port := range r.Ports {
		ink, text := goodInk, port.State
		if port.State != "free" {
			ink = warnInk
		}
		if port.PID != nil {
			text += fmt.Sprintf(" by %d", *port.PID)
		}
		if port.Note != "" {
			text += " (" + safe(port.Note) + ")"
		}
		fmt.Fprintf(&p.b, "  port %d %s\n", port.Port, p.ink(ink, text))
	}
}

func (p *printer) lookalikes(r Report) {
	if len(r.Lookalikes) == 0 {
		return
	}
	title := "looks alike, not proven ours, not touched:"
	if r.DryRun {
		title = "looks alike, not proven ours, would not be touched:"
	}
	fmt.Fprintf(&p.b, "  %s\n", p.ink(strongInk, title))
	for _, l := range r.Lookalikes {
		since := "since ?"
		if l.StartedAt != nil {
			since = "since " + l.StartedAt.Local().Format("2006-01-02 15:04:05")
		}
		head := fmt.Sprintf("  %7d  %s  %s  same %s  ", l.PID, safe(who(l.User)), since, strings.Join(l.Why, ", "))
		p.line(len([]rune(head)), head, shown(l.Args))
		if l.Note != "" {
			p.line(11, strings.Repeat(" ", 11), safe(l.Note))
		}
		p.line(11, strings.Repeat(" ", 11), "to end it: "+toEnd(r, l))
	}
}

// toEnd is the command line that ends a look-alike.
func toEnd(r Report, l Lookalike) string {
	if l.Keeper != nil {
		return l.Keeper.Down()
	}
	return fmt.Sprintf("hob sweep %s/%s --take %s", safe(r.Run), safe(r.Task), Take{l.PID, l.Start})
}

func who(user string) string {
	if user == "" {
		return "user ?"
	}
	return user
}

// remains says what is left and what a person can do about it.
func (p *printer) remains(r Report) {
	advice := r.Advice()
	if len(advice) == 0 {
		return
	}
	fmt.Fprintf(&p.b, "  %s\n", p.ink(strongInk, "what remains:"))
	for _, a := range advice {
		fmt.Fprintf(&p.b, "    %s\n", safe(a))
	}
}

func (p *printer) host(r Report) {
	if r.Host.Inspection != inspectedFull {
		fmt.Fprintf(&p.b, "  inspection: %s\n", p.ink(warnInk, r.Host.Inspection))
	}
	for _, n := range r.notesToShow() {
		fmt.Fprintf(&p.b, "    %s\n", p.ink(faintInk, safe(n)))
	}
}

// notesToShow leaves out, for people, that a host has no GPU (most have none) or
// was not asked. The JSON has it, since gpu_bytes is null there.
func (r Report) notesToShow() []string {
	return slices.DeleteFunc(slices.Clone(r.Host.Notes), func(n string) bool { return n == gpu.NoGPU || n == gpu.NotRead })
}

// CommandLine is a command line as one would type it, on one line, with
// everything escaped that could move a cursor or hide another character.
func CommandLine(args []string) string {
	words := make([]string, 0, len(args))
	for _, a := range args {
		words = append(words, word(a))
	}
	return strings.Join(words, " ")
}

func word(a string) string {
	const special = " \t\n\"'`$&|;<>()*?#~\\{}!"
	if a != "" && safe(a) == a && !strings.ContainsAny(a, special) {
		return a
	}
	return strconv.Quote(a)
}

// safe escapes what is not printable (control characters, invalid UTF-8, marks
// that turn the direction of text).
func safe(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) < 0 {
		return s
	}
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// took is a duration as a person reads it.
func took(d time.Duration) string {
	switch {
	case d < 0:
		return "?"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// amount is a number of bytes for people; "-" when it is not known.
func amount(n *int64) string {
	if n == nil {
		return "-"
	}
	const unit = 1024
	f, units := float64(*n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for f >= unit && i < len(units)-1 {
		f, i = f/unit, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", *n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}
