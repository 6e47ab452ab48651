package recipes

import (
	"fmt"
	"slices"
	"strings"
)

// depends reads what a task waits for.
func (l *loader) depends(d *draft) {
	n := d.node.get("depends_on")
	if n == nil {
		return
	}
	for _, item := range n.items {
		l.dependsOn(d, item, item.str(), nil)
	}
	for _, p := range n.pairs {
		l.dependsOn(d, p.key, p.key.raw, p.value)
	}
}

// normal is the condition that depends_on waits for when it names none: the one from
// which on a task of that kind is of use to others.
var normal = map[string]string{"server": "ready", "job": "completed", "shell": "started"}

func (l *loader) dependsOn(d *draft, at *node, name string, condition *node) {
	for _, one := range l.these(name) {
		l.dependsOnOne(d, at, one, condition)
	}
}

func (l *loader) dependsOnOne(d *draft, at *node, name string, condition *node) {
	other := l.tasks[name]
	switch {
	case at.bad || condition != nil && condition.bad:
		return
	case other == nil:
		l.errs.add(at, l.hintTask(name), "%s depends on %s, which is no task of this recipe", d.name, at.quoted())
		return
	case slices.ContainsFunc(d.task.DependsOn, func(x Dependency) bool { return x.Task == name }):
		l.errs.add(at, "", "%s is there twice", name)
		return
	}
	dep := Dependency{Task: name, Condition: condition.or(normal[other.kind])}
	if why := never(other.kind, dep.Condition); why != "" {
		l.errs.add(condition, "write "+normal[other.kind], "%s is a %s: %s", name, other.kind, why)
		return
	}
	d.task.DependsOn = append(d.task.DependsOn, dep)
}

// never says why a task of that kind will never meet the condition.
func never(kind, condition string) string {
	switch {
	case kind == "server" && condition == "completed":
		return "it serves until it is stopped, and is never completed"
	case kind == "job" && condition == "ready":
		return "it is never ready, but completed"
	case kind == "shell" && condition != "started":
		return "it is only ever started"
	}
	return ""
}

func (l *loader) hintTask(name string) string {
	if l.errs.enough() {
		return ""
	}
	var names []string
	for _, d := range l.order {
		names = append(names, d.name)
	}
	if near := nearest(name, names); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	if len(names) > 12 {
		return ""
	}
	return "there are: " + strings.Join(names, ", ")
}

// ports reports two servers on one port, at the second.
func (l *loader) ports() {
	first := map[int]*draft{}
	for _, d := range l.order {
		n := d.task.Port.Number
		if n == 0 || d.node.bad || d.node.anyBad("port", "engine") {
			continue
		}
		other := first[n]
		if other == nil {
			first[n] = d
			continue
		}
		at := d.key
		if d.port != nil {
			at = d.port
		}
		l.errs.add(at, "write port: auto, or give one of them another number", "%s listens on port %d, and so does %s", d.name, n, other.name)
	}
}

// layout reads the windows. What is in none gets a window of its own.
func (l *loader) layout(n *node) []Window {
	windows := []Window{}
	if n == nil {
		return windows
	}
	where := map[string]string{}
	for _, item := range n.items {
		if item.bad {
			continue
		}
		w := Window{Name: item.get("window").str(), Split: item.get("split").or("tiled"), Panes: []string{}}
		for _, p := range l.panes(item) {
			for _, name := range l.these(p.str()) {
				if l.pane(p, name, where, w.Name) {
					w.Panes = append(w.Panes, name)
				}
			}
		}
		w.Focus = l.focus(item.get("focus"), w)
		windows = append(windows, w)
	}
	return windows
}

func (l *loader) panes(item *node) []*node {
	if item.strange {
		return item.get("panes").texts()
	}
	if !item.has("window") {
		l.errs.add(item, "add window: NAME", "the window has no name")
	}
	panes := item.get("panes")
	if panes == nil && !item.has("panes") || panes != nil && len(panes.items) == 0 {
		l.errs.add(item, "add panes: [TASK, …]", "the window has no panes")
	}
	if panes == nil {
		return nil
	}
	return panes.items
}

// pane reports whether a pane names a task that is not in another window.
func (l *loader) pane(p *node, name string, where map[string]string, window string) bool {
	if p.bad {
		return false
	}
	if l.tasks[name] == nil {
		l.errs.add(p, l.hintTask(name), "%s is no task of this recipe", p.quoted())
		return false
	}
	if old, ok := where[name]; ok {
		l.errs.add(p, "a task has one pane", "%s is already in the window %q", name, old)
		return false
	}
	where[name] = window
	return true
}

// focus is the pane of the window that has the cursor.
func (l *loader) focus(n *node, w Window) string {
	name := n.str()
	if name == "" || slices.Contains(w.Panes, name) {
		return name
	}
	l.errs.add(n, "name one of its panes", "%s is no pane of this window", n.quoted())
	return ""
}

// known reports references to ports that will not be known: of tasks without one,
// and of tasks that are not waited for.
func (l *loader) known(d *draft) {
	slices.Sort(d.refers)
	for _, name := range slices.Compact(d.refers) {
		other := l.tasks[name]
		at := d.node.any("depends_on")
		if at == nil {
			at = d.key
		}
		switch {
		case other == nil || other.node.anyBad("port", "engine"):
		case other.task.Port == (Port{}):
			l.errs.add(at, "give it port: auto", "%s names the port of %s, which has none", d.name, name)
		case !slices.ContainsFunc(d.task.DependsOn, func(x Dependency) bool { return x.Task == name }):
			l.errs.add(at, fmt.Sprintf("add depends_on: [%s]", name), "%s names the port of %s, but does not depend on it", d.name, name)
		case other.task.Port.Number > 0:
			d.task.settle("${"+name+".port}", other.task.Port.Number)
		}
	}
}

// sorted are the tasks in start order: what others wait for first, then as
// written. A cycle is reported at the dependency that closes it.
func (l *loader) sorted() []Task {
	v := visit{load: l, state: map[string]int{}, tasks: []Task{}}
	for _, d := range l.order {
		v.task(d)
	}
	return v.tasks
}

type visit struct {
	load  *loader
	state map[string]int // 1: open, 2: done
	path  []string
	tasks []Task
}

func (v *visit) task(d *draft) {
	if v.state[d.name] != 0 {
		return
	}
	v.state[d.name] = 1
	v.path = append(v.path, d.name)
	for _, dep := range d.task.DependsOn {
		if v.state[dep.Task] == 1 {
			v.cycle(d, dep.Task)
			continue
		}
		v.task(v.load.tasks[dep.Task])
	}
	v.path = v.path[:len(v.path)-1]
	v.state[d.name] = 2
	v.tasks = append(v.tasks, d.task)
}

func (v *visit) cycle(d *draft, to string) {
	at := d.node.any("depends_on")
	for _, item := range at.items {
		if item.str() == to {
			at = item
			break
		}
	}
	for _, p := range at.pairs {
		if p.key.raw == to {
			at = p.key
			break
		}
	}
	from := slices.Index(v.path, to)
	round := append(slices.Clone(v.path[from:]), to)
	if len(round) > 8 {
		round = append(round[:4:4], append([]string{"…"}, round[len(round)-3:]...)...)
	}
	v.load.errs.add(at, "", "tasks wait for each other: %s", strings.Join(round, " → "))
}
