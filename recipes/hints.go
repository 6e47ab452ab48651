package recipes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
)

// hintKey is the nearest right word for a key that r does not have.
func (r *rule) hintKey(name string) string {
	low := strings.ToLower(name)
	if s := noSuch[low]; s != "" {
		return s
	}
	if s := r.foreign[low]; s != "" && (r.key(s) != nil || !taskName().MatchString(s)) {
		if strings.HasPrefix(s, "command: ") {
			return "write " + s
		}
		return fmt.Sprintf("hob calls it %s", s)
	}
	var names []string
	for _, k := range r.keys {
		names = append(names, k.name)
	}
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if _, err := strconv.Atoi(name); err == nil {
		return "within braces a comma begins a new key: write a list in brackets, or quotes"
	}
	if other := r.kindWith(name); other != "" {
		return "only " + other + "s have it"
	}
	if under := r.under(name); under != "" {
		return fmt.Sprintf("it belongs under %q", under)
	}
	there := "there are: " + strings.Join(names, ", ")
	if option := strings.TrimLeft(name, "-"); r.key("args") != nil && optionName().MatchString(option) {
		return fmt.Sprintf("an option of the program goes into args: [--%s, …]; %s", strings.ReplaceAll(option, "_", "-"), there)
	}
	return there
}

// optionName is what a program may call an option.
var optionName = lazy(`^[a-z][a-z0-9]*([_.-][a-z0-9]+)*$`)

// kindWith is the kind of task that has the key which r, of another kind, lacks.
func (r *rule) kindWith(name string) string {
	if !slices.Contains([]*rule{serverRule, jobRule, shellRule}, r) {
		return ""
	}
	for _, kind := range []*rule{serversRule, jobsRule} {
		if kind.each.key(name) != nil {
			return kind.task
		}
	}
	return ""
}

// under is the key of r below which the name would be right.
func (r *rule) under(name string) string {
	for _, k := range r.keys {
		if k.rule.key(name) != nil {
			return k.name
		}
		if k.rule.each != nil && k.rule.each.key(name) != nil {
			return k.name + ": {NAME: …}"
		}
	}
	return ""
}

// hintWord is the nearest right word for a text that is none of r's.
func (r *rule) hintWord(s string) string {
	if w := r.foreign[s]; w != "" {
		return fmt.Sprintf("hob calls it %s", w)
	}
	if w := r.foreign[strings.ToLower(s)]; w != "" {
		return fmt.Sprintf("hob calls it %s", w)
	}
	if near := nearest(s, r.words); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	if len(r.words) > 3 {
		return "there are: " + strings.Join(r.words, ", ")
	}
	return ""
}

// hintForm says how a value of the wrong form is written.
func (r *rule) hintForm(n *node) string {
	switch {
	case len(r.words) > 0 && n.form&scalars != 0:
		return r.hintWord(n.raw)
	case n.secret:
		return r.hintSecret(n)
	case n.form == sequence:
		return r.hintList()
	case n.form == mapping:
		return r.hintMapping(n)
	case n.form == null:
		return ""
	case r.forms&scalars == 0:
		return r.hintBare(n)
	}
	return r.hintScalar(n)
}

// hintSecret says how a value is written that is not to be shown.
func (r *rule) hintSecret(n *node) string {
	if r == envRule && n.form == sequence {
		return "write NAME: value, one a line"
	}
	return ""
}

// hintList is for a list where none may be.
func (r *rule) hintList() string {
	switch {
	case r.task != "":
		return fmt.Sprintf("each has its name for a key: %ss: {NAME: {…}}", r.task)
	case r.key("command") != nil:
		return "say what it is: {command: […]}"
	case r == needsRule:
		return "say what it is: {commands: […]}"
	}
	return ""
}

// hintMapping is for a mapping where none may be.
func (r *rule) hintMapping(n *node) string {
	if r == layoutRule {
		return "begin each window with a dash: - {window: …, panes: […]}"
	}
	if r == taskRef && len(n.pairs) == 1 && n.pairs[0].value.form&scalars != 0 {
		return fmt.Sprintf("with a condition, write a mapping: {%s: %s}", flowWord(cut(n.pairs[0].key.raw)), flowWord(cut(n.pairs[0].value.raw)))
	}
	said := n.get("condition").str()
	if r != conditionRule || said == "" {
		return ""
	}
	if w := r.foreign[said]; w != "" {
		said = w
	}
	if !slices.Contains(r.words, said) {
		return ""
	}
	return "write it as one word: " + said
}

// hintBare is for a text or number where only lists and mappings may be.
func (r *rule) hintBare(n *node) string {
	switch {
	case r == readyRule:
		return hintReady(n.raw)
	case r == stopRule:
		return hintStop(n.raw)
	case r.key("command") != nil && r.key("env") != nil && n.form == text:
		return "say what it is: {command: " + flowWord(n.raw) + "}"
	case r == words_:
		return "write it as a list: [" + flowWords(n.raw) + "]"
	case r.forms&sequence != 0:
		return "write it as a list: [" + n.raw + "]"
	}
	return ""
}

// hintScalar is for a text, number or truth where another of them must be.
func (r *rule) hintScalar(n *node) string {
	switch {
	case r.forms&boolean != 0 && n.form == text:
		return map[string]string{"yes": "write true", "on": "write true", "no": "write false", "off": "write false"}[strings.ToLower(n.raw)]
	case r == duration && n.form == integer:
		return fmt.Sprintf("write a unit: %ss", n.raw)
	case r == size && n.form == integer:
		return fmt.Sprintf("write a unit: %sGiB", n.raw)
	case r.forms == integer && n.form == text && r.check(n.raw) == nil:
		return "write it without quotes"
	case r.forms&scalars == text && n.form&(integer|float|boolean) != 0 && len(r.words) == 0 && (r.check == nil || r.check(n.raw) == nil):
		return fmt.Sprintf("if it is meant as text, put it in quotes: %q", n.raw)
	}
	return ""
}

// nearest is the word that was probably meant; "" if none is near enough.
func nearest(s string, among []string) string {
	const longest, most = 60, 1000 // beyond these a hint is not worth its search
	if len(s) > longest || len(among) > most {
		return ""
	}
	best, least := "", 1+max(1, len(s)/3)
	for _, w := range among {
		d := levenshtein.ComputeDistance(strings.ToLower(s), strings.ToLower(w))
		if d < least {
			best, least = w, d
		}
	}
	return best
}
