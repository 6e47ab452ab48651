package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"hob/tasks"
)

// table writes rows: for people aligned, with headers, without columns that are
// empty throughout; off a terminal tab-separated, without headers.
func (a *app) table(columns []string, rows [][]string) error {
	if !a.outTTY {
		return tsv(a.out, rows)
	}
	if len(rows) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	used := inUse(columns, rows)
	fmt.Fprintln(w, strings.Join(a.cells(columns, used, columns, true), "\t"))
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(a.cells(row, used, columns, false), "\t"))
	}
	return w.Flush()
}

func tsv(w io.Writer, rows [][]string) error {
	clean := strings.NewReplacer("\t", " ", "\n", " ", "\r", " ")
	var b strings.Builder
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(clean.Replace(cell))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func inUse(columns []string, rows [][]string) []bool {
	used := make([]bool, len(columns))
	for _, row := range rows {
		for i, cell := range row {
			used[i] = used[i] || cell != ""
		}
	}
	return used
}

// cells are the used cells of a row. Every cell of the state's column is
// coloured with the same number of bytes, so that the columns stay aligned.
func (a *app) cells(row []string, used []bool, columns []string, head bool) []string {
	var out []string
	for i, cell := range row {
		if !used[i] {
			continue
		}
		if columns[i] == "STATE" && a.colours() {
			colour := stateColour(cell)
			if head {
				colour = "39"
			}
			cell = paint(colour, cell)
		}
		out = append(out, cell)
	}
	return out
}

// colours reports whether output for people is coloured (https://no-color.org).
func (a *app) colours() bool {
	return a.outTTY && !a.noColor && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}

func paint(colour, s string) string { return "\x1b[" + colour + "m" + s + "\x1b[0m" }

func stateColour(state string) string {
	switch tasks.State(state) {
	case tasks.Ready, tasks.Completed:
		return "32"
	case tasks.Starting, tasks.Up, tasks.Stopping, tasks.Unready:
		return "33"
	case tasks.Failed, tasks.Survivors, tasks.Unverified, tasks.Lost:
		return "31"
	}
	return "39"
}

func (a *app) writeJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func join(errs ...error) error { return errors.Join(errs...) }

// plain is a line of a program's output without what would move the cursor.
func plain(line string) string {
	var b strings.Builder
	escape := false
	for _, r := range line {
		switch {
		case escape:
			escape = r < '@' || r > '~' || r == '['
		case r == '\x1b':
			escape = true
		case r == '\t':
			b.WriteByte(' ')
		case r >= ' ' && r != 0x7f:
			b.WriteRune(r)
		}
	}
	return b.String()
}
