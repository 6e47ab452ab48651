package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"hob/recipes"
)

// lines is one error; of a recipe each fault with its line and its own advice.
func (a *app) lines(err error) []string {
	var faults recipes.Errors
	if !errors.As(err, &faults) {
		return []string{"hob: " + err.Error()}
	}
	var out []string
	for _, f := range faults {
		out = append(out, "hob: "+f.Error())
		out = append(out, excerpt(f)...)
		if f.Hint != "" {
			out = append(out, "hint: "+f.Hint)
		}
	}
	return out
}

// widest is how much of a line is shown.
const widest = 100

// excerpt is the line where the fault is, and a mark below its place. There is
// none where the line may hold a secret.
func excerpt(f *recipes.Error) []string {
	line := []rune(strings.TrimRight(f.Text, " \t\r"))
	if len(line) == 0 {
		return nil
	}
	at := min(max(f.Column-1, 0), len(line))
	from := 0
	if len(line) > widest {
		from = max(0, min(at-widest/2, len(line)-widest))
		line = line[from : from+widest]
	}
	number := strconv.Itoa(f.Line)
	return []string{
		fmt.Sprintf("  %s | %s", number, shown(line)),
		fmt.Sprintf("  %*s | %s^", len(number), "", blank(line[:at-from])),
	}
}

// shown is a line of a file that anybody may have written, for a terminal.
func shown(line []rune) string { return strings.Map(visible, string(line)) }

// visible replaces what would move the cursor by something as wide.
func visible(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
		return '?'
	}
	return r
}

// blank is as wide as the text. Han, kana and hangul take two columns.
func blank(text []rune) string {
	var b strings.Builder
	for _, r := range text {
		b.WriteByte(' ')
		if r >= 0x1100 && r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff || r >= 0xff00 && r <= 0xff60 || r >= 0x1f300 && r <= 0x1faff {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// faulty is what `check --json` writes of a recipe that is wrong.
type faulty struct {
	Errors recipes.Errors `json:"errors"`
}
