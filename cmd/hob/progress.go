package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"

	"hob/tasks"
)

// progress shows what a verb is doing: on a terminal a line for each task that
// is drawn anew, elsewhere a plain line for each step.
type progress struct {
	a     *app
	m     *tasks.Manager
	mu    sync.Mutex
	rows  []tasks.Progress
	drawn int // lines on the screen now
	quit  chan struct{}
	done  chan struct{}
}

// progress begins to show what the manager tells.
func (a *app) progress(m *tasks.Manager) *progress {
	p := &progress{a: a, m: m, quit: make(chan struct{}), done: make(chan struct{})}
	m.Warn = func(what string) { a.note("note: %s", what) }
	if a.quiet || a.json {
		close(p.done)
		return p
	}
	m.Tell = p.tell
	if !a.errTTY {
		close(p.done)
		return p
	}
	a.drawing.Store(p)
	go p.draw()
	return p
}

// stop ends the drawing; the last picture stays.
func (p *progress) stop() {
	close(p.quit)
	<-p.done
	p.a.drawing.Store(nil)
}

func (p *progress) tell(n tasks.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if step, more := p.news(n); !p.a.errTTY {
		p.plain(n, step, more)
	}
}

// plainly tells each step as a line, also on a terminal: for a verb that shows
// the tasks' own output beside it.
func (p *progress) plainly(n tasks.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if step, more := p.news(n); !p.a.quiet {
		p.plain(n, step, more)
	}
}

// news takes a step in, and reports whether it is a new one, and whether another
// tenth has been loaded.
func (p *progress) news(n tasks.Progress) (step, more bool) {
	for i, row := range p.rows {
		if row.Name == n.Name {
			p.rows[i] = n
			return row.State != n.State || row.Text != n.Text, tenth(n.Loading) > tenth(row.Loading)
		}
	}
	p.rows = append(p.rows, n)
	return true, false
}

// plain is one step as a line.
func (p *progress) plain(n tasks.Progress, step, more bool) {
	if step {
		fmt.Fprintln(p.a.err, words(n))
	}
	if more {
		fmt.Fprintln(p.a.err, n.Name, "loading", loading(*n.Loading))
	}
}

func words(n tasks.Progress) string {
	parts := []string{n.Name.String()}
	if n.State != "" {
		parts = append(parts, string(n.State))
	}
	if n.Text != "" {
		parts = append(parts, n.Text)
	}
	if n.Final && n.URL != "" {
		parts = append(parts, n.URL)
	}
	return strings.Join(parts, " ")
}

// draw paints ten times a second, which is for the eye: what is waited for comes
// as events.
func (p *progress) draw() {
	defer close(p.done)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.paint()
		case <-p.quit:
			p.paint()
			return
		}
	}
}

func (p *progress) paint() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	if p.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", p.drawn)
	}
	width := columns()
	for _, row := range p.rows {
		fmt.Fprintf(&b, "\r\x1b[2K%s\n", p.row(row, width))
	}
	p.drawn = len(p.rows)
	fmt.Fprint(p.a.err, b.String())
}

// row is one task: its name and state, how long it has taken, and what it wrote last.
func (p *progress) row(n tasks.Progress, width int) string {
	state := fmt.Sprintf("%-9s", n.State)
	if !p.a.noColor && p.a.getenv("NO_COLOR") == "" {
		state = paint(stateColour(string(n.State)), state)
	}
	took := ""
	if !n.Since.IsZero() && !n.Final {
		took = time.Since(n.Since).Truncate(100 * time.Millisecond).String()
	}
	head := fmt.Sprintf("%-20s ", n.Name)
	tail := fmt.Sprintf(" %6s  %s", took, p.last(n))
	return head + state + cut(tail, width-len(head)-10)
}

func (p *progress) last(n tasks.Progress) string {
	switch {
	case n.Final && n.URL != "":
		return n.URL
	case n.Text != "" && (n.Final || p.m.Loading(n.Name) == nil):
		return n.Text
	case n.Final:
		return ""
	}
	if now := p.m.Loading(n.Name); now != nil && n.State != tasks.Stopping {
		return bar(now.Percent) + " " + loading(*now)
	}
	return plain(strings.Join(p.m.Tail(n.Name, 1), ""))
}

// columns is how wide the terminal is.
func columns() int {
	_, cols, err := pty.Getsize(os.Stderr)
	if err != nil || cols < 20 {
		return 80
	}
	return cols
}

func cut(s string, width int) string {
	r := []rune(s)
	if len(r) <= max(width, 1) {
		return s
	}
	return string(r[:max(width, 1)-1]) + "…"
}

// note writes a line beside the result, unless --quiet.
func (a *app) note(format string, args ...any) {
	if a.quiet {
		return
	}
	if p := a.drawing.Load(); p != nil {
		p.above(fmt.Sprintf(format, args...))
		return
	}
	fmt.Fprintf(a.err, format+"\n", args...)
}

// above writes a line where the picture is, which is drawn anew below it.
func (p *progress) above(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn > 0 {
		fmt.Fprintf(p.a.err, "\x1b[%dA\r\x1b[J", p.drawn)
	}
	p.drawn = 0
	fmt.Fprintln(p.a.err, line)
}
