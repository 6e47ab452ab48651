package recipes

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Finding is what a line of a log means.
type Finding struct {
	Line   string `json:"line"` // as the engine wrote it, without colours
	Cause  string `json:"cause"`
	Fix    string `json:"fix"`
	Source string `json:"source"` // where the rule was learnt
	Engine string `json:"engine"` // "" for what any engine may say
}

// maxFindings: more than the first few causes are consequences of them.
const maxFindings = 5

// DiagnoseIn says what is wrong with a task from the last lines of its log: the
// engine's own rules first, then those for all. It looks at nothing else. A person's
// own engines are in engineDir, if that is not "", and take precedence.
func DiagnoseIn(engineDir, engine string, lines []string) []Finding {
	clean := make([]string, len(lines))
	for i, line := range lines {
		clean[i] = plainLine(line)
	}
	found := []Finding{}
	explained := map[int]bool{}
	for _, r := range append(engineRules(engineDir, engine), generalRules()...) {
		at := r.last(clean)
		if at < 0 || explained[at] || len(found) == maxFindings {
			continue
		}
		explained[at] = true
		found = append(found, r.finding(clean[at]))
	}
	return found
}

// diagnosis is one rule.
type diagnosis struct {
	engine             string
	line               *regexp.Regexp
	cause, fix, source string
	example            string
}

// last is the newest line that the rule explains; -1 if it explains none.
func (d *diagnosis) last(lines []string) int {
	for i, line := range slices.Backward(lines) {
		if d.line.MatchString(line) {
			return i
		}
	}
	return -1
}

func (d *diagnosis) finding(line string) Finding {
	m := d.line.FindStringSubmatchIndex(line)
	fill := func(s string) string { return string(d.line.ExpandString(nil, s, line, m)) }
	return Finding{Line: line, Cause: fill(d.cause), Fix: fill(d.fix), Source: d.source, Engine: d.engine}
}

// Colours, titles and cursor moves that programs write to a terminal.
var escapes = lazy("\x1b(?:\\[[0-9;?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[@-Z\\\\^_])")

// plainLine is a line as a person would read it: of what was written over it, the last.
func plainLine(s string) string {
	const most = 2000
	s = strings.TrimRight(escapes().ReplaceAllString(s, ""), "\r\n")
	if i := strings.LastIndexByte(s, '\r'); i >= 0 {
		s = s[i+1:]
	}
	if len(s) > most {
		s = s[:most]
	}
	return s
}

//go:embed diagnosis.yaml
var generalText []byte

// generalRules are the rules for all engines.
var generalRules = sync.OnceValue(func() []*diagnosis {
	src := newSource("diagnosis.yaml", "", generalText)
	var l loader
	tree := src.parse(generalText, &l.errs)
	if tree != nil {
		l.walk(tree, diagnoseRule, "the rules", nil)
	}
	return rulesOf("", tree)
})

func engineRules(dir, name string) []*diagnosis {
	if name == "" {
		return nil
	}
	set := engines{dir: dir, own: map[string]*engine{}, errs: &list{}}
	e, err := set.find(name)
	if e == nil || err != nil {
		return nil // the recipe's own check says so
	}
	return rulesOf(name, e.tree.get("diagnose"))
}

func rulesOf(engine string, n *node) []*diagnosis {
	if n == nil {
		return nil
	}
	var all []*diagnosis
	for _, item := range n.items {
		re, err := regexp.Compile(item.get("line").str())
		if item.bad || err != nil || item.get("line") == nil {
			continue
		}
		all = append(all, &diagnosis{
			engine: engine, line: re, cause: item.get("cause").str(), fix: item.get("fix").str(),
			source: item.get("source").str(), example: item.get("example").str(),
		})
	}
	return all
}
