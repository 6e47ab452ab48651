package recipes

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Load reads, resolves and checks a recipe. What is wrong with it comes as Errors.
func Load(file string, o Options) (*Recipe, error) {
	if name, ok := strings.CutPrefix(file, galleryPrefix); ok {
		return loadGallery(name, o)
	}
	src, text, err := readSource(file)
	if err != nil {
		return nil, err
	}
	return load(src, text, file, o)
}

// loadGallery loads a recipe that has no file. It runs in the current folder, unless
// that is said.
func loadGallery(name string, o Options) (*Recipe, error) {
	text, err := gallery.ReadFile("gallery/" + name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("%w: %s is not in the gallery", ErrNoRecipe, name)
	}
	dir := o.Dir
	if dir == "" {
		if dir, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("folder to run the recipe %s in: %w", name, err)
		}
	}
	r, err := load(newSource(galleryPrefix+name, dir, text), text, name+".yaml", o)
	if err == nil {
		r.File = galleryPrefix + name
	}
	return r, err
}

func load(src *source, text []byte, file string, o Options) (*Recipe, error) {
	l := newLoader(o)
	root := src.parse(text, &l.errs)
	if root == nil {
		return nil, l.errs.err()
	}
	r := l.recipe(root)
	r.File = filepath.Join(src.dir, filepath.Base(file)) // from wherever it is looked at later
	if r.Name == "" {
		r.Name = defaultName(file)
	}
	if err := l.errs.err(); err != nil {
		return nil, err
	}
	return r, nil
}

func newLoader(o Options) *loader {
	l := &loader{opts: o, getenv: o.Getenv, tasks: map[string]*draft{}, replicas: map[string][]string{}}
	if l.getenv == nil {
		l.getenv = os.Getenv
	}
	l.engines = engines{dir: o.EngineDir, own: map[string]*engine{}, errs: &l.errs}
	l.vars = &variables{load: l, nodes: map[string]*node{}, done: map[string]string{}, open: map[string]bool{}, set: o.Set}
	return l
}

func (o Options) self() string {
	if o.Self != "" {
		return o.Self
	}
	return "hob"
}

// recipe makes the recipe of a document.
func (l *loader) recipe(root *node) *Recipe {
	root = l.compose(root)
	s := &scope{vars: l.vars, getenv: l.getenv}
	if v := root.get("vars"); v != nil && v.form == mapping {
		for _, p := range v.pairs {
			l.vars.nodes[p.key.raw] = p.value
			l.vars.order = append(l.vars.order, p.key.raw)
		}
	}
	l.names = taskNames(root)
	l.unset(root)
	l.walk(root, topRule, "a recipe", s)
	r := &Recipe{Name: root.get("name").str(), Dir: root.src.dir, Layout: []Window{}}
	for _, d := range l.order {
		l.finish(d)
		l.depends(d)
	}
	for _, d := range l.order {
		l.known(d)
	}
	if len(l.order) == 0 && !root.bad && !root.anyBad("servers", "jobs", "shells") && len(l.errs.errs) == 0 {
		l.errs.add(root, "write at least one server: servers: {chat: {engine: pilot, port: auto}}", "the recipe has no task")
	}
	l.ports()
	r.Layout = l.layout(root.get("layout"))
	r.Tasks, r.Notes = l.sorted(), l.notes
	return r
}

func taskNames(root *node) []string {
	var names []string
	for _, section := range []string{"servers", "jobs", "shells"} {
		if m := root.any(section); m != nil {
			for _, p := range m.pairs {
				names = append(names, p.key.raw)
			}
		}
	}
	return names
}

// unset reports what was set on the command line and is no variable.
func (l *loader) unset(root *node) {
	for _, name := range slices.Sorted(maps.Keys(l.opts.Set)) {
		if l.vars.nodes[name] != nil {
			continue
		}
		hint := "it has: " + strings.Join(l.vars.order, ", ")
		if len(l.vars.order) == 0 {
			hint = "it has no vars"
		} else if near := nearest(name, l.vars.order); near != "" {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		l.errs.at(root.src, root.line, root.col, fmt.Sprintf("the recipe has no variable %q to set", cut(name)), hint)
	}
}

var notName = lazy(`[^a-z0-9_-]+`)

// defaultName is the name of a recipe that says none: the file's, and for
// hob.yaml, which every project has, the folder's.
func defaultName(file string) string {
	base := filepath.Base(file)
	name := strings.TrimSuffix(base, filepath.Ext(base))
	if name == "hob" {
		if abs, err := filepath.Abs(file); err == nil {
			name = filepath.Base(filepath.Dir(abs))
		}
	}
	return cmp.Or(slug(name), "recipe")
}

// slug is the name that is nearest to a text; "" if there is none.
func slug(s string) string {
	s = strings.TrimLeft(notName().ReplaceAllString(strings.ToLower(s), "-"), "-_")
	if len(s) > 41 {
		s = s[:41]
	}
	return s
}
