package recipes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one thing that is wrong with a recipe.
type Error struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`  // in characters, from 1
	Msg    string `json:"message"` // "unknown key \"comand\""
	Hint   string `json:"hint"`    // "did you mean \"command\"?"; "" when there is none
	Text   string `json:"-"`       // the line itself; "" where it may hold a secret
	order  int
}

// Error is FILE:LINE:COLUMN: what is wrong, as compilers write it.
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Msg)
}

// Errors are all the things that are wrong with a recipe, in the order of the file.
type Errors []*Error

// Error is one line for each, with its hint in brackets.
func (e Errors) Error() string {
	var b strings.Builder
	for i, one := range e {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(one.Error())
		if one.Hint != "" {
			b.WriteString(" (" + one.Hint + ")")
		}
	}
	return b.String()
}

// maxErrors keeps a hostile file from making a report without end.
const maxErrors = 200

// list collects errors while a recipe is read.
type list struct {
	errs []*Error
	seen map[Error]bool // an anchor that is used twice is wrong once
}

// at reports what is wrong at a place of a file.
func (l *list) at(s *source, line, col int, msg, hint string) {
	l.record(Error{File: s.name, Line: line, Column: col, Msg: msg, Hint: hint, order: s.order}, s.shown(line))
}

// hidden reports what is wrong at a place whose line may hold a secret.
func (l *list) hidden(s *source, line, col int, msg, hint string) {
	l.record(Error{File: s.name, Line: line, Column: col, Msg: msg, Hint: hint, order: s.order}, "")
}

func (l *list) record(e Error, text string) {
	if l.seen == nil {
		l.seen = map[Error]bool{}
	}
	if l.seen[e] {
		return
	}
	l.seen[e] = true
	e.Text = text
	l.errs = append(l.errs, &e)
}

// enough reports whether more errors will not be shown, so that hints for them
// need not be looked for.
func (l *list) enough() bool { return len(l.errs) >= maxErrors }

// add reports what is wrong at a value of the file.
func (l *list) add(n *node, hint, format string, args ...any) {
	n.bad = true
	l.place(n)(n.src, n.line, n.col, fmt.Sprintf(format, args...), hint)
}

// place is how errors at or in a value are reported.
func (l *list) place(n *node) func(s *source, line, col int, msg, hint string) {
	if n.secret {
		return l.hidden
	}
	return l.at
}

// err is what was collected, in the order of the file; nil if nothing was.
func (l *list) err() error {
	if len(l.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(l.errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if more := len(l.errs) - maxErrors; more > 0 {
		last := *l.errs[maxErrors-1]
		last.Msg, last.Hint = fmt.Sprintf("%d more errors from here on", more+1), ""
		return Errors(append(l.errs[:maxErrors-1:maxErrors-1], &last))
	}
	return Errors(l.errs)
}
