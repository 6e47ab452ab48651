package recipes

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// What a recipe is put together from, before it is checked: the files that it
// includes, the profiles that were asked for, the templates that its tasks
// extend. All is one operation: what is nearer is laid over what is farther.

// merge lays one value over another: mappings key by key, all else as a whole.
func merge(base, over *node, r *rule) *node {
	switch {
	case over == nil:
		return base
	case base == nil || over.bad || base.form != mapping || over.form != mapping:
		return over
	}
	m := *over
	m.pairs = nil
	for _, p := range over.pairs {
		m.pairs = append(m.pairs, pair{p.key, merge(base.any(p.key.raw), p.value, r.below(p.key.raw))})
	}
	for _, p := range base.pairs {
		if !over.has(p.key.raw) && !displaced(p.key.raw, over, r) {
			m.pairs = append(m.pairs, p)
		}
	}
	return &m
}

// below is the rule for what a key holds; nil if there is none.
func (r *rule) below(name string) *rule {
	if r == nil {
		return nil
	}
	if k := r.key(name); k != nil {
		return k.rule
	}
	return r.each
}

// displaced reports whether a key of the mapping below gives way to what is laid over
// it. Of the keys that exclude each other (http, tcp, log, …) the upper mapping's one
// stays alone, and what only goes with a displaced one (status goes with http) goes too.
func displaced(name string, over *node, r *rule) bool {
	if r == nil {
		return false
	}
	if !slices.ContainsFunc(r.oneOf, over.has) {
		return false
	}
	// What belongs to one of them goes with it; what several have in common stays.
	with := r.with[name]
	stays := len(with) > 1 && slices.ContainsFunc(with, over.has)
	return slices.Contains(r.oneOf, name) || len(with) > 0 && !stays
}

// clone is a copy that can be filled in on its own.
func (n *node) clone() *node {
	if n == nil {
		return nil
	}
	c := *n
	c.items, c.pairs = nil, nil
	for _, item := range n.items {
		c.items = append(c.items, item.clone())
	}
	for _, p := range n.pairs {
		key := *p.key
		c.pairs = append(c.pairs, pair{&key, p.value.clone()})
	}
	return &c
}

// without is a copy of a mapping that lacks some keys.
func (n *node) without(keys ...string) *node {
	c := *n
	c.pairs = slices.DeleteFunc(slices.Clone(n.pairs), func(p pair) bool { return slices.Contains(keys, p.key.raw) })
	return &c
}

// texts are the scalars of a text or a list of texts.
func (n *node) texts() []*node {
	switch {
	case n == nil || n.bad:
		return nil
	case n.form == sequence:
		return n.items
	case n.form&scalars != 0:
		return []*node{n}
	}
	return nil
}

// compose puts a recipe together.
func (l *loader) compose(root *node) *node {
	if root.form != mapping {
		return root
	}
	root = l.include(root, nil)
	root = l.profiled(root)
	for i, p := range root.pairs {
		if r := topRule.below(p.key.raw); r != nil && r.task != "" && p.value.form == mapping {
			root.pairs[i].value = l.replicated(l.extended(root, p.value, r))
		}
	}
	return root
}

// Bounds of what includes may bring in.
const (
	maxIncludes     = 50
	maxIncludeDepth = 8
)

// include lays a file over those that it includes; the later of them wins.
func (l *loader) include(root *node, open []string) *node {
	var base *node
	for _, n := range root.any("include").texts() {
		base = merge(base, l.included(n, open), topRule)
	}
	return merge(base, root, topRule)
}

func (l *loader) included(n *node, open []string) *node {
	file := l.path(n, n.src.dir)
	l.includes++
	switch {
	case slices.Contains(open, file):
		l.errs.add(n, "", "%s includes itself, by way of %s", n.quoted(), filepath.Base(open[len(open)-1]))
		return nil
	case l.includes > maxIncludes || len(open) > maxIncludeDepth:
		l.errs.add(n, "", "too many includes")
		return nil
	}
	src, text, err := readSource(file)
	if err != nil {
		why := err
		if errors.Is(err, fs.ErrNotExist) {
			why = fs.ErrNotExist
		}
		l.errs.add(n, "the path starts from the file that includes it", "include %s: %v", n.quoted(), why)
		return nil
	}
	src.order = l.includes
	tree := src.parse(text, &l.errs)
	if tree == nil || tree.form != mapping {
		return nil
	}
	return l.include(tree, append(slices.Clone(open), file)).without("include", "name")
}

// profiled lays the profiles that were asked for over the recipe.
func (l *loader) profiled(root *node) *node {
	all := root.any("profiles")
	for _, name := range l.opts.Profiles {
		p := all.get(name)
		if p == nil {
			l.noProfile(root, all, name)
			continue
		}
		root = merge(root, p.clone(), topRule)
	}
	return root
}

func (l *loader) noProfile(root, all *node, name string) {
	var names []string
	if all != nil {
		for _, p := range all.pairs {
			names = append(names, p.key.raw)
		}
	}
	hint := "there are: " + strings.Join(names, ", ")
	if len(names) == 0 {
		hint = "the recipe has no profiles"
	} else if near := nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	l.errs.at(root.src, root.line, root.col, fmt.Sprintf("there is no profile %q", cut(name)), hint)
}

// extended lays each task over the templates or tasks that it extends.
func (l *loader) extended(root, tasks *node, r *rule) *node {
	c := *tasks
	c.pairs = nil
	for _, p := range tasks.pairs {
		c.pairs = append(c.pairs, pair{p.key, l.extend(root, tasks, p.value, r.each, []string{p.key.raw})})
	}
	return &c
}

func (l *loader) extend(root, tasks, task *node, r *rule, open []string) *node {
	n := task.any("extends")
	if task.form != mapping || n == nil || n.form&(text|sequence) == 0 {
		return task // the walk reports what it cannot be
	}
	var base *node
	for _, n := range n.texts() {
		from := root.any("templates").get(n.raw)
		if from == nil {
			from = tasks.get(n.raw)
		}
		switch {
		case from == nil:
			l.errs.add(n, l.hintTemplate(root, tasks, n.raw), "there is no template or task %s to extend", n.quoted())
		case slices.Contains(open, n.raw) || len(open) > maxIncludeDepth:
			l.errs.add(n, "", "%s extends itself", n.quoted())
		default:
			base = merge(base, l.extend(root, tasks, from.clone(), r, append(slices.Clone(open), n.raw)), r)
		}
	}
	return merge(base, task.without("extends"), r)
}

func (l *loader) hintTemplate(root, tasks *node, name string) string {
	if l.errs.enough() {
		return ""
	}
	var names []string
	for _, m := range []*node{root.any("templates"), tasks} {
		if m == nil {
			continue
		}
		for _, p := range m.pairs {
			names = append(names, p.key.raw)
		}
	}
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "templates stand under templates: {NAME: …}"
}

const maxReplicas = 64

// replicated writes each task with replicas out as NAME-1, NAME-2, …
func (l *loader) replicated(tasks *node) *node {
	c := *tasks
	c.pairs = nil
	for _, p := range tasks.pairs {
		n := 0
		if v := p.value.any("replicas"); v != nil && validReplicas(v.raw) == nil {
			n = (&node{form: integer, text: v.raw}).number()
		}
		if n == 0 {
			c.pairs = append(c.pairs, p)
			continue
		}
		for i := 1; i <= n; i++ {
			key, value := *p.key, p.value.clone()
			key.raw, value.replica = fmt.Sprintf("%s-%d", p.key.raw, i), i
			c.pairs = append(c.pairs, pair{&key, value})
			l.replicas[p.key.raw] = append(l.replicas[p.key.raw], key.raw)
		}
	}
	return &c
}

// these are the tasks that a name stands for: itself, or its replicas.
func (l *loader) these(name string) []string {
	if all := l.replicas[name]; all != nil && l.tasks[name] == nil {
		return all
	}
	return []string{name}
}
