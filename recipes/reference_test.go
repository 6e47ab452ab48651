package recipes

import (
	"fmt"
	"strings"
)

// Reference is the table of all keys, in Markdown. It comes from the tables that
// Load checks by.
func Reference() string {
	var b strings.Builder
	b.WriteString("| Key | It is | What it says | Without it |\n|---|---|---|---|\n")
	rows(&b, "", topRule)
	for _, r := range []*rule{serversRule, jobsRule, shellsRule} {
		rows(&b, "", r.each)
	}
	return b.String()
}

// taskKinds in the order of the table: a key is shown at the first that has it.
var taskKinds = []*rule{serverRule, jobRule, shellRule}

func rows(b *strings.Builder, under string, r *rule) {
	for _, k := range r.keys {
		if r == jobRule && serverRule.key(k.name) != nil || r == shellRule && serverRule.key(k.name) != nil {
			continue
		}
		row(b, under+k.name, k, kindsOf(r, k))
		if k.rule.task == "" && len(k.rule.keys) > 0 {
			rows(b, under+k.name+".", k.rule)
		}
		if item := k.rule.item; item != nil && len(item.keys) > 0 {
			rows(b, k.name+"[].", item)
		}
	}
}

// kindsOf names the kinds of task that have the key, where not all do.
func kindsOf(r *rule, k key) string {
	if r != serverRule && r != jobRule {
		return ""
	}
	var have []string
	for i, kind := range taskKinds {
		if kind.key(k.name) != nil {
			have = append(have, []string{"servers", "jobs", "shells"}[i])
		}
	}
	if len(have) == len(taskKinds) {
		return ""
	}
	return " (" + strings.Join(have, ", ") + ")"
}

func row(b *strings.Builder, name string, k key, kinds string) {
	escape := strings.NewReplacer("|", "\\|", "\n", " ")
	fmt.Fprintf(b, "| `%s`%s | %s | %s | %s |\n", name, kinds, escape.Replace(k.rule.says), escape.Replace(k.doc), escape.Replace(k.standard))
}
