package recipes

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxText bounds what one value may grow to by its variables, and maxTotal all of
// a recipe: variables that name variables multiply.
const (
	maxText  = 64 << 10
	maxTotal = 16 << 20
)

// part of a text: literal, or a reference to a variable.
type part struct {
	literal string
	name    string // of a reference
	op      string // "", ":-", "-", ":?", "?"
	rest    []part // after op
	told    string // the same, as written
	expr    string // the reference as written, to find its place
}

var varName = lazy(`^(?:[A-Za-z_][A-Za-z0-9_]*|[a-z0-9][a-z0-9_-]{0,40}\.port)$`)

// parts takes a text apart at ${…} and $$. Every other dollar is itself.
func parts(s string) ([]part, error) {
	var out []part
	lit := func(t string) {
		if k := len(out) - 1; k >= 0 && out[k].name == "" {
			out[k].literal += t
		} else if t != "" {
			out = append(out, part{literal: t})
		}
	}
	for s != "" {
		i := strings.IndexByte(s, '$')
		if i < 0 || i == len(s)-1 {
			lit(s)
			break
		}
		lit(s[:i])
		switch s[i+1] {
		case '$':
			lit("$")
			s = s[i+2:]
		case '{':
			p, n, err := reference(s[i:])
			if err != nil {
				return nil, err
			}
			out = append(out, p)
			s = s[i+n:]
		default:
			lit("$")
			s = s[i+1:]
		}
	}
	return out, nil
}

// badReference is a ${ that names nothing.
type badReference struct{ expr, msg string }

func (b *badReference) Error() string { return b.msg }

// reference reads one ${…} at the start of s and says how long it is.
func reference(s string) (part, int, error) {
	end := closing(s)
	if end < 0 {
		return part{}, 0, &badReference{"${", `"${" without "}"`}
	}
	p := part{expr: s[:end+1]}
	body := s[2:end]
	n := strings.IndexAny(body, ":-?")
	for n >= 0 && body[n] == '-' && varName().MatchString(body) { // a dash within NAME.port
		n = -1
	}
	if n < 0 {
		n = len(body)
	}
	p.name = body[:n]
	if !varName().MatchString(p.name) {
		return part{}, 0, &badReference{p.expr, fmt.Sprintf("%.40q is not the name of a variable", body)}
	}
	for _, op := range []string{":-", ":?", "-", "?"} {
		if rest, ok := strings.CutPrefix(body[n:], op); ok {
			p.op, p.told = op, rest
			var err error
			p.rest, err = parts(rest)
			return p, end + 1, err
		}
	}
	if n < len(body) {
		return part{}, 0, &badReference{p.expr, fmt.Sprintf("%.40q is not the name of a variable", body)}
	}
	return p, end + 1, nil
}

// closing is where the bracket of the ${ at the start of s closes; -1 if nowhere.
func closing(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '$' && i+1 < len(s) && s[i+1] == '{':
			depth++
			i++
		case s[i] == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// scope is what ${…} may name at one place.
type scope struct {
	own    map[string]string                         // model, hob, host, …
	late   func(name string) (late bool, why string) // why: what is missing for it
	vars   *variables                                // nil: none
	getenv func(string) string
}

// look finds a variable. Late ones are bound when the task starts.
func (s *scope) look(name string) (value string, late, ok bool, why string) {
	if v, ok := s.own[name]; ok {
		return v, false, true, ""
	}
	if s.late != nil {
		if late, why = s.late(name); late {
			return "", true, true, ""
		}
	}
	if s.vars != nil {
		if v, ok := s.vars.value(name); ok {
			return v, false, true, ""
		}
	}
	if s.getenv != nil {
		if v := s.getenv(name); v != "" {
			return v, false, true, ""
		}
	}
	return "", false, false, why
}

// names are the variables that could have been meant.
func (s *scope) names() []string {
	var all []string
	if s.vars != nil {
		all = append(all, s.vars.names()...)
	}
	for name := range s.own {
		all = append(all, name)
	}
	slices.Sort(all) // equally near ones are told apart the same way each time
	return all
}

// lateRef is a reference that stands in a task until its start. A dollar more in
// front makes it plain text.
var lateRef = lazy(`\$+\{(?:[a-z0-9][a-z0-9_-]{0,40}\.)?(?:port|gpus)\}`)

func escapeLate(s string) string {
	if !strings.Contains(s, "${") {
		return s
	}
	return lateRef().ReplaceAllStringFunc(s, func(m string) string { return "$" + m })
}

// noPort is said of a task whose port is named.
const noPort = " has no port"

// missing is a variable that nothing defines.
type missing struct {
	expr, msg string
	hint      func() string // nil: none
}

// expand fills in the variables of a text. What is missing is reported through
// miss, once for each place.
func (s *scope) expand(ps []part, miss func(missing)) string {
	var b strings.Builder
	for _, p := range ps {
		if b.Len() > maxText {
			break
		}
		if p.name == "" {
			b.WriteString(escapeLate(p.literal))
			continue
		}
		b.WriteString(s.reference(p, miss))
	}
	return b.String()
}

func (s *scope) reference(p part, miss func(missing)) string {
	v, late, ok, why := s.look(p.name)
	switch {
	case late:
		return "${" + p.name + "}"
	case ok && (v != "" || !strings.HasPrefix(p.op, ":")):
		return escapeLate(v)
	case p.op == ":-" || p.op == "-":
		return s.expand(p.rest, miss)
	}
	m := missing{expr: p.expr, msg: why}
	switch {
	case strings.HasSuffix(why, noPort):
		m.hint = func() string { return "add port: auto" }
	case why == "":
		m.msg, m.hint = absent(p), func() string { return s.hint(p) }
	}
	miss(m)
	return ""
}

func absent(p part) string {
	msg := fmt.Sprintf("no variable %q, neither in vars nor in the environment", p.name)
	if p.op != "" {
		msg += ": " + p.told
	}
	return msg
}

func (s *scope) hint(p part) string {
	if near := nearest(p.name, s.names()); near != "" {
		return fmt.Sprintf("did you mean ${%s}?", near)
	}
	return fmt.Sprintf("add it to vars, set it, or give a default: ${%s:-…}", p.name)
}

// variables are the vars of a recipe, filled in when first asked for.
type variables struct {
	load  *loader
	nodes map[string]*node
	set   map[string]string // from the command line; these win
	done  map[string]string
	open  map[string]bool
	order []string
}

func (v *variables) names() []string { return v.order }

func (v *variables) value(name string) (string, bool) {
	if s, ok := v.set[name]; ok {
		return s, true
	}
	if s, ok := v.done[name]; ok {
		return s, true
	}
	n := v.nodes[name]
	if n == nil {
		return "", false
	}
	if v.open[name] {
		v.load.errs.add(n, "", "the variable %q names itself", name)
		return "", true
	}
	v.open[name] = true
	s := ""
	if n.form&scalars != 0 && !n.bad {
		s = v.load.fill(n, &scope{vars: v, getenv: v.load.getenv})
	}
	delete(v.open, name)
	v.done[name] = s
	return s, true
}

// fill is the text of a scalar with its variables filled in; errors are reported
// at their place in it.
func (l *loader) fill(n *node, s *scope) string {
	if s == nil || n.literal || !strings.Contains(n.raw, "$") {
		return n.raw
	}
	ps, err := parts(n.raw)
	if err != nil {
		l.badReference(n, err)
		return n.raw
	}
	return l.bounded(n, s.expand(ps, l.missing(n)))
}

func (l *loader) badReference(n *node, err error) {
	if b, ok := errors.AsType[*badReference](err); ok {
		l.inside(n, b.expr, b.msg, "a dollar before a bracket is written $${")
	}
}

func (l *loader) missing(n *node) func(missing) {
	return func(m missing) {
		hint := ""
		if m.hint != nil && !l.errs.enough() {
			hint = m.hint()
		}
		l.inside(n, m.expr, m.msg, hint)
	}
}

// bounded reports a value that its variables made too large.
func (l *loader) bounded(n *node, s string) string {
	before := l.spent
	if l.spent += len(s); before > maxTotal {
		return "" // said already
	}
	if len(s) > maxText || l.spent > maxTotal {
		l.errs.add(n, "variables that name variables multiply", "the value is too large with its variables filled in")
		return ""
	}
	return s
}

// inside reports what is wrong at an expression within a scalar. The parser gives
// the place of the scalar only; the expression is looked up in the lines after it.
func (l *loader) inside(n *node, expr, msg, hint string) {
	n.bad = true
	line, col := n.line, n.col
	last := line + strings.Count(n.raw, "\n") + 1
	for i := n.line; i <= last; i++ {
		t, from := n.src.line(i), 0
		if i == n.line {
			from = byteColumn(t, n.col)
		}
		if at := strings.Index(t[from:], expr); at >= 0 {
			line, col = i, len([]rune(t[:from+at]))+1
			break
		}
	}
	l.errs.place(n)(n.src, line, col, msg, hint)
}

// byteColumn is where column col (in characters, from 1) starts in the line.
func byteColumn(line string, col int) int {
	for i := range line {
		if col--; col == 0 {
			return i
		}
	}
	return len(line)
}
