package recipes

import (
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

//go:embed engines/*.yaml
var builtin embed.FS

// engine is what is known of one model server: a file of data.
type engine struct {
	name string
	file string
	tree *node
}

// engineRule is the language of engine files: that of tasks where it can be, and
// facts about the engine.
var engineRule = &rule{
	says: "a mapping with the facts of an engine", forms: mapping,
	keys: []key{
		{"name", &rule{says: "the name of the file", forms: text, check: validName}, "how recipes call it", ""},
		{"about", anyText, "one sentence", ""},
		{"kind", &rule{says: "server or job", forms: text, words: []string{"server", "job"}}, "what it is", "server"},
		{"model", &rule{says: "required, optional or none", forms: text, words: []string{"required", "optional", "none"}}, "whether a task must name a model", "required"},
		{"command", words_, "its argv; ${model}, ${port}, ${host}, ${name} (the task's) and ${hob} are filled in", ""},
		{"model_flag", &rule{says: "a mapping, like {file: -m, name: -hf}", forms: mapping, keys: []key{
			{"file", anyText, "the flag for a model that is a path", ""},
			{"name", anyText, "the flag for one that is a name", ""},
		}}, "what ${model_flag} is; with no model both fall away", ""},
		{"port", portRule, "where it listens unless told", ""},
		{"env", envRule, "what it is given", ""},
		{"ready", readyRule, "how it shows that it answers", ""},
		{"stop", stopRule, "how it is ended well", ""},
		{"needs", needsRule, "what the host must have", ""},
		{"expects", expectsRule, "what the host should have: its lack is told before a start", ""},
		{"gpus", &rule{says: "a mapping", forms: mapping, keys: []key{
			{"env", words_, "the variables that choose GPUs", ""},
			{"none", anyText, "their value for no GPU", ""},
		}}, "how GPUs are chosen", ""},
		{"cache", &rule{says: "huggingface", forms: text, words: []string{"huggingface"}}, "where models that are named USER/REPO are kept", ""},
		{"api_key", &rule{says: "a mapping, like {env: [VLLM_API_KEY], flags: [--api-key]}", forms: mapping, keys: []key{
			{"env", words_, "the variables that it takes its key from", ""},
			{"flags", words_, "the flags that it takes its key from, which go before", ""},
		}}, "where the key that it asks for comes from, so that readiness can use it", ""},
		{"says", &rule{says: "a list of lines", forms: sequence, item: anyText}, "what it logs when it serves; the rehearsal says so too", ""},
		{"drain", anyText, "how it finishes what it is at", ""},
		{"progress", &rule{says: "a list of regular expressions", forms: sequence, item: expr}, "log lines that show loading go on", ""},
		{"diagnose", diagnoseRule, "log lines that mean something", ""},
		{"tree", &rule{says: "a list of processes", forms: sequence, item: anyText}, "its processes, as ps shows them", ""},
		{"rehearse", words_, "the pilot's flags for this engine's shape", ""},
		{"traps", &rule{says: "a list of sentences", forms: sequence, item: anyText}, "what is easily got wrong", ""},
		{"sources", &rule{says: "a mapping of keys to pages", forms: mapping, each: &rule{says: "a list of pages", forms: sequence, item: anyText},
			named: taskName, namesAre: "the key of a fact"}, "where each fact comes from: the page, and in brackets what it says", ""},
		{"unverified", &rule{says: "a list of facts", forms: sequence, item: anyText}, "facts that nobody has held against their source yet", ""},
	},
}

var diagnoseRule = &rule{
	says: "a list of rules", forms: sequence, item: &rule{
		says: "a mapping, like {line: REGEXP, cause: …, fix: …}", forms: mapping, keys: []key{
			{"line", expr, "matches the log line", ""},
			{"cause", anyText, "what it means; $1 is the first group", ""},
			{"fix", anyText, "what to do", ""},
			{"example", anyText, "a real line", ""},
			{"source", anyText, "where it was seen", ""},
		},
	},
}

// engines finds engines by name: the person's own before those built in.
type engines struct {
	dir  string
	own  map[string]*engine
	errs *list
}

var (
	builtinMu   sync.Mutex
	builtinRead = map[string]*engine{}
)

// find is the engine of that name; nil if there is none or it is wrong, which
// is then in errs.
func (e *engines) find(name string) (*engine, error) {
	if got, ok := e.own[name]; ok {
		return got, nil
	}
	if e.dir != "" {
		got, err := e.personal(name)
		if got != nil || err != nil {
			e.own[name] = got
			return got, err
		}
	}
	return builtinEngine(name)
}

// personal reads an engine from the person's folder; nil if it is not there.
func (e *engines) personal(name string) (*engine, error) {
	file := filepath.Join(e.dir, name+".yaml")
	src, text, err := readSource(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	src.order = 1
	return parseEngine(src, name, text, e.errs), nil
}

// builtinEngine is an embedded engine, read once.
func builtinEngine(name string) (*engine, error) {
	builtinMu.Lock()
	defer builtinMu.Unlock()
	if got := builtinRead[name]; got != nil {
		return got, nil
	}
	file := "engines/" + name + ".yaml"
	text, err := builtin.ReadFile(file)
	if err != nil {
		return nil, nil
	}
	var errs list
	got := parseEngine(newSource(file, "", text), name, text, &errs)
	if err := errs.err(); err != nil {
		return nil, err
	}
	builtinRead[name] = got
	return got, nil
}

func parseEngine(src *source, name string, text []byte, errs *list) *engine {
	l := &loader{}
	tree := src.parse(text, &l.errs)
	if tree != nil {
		l.walk(tree, engineRule, "the engine", nil)
	}
	errs.errs = append(errs.errs, l.errs.errs...)
	if tree == nil || len(l.errs.errs) > 0 {
		return &engine{name: name, file: src.name}
	}
	if n := tree.get("name"); n != nil && n.text != name {
		errs.add(n, "name it "+name, "the engine in this file is called %q", n.text)
	}
	return &engine{name: name, file: src.name, tree: tree}
}

// names are all engines that there are, for hints and lists.
func (e *engines) names() []string {
	all := yamlFiles(builtin, "engines")
	if e.dir != "" {
		all = append(all, yamlFiles(os.DirFS(e.dir), ".")...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func yamlFiles(f fs.FS, dir string) []string {
	var all []string
	entries, err := fs.ReadDir(f, dir)
	if err != nil {
		return nil // no folder, no engines: that is how most people live
	}
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".yaml"); ok {
			all = append(all, name)
		}
	}
	return all
}

// engineNames are the built-in engines.
func engineNames() []string { return (&engines{}).names() }

// text of one fact; "" if it is not there.
func (e *engine) text(key, otherwise string) string {
	if e == nil {
		return otherwise
	}
	if n := e.tree.get(key); n != nil {
		return n.text
	}
	return otherwise
}

// filled is a copy of a fact with the task's variables filled in.
func (l *loader) filled(n *node, s *scope) *node {
	if n == nil {
		return nil
	}
	c := *n
	if n.form&scalars != 0 {
		c.text = l.fill(&c, s)
	}
	c.items = nil
	for _, item := range n.items {
		c.items = append(c.items, l.filled(item, s))
	}
	c.pairs = nil
	for _, p := range n.pairs {
		c.pairs = append(c.pairs, pair{p.key, l.filled(p.value, s)})
	}
	return &c
}
