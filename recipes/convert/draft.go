package convert

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// draft is a recipe on its way to being text.
type draft struct {
	kind     Kind
	name     string
	head     []string // what it is, as comments
	vars     []pair
	tasks    []*task
	windows  []window
	profiles []profile
	names    map[string]bool // taken by tasks
}

// task is one of the recipe's.
type task struct {
	section string // servers, jobs, shells
	name    string
	about   []string // comments above it
	fields  []field
	line    int // of the source
}

type field struct {
	key   string
	value *yaml.Node
	about string // comment behind it
}

type window struct {
	name, split string
	panes       []string
	focus       string
}

// profile is a set of changes, to one server.
type profile struct {
	name  string
	about string
	task  *task
}

// title puts a sentence in front of all comments.
func (d *draft) title(s string) { d.head = slices.Insert(d.head, 0, s) }

// hint adds a sentence to the comments, once.
func (d *draft) hint(s string) {
	if !slices.Contains(d.head, s) {
		d.head = append(d.head, s)
	}
}

// add makes a task with a name that is free.
func (d *draft) add(section, wanted string) *task {
	t := &task{section: section, name: d.free(wanted)}
	d.tasks = append(d.tasks, t)
	return t
}

// free is a name like the wanted one that no task has.
func (d *draft) free(wanted string) string {
	name := slug(wanted)
	if name == "" {
		name = "task"
	}
	for n, one := 2, name; ; n++ {
		if !d.names[one] {
			d.names[one] = true
			return one
		}
		tail := fmt.Sprintf("-%d", n)
		one = name[:min(len(name), maxName-len(tail))] + tail
	}
}

// maxName is how long the name of a task or run may be.
const maxName = 41

var notName = lazy(`[^a-z0-9_-]+`)

// slug is a text as a name of hob's; "" if nothing of it could be in one.
func slug(s string) string {
	s = strings.Trim(notName().ReplaceAllString(strings.ToLower(s), "-"), "-_")
	return strings.TrimRight(s[:min(len(s), maxName)], "-_")
}

func (t *task) set(key string, value *yaml.Node) *task { return t.say(key, value, "") }

// say sets a key, with a comment behind it. A key that is there is replaced.
func (t *task) say(key string, value *yaml.Node, about string) *task {
	for i := range t.fields {
		if t.fields[i].key == key {
			t.fields[i] = field{key, value, about}
			return t
		}
	}
	t.fields = append(t.fields, field{key, value, about})
	return t
}

func (t *task) get(key string) *yaml.Node {
	for _, f := range t.fields {
		if f.key == key {
			return f.value
		}
	}
	return nil
}

// place of each key in a task, so that all read alike.
var order = []string{"engine", "model", "command", "shell", "args", "host", "port", "gpus", "dir", "env_file", "env", "ready", "stop", "restart", "retries", "depends_on", "needs", "groups"}

// result writes the recipe down.
func (d *draft) result(file string, r *reader) (*Result, error) {
	d.distinct(r)
	res := &Result{Kind: d.kind, File: file, Name: d.name, Kept: notes(r.kept), Dropped: notes(r.dropped)}
	var b strings.Builder
	for _, line := range d.head {
		comment(&b, "", line)
	}
	if len(res.Dropped) > 0 {
		comment(&b, "", "Not taken over:")
		for _, n := range res.Dropped {
			comment(&b, "", "- "+n.String())
		}
	}
	if err := entry(&b, "", field{"name", plain(d.name), ""}); err != nil {
		return nil, err
	}
	if err := d.body(&b); err != nil {
		return nil, err
	}
	res.Recipe = b.String()
	return res, nil
}

func (d *draft) body(b *strings.Builder) error {
	if len(d.vars) > 0 {
		if err := entry(b, "", field{"vars", mappingOf(d.vars), ""}); err != nil {
			return err
		}
	}
	for _, section := range []string{"servers", "jobs", "shells"} {
		if err := d.section(b, section); err != nil {
			return err
		}
	}
	if len(d.profiles) > 0 {
		b.WriteString("profiles:\n")
	}
	for _, p := range d.profiles {
		comment(b, "  ", p.about)
		fmt.Fprintf(b, "  %s:\n    %s:\n", p.name, p.task.section)
		if err := p.task.write(b, "      "); err != nil {
			return err
		}
	}
	return d.layout(b)
}

func (d *draft) section(b *strings.Builder, section string) error {
	first := true
	for _, t := range d.tasks {
		if t.section != section {
			continue
		}
		if first {
			b.WriteString(section + ":\n")
			first = false
		}
		if err := t.write(b, "  "); err != nil {
			return err
		}
	}
	return nil
}

func (t *task) write(b *strings.Builder, indent string) error {
	for _, line := range t.about {
		comment(b, indent, line)
	}
	if len(t.fields) == 0 {
		fmt.Fprintf(b, "%s%s: {}\n", indent, t.name)
		return nil
	}
	slices.SortStableFunc(t.fields, func(a, b field) int { return slices.Index(order, a.key) - slices.Index(order, b.key) })
	fmt.Fprintf(b, "%s%s:\n", indent, t.name)
	for _, f := range t.fields {
		if err := entry(b, indent+"  ", f); err != nil {
			return err
		}
	}
	return nil
}

func (d *draft) layout(b *strings.Builder) error {
	if len(d.windows) == 0 {
		return nil
	}
	b.WriteString("layout:\n")
	for _, w := range d.windows {
		pairs := []pair{{"window", escaped(w.name)}}
		if w.split != "" && len(w.panes) > 1 {
			pairs = append(pairs, pair{"split", w.split})
		}
		n := mappingOf(pairs)
		n.Content = append(n.Content, plain("panes"), words(w.panes))
		if w.focus != "" && len(w.panes) > 1 {
			n.Content = append(n.Content, plain("focus"), plain(w.focus))
		}
		n.Style = yaml.FlowStyle
		text, err := encoded(&yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{n}})
		if err != nil {
			return err
		}
		b.WriteString(indented("  ", text))
	}
	return nil
}

// entry is one key of a mapping, written out.
func entry(b *strings.Builder, indent string, f field) error {
	text, err := encoded(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{plain(f.key), f.value}})
	if err != nil {
		return err
	}
	text = indented(indent, text)
	if f.about != "" && strings.Count(text, "\n") == 1 {
		text = strings.TrimSuffix(text, "\n") + "  # " + oneLine(f.about) + "\n"
	}
	b.WriteString(text)
	return nil
}

func encoded(n *yaml.Node) (string, error) {
	var buf bytes.Buffer
	enc := yaml.NewEncoder(&buf)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return "", fmt.Errorf("write the recipe: %w", err)
	}
	return buf.String(), enc.Close()
}

func indented(indent, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString(indent)
		}
		b.WriteString(line)
	}
	return b.String()
}

// comment writes a line for people. What it says may come from a stranger's file.
func comment(b *strings.Builder, indent, line string) {
	if line = oneLine(line); line != "" {
		b.WriteString(indent + "# " + line + "\n")
	}
}

// oneLine is a text without what would end a comment, or move a terminal's cursor.
func oneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t':
			return ' '
		case c < ' ', c >= 0x7f && c < 0xa0, c == 0x2028, c == 0x2029, c >= 0x202a && c <= 0x202e, c >= 0x2066 && c <= 0x2069, c == 0xfeff, c == 0xfffe, c == 0xffff:
			return '?'
		}
		return c
	}, s))
}

// The values of a recipe.

// plain is text that hob is to read as it stands: a name, or a reference.
func plain(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if unsafeBlock(s) {
		n.Style = yaml.DoubleQuotedStyle
	} else if strings.Contains(s, "\n") {
		n.Style = yaml.LiteralStyle
	}
	return n
}

// unsafeBlock reports whether a text would not come back from a block as it is.
func unsafeBlock(s string) bool {
	if strings.ContainsFunc(s, func(c rune) bool {
		return c < ' ' && c != '\n' || c >= 0x7f && c < 0xa0 || c == 0x2028 || c == 0x2029 || c == 0xfeff || c >= 0xfffe && c <= 0xffff
	}) {
		return true
	}
	return strings.Contains(s, "\n") && (strings.HasPrefix(s, " ") || strings.HasPrefix(s, "\n") || strings.HasSuffix(s, "\n\n"))
}

// literal is text whose dollars mean nothing to hob, but where they were marked.
func literal(s string) *yaml.Node { return plain(escaped(s)) }

func number(n int) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: fmt.Sprint(n)}
}

func yes() *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"} }

// lineWidth is how long a list in one line may be.
const lineWidth = 110

// words is a list of names.
func words(list []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	size := 0
	for _, w := range list {
		n.Content = append(n.Content, plain(w))
		size += len(w) + 2
	}
	if size <= lineWidth {
		n.Style = yaml.FlowStyle
	}
	for _, c := range n.Content {
		if c.Style == yaml.LiteralStyle {
			n.Style = 0
		}
	}
	return n
}

// argv is a list of arguments, whose dollars mean nothing to hob.
func argv(list []string) *yaml.Node {
	all := make([]string, len(list))
	for i, w := range list {
		all[i] = escaped(w)
	}
	return words(all)
}

// mappingOf is a mapping of names to texts, whose dollars are references.
func mappingOf(pairs []pair) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, p := range pairs {
		n.Content = append(n.Content, plain(p.name), plain(p.value))
	}
	return n
}

// environment is a mapping of variables to values.
func environment(pairs []pair) *yaml.Node {
	all := make([]pair, len(pairs))
	for i, p := range pairs {
		all[i] = pair{p.name, escaped(p.value)}
	}
	return mappingOf(all)
}

func flow(n *yaml.Node) *yaml.Node {
	n.Style = yaml.FlowStyle
	return n
}
