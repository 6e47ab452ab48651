package recipes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// loader reads one recipe and collects everything that is wrong with it.
type loader struct {
	errs   list
	getenv func(string) string
	opts   Options
	vars   *variables
	tasks  map[string]*draft
	// replicas are the tasks that a name with replicas was written out to.
	replicas map[string][]string
	includes int
	names    []string // of all tasks, before they are checked
	order    []*draft // as written
	engines  engines
	notes    []string
	spent    int // bytes that variables have grown to
}

// walk checks a value and all below it against a rule, and fills its variables in.
func (l *loader) walk(n *node, r *rule, what string, s *scope) {
	if n.bad {
		return
	}
	n.secret = n.secret || r.secret
	if r.plain && s != nil {
		s = s.plain()
	}
	if n.form&scalars != 0 && !r.raw {
		n.text = l.fill(n, s)
	}
	if n.bad || !l.formed(n, r, what) {
		return
	}
	switch n.form {
	case sequence:
		for i, item := range n.items {
			item.secret = item.secret || n.secret
			l.walk(item, r.item, fmt.Sprintf("%s, number %d,", what, i+1), s)
		}
	case mapping:
		if r.raw && r.forms&scalars == 0 { // else it is its text that is raw
			s = nil
		}
		l.walkMapping(n, r, what, s)
	case null:
	default:
		if s == nil && strings.Contains(n.raw, "${") {
			return // its variables are not known here
		}
		l.walkScalar(n, r, what)
	}
}

// formed reports whether the value has a form that the rule takes.
func (l *loader) formed(n *node, r *rule, what string) bool {
	if n.form&r.forms != 0 || n.filled() && r.forms&scalars != 0 {
		return true
	}
	hint := cmp.Or(r.hintForm(n), hintBareName(n))
	if n.form == null {
		l.errs.add(n, hint, "%s is empty; it must be %s", what, r.says)
		return false
	}
	l.errs.add(n, hint, "%s must be %s, not %s", what, r.says, n.shown())
	return false
}

// filled reports whether the text came from variables: its form is then open.
func (n *node) filled() bool {
	return n.form == text && !n.literal && strings.Contains(n.raw, "${")
}

// shown is the value in words, for a message.
func (n *node) shown() string {
	switch {
	case n.form&scalars == 0 || n.secret:
		return formNames[n.form]
	case n.filled():
		return "what " + n.quoted() + " holds"
	}
	if n.form == text {
		return n.quoted()
	}
	return n.raw
}

func (l *loader) walkScalar(n *node, r *rule, what string) {
	if r.raw || n.filled() && lateRef().MatchString(n.text) {
		return
	}
	if slices.Contains(r.words, n.text) {
		return
	}
	if r.check == nil {
		if len(r.words) > 0 || r.forms == boolean && n.text != "true" && n.text != "false" {
			l.errs.add(n, r.hintWord(n.text), "%s must be %s, not %s", what, r.says, n.shown())
		}
		return
	}
	if err := r.check(n.text); err != nil {
		l.wrong(n, r, what, err)
	}
}

// wrong reports a scalar that its check refused.
func (l *loader) wrong(n *node, r *rule, what string, err error) {
	hint := ""
	if !n.filled() {
		hint = cmp.Or(hintBareName(n), r.hintWord(n.text), r.hintText(n.text))
	}
	if n.text == "" {
		l.errs.add(n, hint, "%s is empty; it must be %s", what, r.says)
		return
	}
	switch {
	case r == expr && !n.filled():
		hint = err.Error()
	case r == headerRule:
		hint = "it has a line break, or another character that no header can have; a file that holds a secret often ends with one"
	case r == taskRef:
		hint = l.hintRefs(n)
	case err.Error() == taskNameSays && n.filled(): // what a variable holds is not to be told
		hint = taskNameSays
	case err.Error() == taskNameSays:
		hint = hintName(taskNameSays, n.text)
	}
	if n.secret { // its form is right, and more is not to be told
		l.errs.add(n, hint, "%s must be %s", what, r.says)
		return
	}
	l.errs.add(n, hint, "%s must be %s, not %s", what, r.says, n.shown())
}

func (l *loader) walkMapping(n *node, r *rule, what string, s *scope) {
	for _, p := range n.pairs {
		p.value.secret = p.value.secret || n.secret
		switch k := r.key(p.key.raw); {
		case k != nil:
			l.walk(p.value, k.rule, k.name, s)
		case r.each != nil:
			l.walkNamed(p, r, s)
		case strings.HasPrefix(p.key.raw, "x-") && r == topRule:
			// A place for anchors, as in compose files.
		default:
			p.value.bad, n.strange = true, true
			l.errs.add(p.key, r.hintKey(p.key.raw), "unknown key %q", cut(p.key.raw))
		}
	}
	l.exclusive(n, r, what)
}

func (l *loader) walkNamed(p pair, r *rule, s *scope) {
	if !r.named().MatchString(p.key.raw) {
		p.value.bad = true
		l.errs.add(p.key, hintName(r.namesAre, p.key.raw), "%q cannot be a name here", cut(p.key.raw))
		return
	}
	if r.task != "" && s != nil {
		l.walkTask(p, r, s)
		return
	}
	l.walk(p.value, r.each, p.key.raw, s)
}

// exclusive reports keys that cannot stand together, at the second.
func (l *loader) exclusive(n *node, r *rule, what string) {
	first := ""
	for _, p := range n.pairs {
		for _, name := range r.oneOf {
			if p.key.raw != name || p.value.bad || p.value.form == boolean && p.value.text == "false" {
				continue
			}
			if first != "" {
				l.errs.add(p.key, "keep one of them", "%s has both %q and %q", what, first, name)
				continue
			}
			first = name
		}
	}
}

func cut(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
