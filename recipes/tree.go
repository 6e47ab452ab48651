package recipes

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// form is what a value of the file looks like.
type form uint8

const (
	text form = 1 << iota
	integer
	float
	boolean
	null
	sequence
	mapping
)

// scalars are the forms that can be read as text, as written.
const scalars = text | integer | float | boolean

var formNames = map[form]string{
	text: "text", integer: "a number", float: "a number with a point",
	boolean: "true or false", null: "nothing", sequence: "a list", mapping: "a mapping",
}

// node is one value of a file: without aliases and merges, which are written
// out, and with the place where it stands.
type node struct {
	src       *source
	line, col int
	form      form
	raw       string // of a scalar: as written; never with what a variable held
	text      string // of a scalar: with its variables filled in
	items     []*node
	pairs     []pair
	bad       bool // reported already: what depends on it keeps silent
	replica   int  // of a task: which one it is, from 1
	strange   bool // of a mapping: it has keys that nobody knows
	secret    bool // below env: neither value nor line is ever shown
	literal   bool // filled in already, or of an engine: no variables in here
}

type pair struct{ key, value *node }

// get is the value of a key; nil if it is not there or wrong.
func (n *node) get(key string) *node {
	if v := n.any(key); v != nil && !v.bad {
		return v
	}
	return nil
}

func (n *node) any(key string) *node {
	if n == nil {
		return nil
	}
	for i := range n.pairs {
		if n.pairs[i].key.raw == key {
			return n.pairs[i].value
		}
	}
	return nil
}

// has reports whether the key is there, wrong or not.
func (n *node) has(key string) bool { return n.any(key) != nil }

// tree writes a document out, within bounds.
type tree struct {
	src   *source
	errs  *list
	open  map[*yaml.Node]bool // anchors being written out
	alias *node               // the outermost alias being written out
	count int
	full  bool
}

func (t *tree) build(y *yaml.Node, depth int) *node {
	n := &node{src: t.src, line: y.Line, col: y.Column}
	t.count++
	switch {
	case t.full:
		n.bad = true
	case t.count > maxNodes:
		t.full = true
		at := n
		if t.alias != nil {
			at = t.alias
		}
		n.bad = true
		t.errs.add(at, "aliases that name aliases multiply: write the values out", "the file has more than %d values", maxNodes)
	case depth > maxDepth:
		t.errs.add(n, "", "nested more than %d deep", maxDepth)
	default:
		if y.Anchor != "" {
			t.open[y] = true
			defer delete(t.open, y)
		}
		t.fill(n, y, depth)
	}
	return n
}

func (t *tree) fill(n *node, y *yaml.Node, depth int) {
	switch y.Kind {
	case yaml.AliasNode:
		*n = *t.follow(n, y, depth)
	case yaml.SequenceNode:
		n.form = sequence
		t.tag(n, y, "!!seq")
		for _, item := range y.Content {
			n.items = append(n.items, t.build(item, depth+1))
		}
	case yaml.MappingNode:
		n.form = mapping
		t.tag(n, y, "!!map")
		t.fillMapping(n, y, depth)
	default:
		t.fillScalar(n, y)
	}
}

// follow writes out what an alias stands for. Errors in it point at the anchor,
// where the text is.
func (t *tree) follow(n *node, y *yaml.Node, depth int) *node {
	if t.open[y.Alias] {
		t.errs.add(n, "", "the anchor %q contains itself", y.Value)
		return n
	}
	if t.alias == nil {
		t.alias = n
		defer func() { t.alias = nil }()
	}
	return t.build(y.Alias, depth+1)
}

func (t *tree) tag(n *node, y *yaml.Node, want string) {
	if y.Tag != "" && y.ShortTag() != want {
		t.strangeTag(n, y)
	}
}

// strangeTag is for a tag that means nothing. On a value that is not to be shown it is
// its beginning, as that of a password may be.
func (t *tree) strangeTag(n *node, y *yaml.Node) {
	if t.src.private[y.Line] {
		t.errs.add(n, "put the text in quotes", "a text that begins with ! is a tag to YAML, and this one means nothing here")
		return
	}
	t.errs.add(n, "leave the tag out", "the tag %s means nothing here", y.Tag)
}

func (t *tree) fillScalar(n *node, y *yaml.Node) {
	n.raw, n.text = y.Value, y.Value
	switch y.ShortTag() {
	case "!!str", "!!timestamp":
		n.form = text
	case "!!int":
		n.form = integer
	case "!!float":
		n.form = float
	case "!!bool":
		n.form = boolean
	case "!!null":
		n.form = null
	default:
		n.form = text
		t.strangeTag(n, y)
	}
	if strings.ContainsRune(y.Value, 0) {
		t.errs.add(n, "", "the text holds a NUL, which no program can be given")
	}
}

// fillMapping writes out a mapping: what it says itself comes before what it
// merges in by "<<", and of merged ones the first.
func (t *tree) fillMapping(n *node, y *yaml.Node, depth int) {
	first := map[string]*node{}
	var merges []*yaml.Node
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		if k.ShortTag() == "!!merge" {
			if len(merges) > 0 {
				t.errs.add(&node{src: t.src, line: k.Line, col: k.Column}, "write <<: [*one, *other]", "the key \"<<\" is there twice")
			}
			merges = append(merges, v)
			continue
		}
		if key := t.key(k, first); key != nil {
			first[key.raw] = key
			n.pairs = append(n.pairs, pair{key, t.build(v, depth+1)})
		}
	}
	for _, m := range merges {
		t.merge(n, m, first, depth)
	}
}

// key is the key of a mapping; nil if it was reported.
func (t *tree) key(y *yaml.Node, first map[string]*node) *node {
	key := &node{src: t.src, line: y.Line, col: y.Column}
	if y.Kind == yaml.AliasNode {
		y = y.Alias
	}
	t.count++
	if y.Kind != yaml.ScalarNode {
		t.errs.add(key, "braces of a template, like {{x}}, need quotes", "a key is text, not a list or a mapping")
		return nil
	}
	t.fillScalar(key, y)
	if old := first[key.raw]; old != nil {
		t.errs.add(key, "keep one of them", "the key %q is there twice, first on line %d", key.raw, old.line)
		return nil
	}
	return key
}

func (t *tree) merge(n *node, y *yaml.Node, first map[string]*node, depth int) {
	m := t.build(y, depth+1)
	switch m.form {
	case mapping:
		t.mergeOne(n, m, first)
	case sequence:
		for _, item := range m.items {
			if item.form != mapping {
				t.mergeWrong(item)
				continue
			}
			t.mergeOne(n, item, first)
		}
	default:
		t.mergeWrong(m)
	}
}

func (t *tree) mergeWrong(n *node) {
	if !n.bad {
		t.errs.add(n, "name an anchor that holds one: <<: *common", "only a mapping can be merged in by <<, not %s", formNames[n.form])
	}
}

func (t *tree) mergeOne(n, m *node, first map[string]*node) {
	for _, p := range m.pairs {
		if first[p.key.raw] == nil {
			first[p.key.raw] = p.key
			n.pairs = append(n.pairs, p)
		}
	}
}

// quoted is a scalar of the file as errors show it: never a secret, never long.
func (n *node) quoted() string {
	const most = 40
	switch {
	case n.secret:
		return "what stands there"
	case len(n.raw) > most:
		return fmt.Sprintf("%.*q…", most, n.raw)
	}
	return fmt.Sprintf("%q", n.raw)
}
