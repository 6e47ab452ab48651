package recipes

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// draft is a task on its way from the file.
type draft struct {
	name, kind string
	key, node  *node // its name in the file, and what it says
	engine     *engine
	scope      *scope // of what the task says
	own        *scope // of what its engine says
	task       Task
	port       *node    // where its port is said; nil if the engine says it
	refers     []string // tasks whose ports it names
}

// walkTask checks one server, job or shell in its own scope: there ${port} and
// ${model} are the task's.
func (l *loader) walkTask(p pair, r *rule, s *scope) {
	if old := l.tasks[p.key.raw]; old != nil {
		p.value.bad = true
		l.errs.add(p.key, "names are shared by servers, jobs and shells", "the name %q is taken, by the %s on line %d", p.key.raw, old.kind, old.key.line)
		return
	}
	d := &draft{name: p.key.raw, kind: r.task, key: p.key, node: p.value}
	l.tasks[d.name] = d
	l.order = append(l.order, d)
	l.prepare(d, s)
	l.walk(p.value, r.each, p.key.raw, d.scope)
}

// prepare finds out what the scope of a task depends on: engine, model and port.
func (l *loader) prepare(d *draft, s *scope) {
	say := func(key, otherwise string) string {
		if n := d.node.get(key); n != nil && n.form&scalars != 0 {
			if t := s.peek(n); t != "" {
				return t
			}
		}
		return otherwise
	}
	d.engine = l.findEngine(d, say("engine", ""))
	d.scope = &scope{vars: s.vars, getenv: s.getenv, own: map[string]string{}}
	if i := d.node.replica; i > 0 {
		d.scope.own["replica"], d.scope.own["index"] = strconv.Itoa(i), strconv.Itoa(i-1)
	}
	if l.vars.nodes["hob"] == nil {
		d.scope.own["hob"] = l.opts.self()
	}
	for _, key := range []string{"model", "host"} {
		if v := say(key, ""); v != "" {
			d.scope.own[key] = l.home(v)
		}
	}
	d.port = d.node.any("port")
	l.preparePort(d, say("port", d.engine.text("port", "")))
	d.own = &scope{getenv: s.getenv, late: d.scope.late, own: map[string]string{
		"host": "127.0.0.1", "model": "", "name": d.name, "hob": l.opts.self(),
	}}
	maps.Copy(d.own.own, d.scope.own)
}

func (l *loader) preparePort(d *draft, port string) {
	n, err := strconv.Atoi(port)
	switch {
	case port == "auto":
		d.task.Port.Auto = true
	case err == nil:
		n += max(0, d.node.replica-1)
		d.task.Port.Number = n
		d.scope.own["port"] = strconv.Itoa(n)
		if d.port != nil && n > 65535 && d.node.replica > 1 {
			l.errs.add(d.port, "", "%s would have port %d, and the highest is 65535", d.name, n)
		}
	}
	d.scope.late = func(name string) (bool, string) {
		switch task, _, other := strings.Cut(name, "."); {
		case other:
			return l.portOf(d, task)
		case name == "port" && !d.task.Port.Auto && d.port == nil:
			return false, d.name + noPort
		}
		return name == "port", ""
	}
}

// portOf says whether ${TASK.port} can be known when d starts: that task must
// have a port, and have been started.
func (l *loader) portOf(d *draft, task string) (bool, string) {
	if !slices.Contains(l.names, task) {
		return false, fmt.Sprintf("there is no task %s", task)
	}
	d.refers = append(d.refers, task)
	return true, ""
}

// findEngine is the engine that the task names. What is wrong is said at its name.
func (l *loader) findEngine(d *draft, name string) *engine {
	n := d.node.get("engine")
	if name == "" || n == nil || d.kind == "shell" {
		return nil
	}
	var e *engine
	var err error
	if taskName().MatchString(name) { // else it might name a file elsewhere
		e, err = l.engines.find(name)
	}
	switch {
	case err != nil:
		l.errs.add(n, "", "engine %s: %v", name, err)
	case e == nil:
		l.errs.add(n, l.hintEngine(name), "there is no engine %s", n.quoted())
	case e.tree == nil:
		n.bad = true // what is wrong with it is said in its own file
	case e.text("kind", "server") != d.kind:
		l.errs.add(n, "put it under "+e.text("kind", "server")+"s", "%s is an engine for %ss", name, e.text("kind", "server"))
	}
	return e
}

func (l *loader) hintEngine(name string) string {
	if l.errs.enough() {
		return ""
	}
	all := l.engines.names()
	if w := engineWords[strings.ToLower(name)]; w != "" {
		return fmt.Sprintf("hob calls it %s", w)
	}
	if near := nearest(name, all); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return "there are: " + strings.Join(all, ", ") + "; of any other program say the command"
}

// plain is the scope without the task's own names.
func (s *scope) plain() *scope { return &scope{vars: s.vars, getenv: s.getenv} }

// peek fills a scalar in without reporting what is wrong; the walk will.
func (s *scope) peek(n *node) string {
	if !strings.Contains(n.raw, "$") {
		return n.raw
	}
	ps, err := parts(n.raw)
	if err != nil {
		return ""
	}
	return s.expand(ps, func(missing) {})
}
