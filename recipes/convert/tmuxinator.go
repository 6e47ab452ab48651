package convert

import (
	"fmt"
	"slices"
	"strconv"

	"hob/recipes"
)

// The format is that of tmuxinator's README
// (https://github.com/tmuxinator/tmuxinator), with the older words that it still
// takes (project_name, tabs, cli_args).
func (r *reader) tmuxinator(top *section, d *draft) {
	d.name = r.runName(top, "name", "project_name")
	root := r.folder(first(top, "dir of every task", "root", "project_root"))
	before := r.beforeEach(top)
	start := r.startPlace(top)
	items := top.list("windows")
	if items == nil {
		items = top.list("tabs")
	}
	var panes []string
	for i, item := range items {
		panes = append(panes, r.tmuxinatorWindow(fmt.Sprintf("windows[%d]", i), item, root, before, d)...)
	}
	start.apply(r, d)
	r.startJobs(top, d, root, panes)
	top.refuse("hob has after_stop for a task, and nothing for a run as a whole", "post", "on_project_exit", "on_project_stop")
	top.refuse("hob has no first start that is unlike others", "on_project_restart")
	top.refuse("hob has a tmux server of its own, and never touches another", "socket_name", "socket_path", "tmux_options", "cli_args", "tmux_command")
	top.refuse("hob attach goes there when it is asked to", "attach", "tmux_detached")
	top.refuse("panes that share a window show their task's name", "enable_pane_titles", "pane_title_position", "pane_title_format")
}

// runName is the name of the run, as hob can have it.
func (r *reader) runName(top *section, keys ...string) string {
	for _, key := range keys {
		said := top.text(key, "")
		if said == "" {
			continue
		}
		name := slug(said)
		as := "name"
		if name != said {
			as = fmt.Sprintf("name, as %q", name)
		}
		r.keep(top.keyLine(key), key, as)
		return name
	}
	return ""
}

// first is the text of the first of the keys that is there.
func first(s *section, as string, keys ...string) string {
	for _, key := range keys {
		if v := s.text(key, as); v != "" {
			return v
		}
	}
	return ""
}

// beforeEach are the commands that are typed into every pane first.
func (r *reader) beforeEach(top *section) []string {
	var lines []string
	if v := top.text("rbenv", "typed into every pane first"); v != "" {
		lines = append(lines, "rbenv shell "+v)
	}
	if v := top.text("rvm", "typed into every pane first"); v != "" {
		lines = append(lines, "rvm use "+v)
	}
	for _, key := range []string{"pre_tab", "pre_window"} {
		lines = append(lines, top.texts(key, "typed into every pane first")...)
	}
	return lines
}

// tmuxinatorWindow reads "- NAME: …" and returns the names of its tasks.
func (r *reader) tmuxinatorWindow(path string, item *recipes.Value, root string, before []string, d *draft) []string {
	var name string
	var body *recipes.Value
	switch {
	case item.Scalar():
		name, body = item.Text, nil
	case item.Form == recipes.FormMapping && len(item.Pairs) > 0:
		name, body = item.Pairs[0].Key.Text, item.Pairs[0].Value
		for _, p := range item.Pairs[1:] {
			r.drop(p.Key.Line, path+"."+shortened(p.Key.Text), "it stands beside the window's name, not below it, where tmuxinator does not look either")
		}
	case item.Form == recipes.FormNull:
		r.drop(item.Line, path, "it is empty")
		return nil
	default:
		r.wrong(item, "%s must be a name, or a name and what is in the window, not %s", path, item.Form)
		return nil
	}
	if name == "null" || name == "~" {
		name = ""
	}
	path += "." + shortened(name)
	w := window{}
	var panes []pane
	switch {
	case body == nil || body.Form == recipes.FormNull:
		panes = []pane{{before: before}}
		r.keep(item.Line, path, "a shell")
	case body.Form == recipes.FormMapping:
		panes = r.tmuxinatorPanes(path, body, root, before, &w)
	default:
		r.keep(body.Line, path, "a task")
		panes = []pane{{dir: root, before: before, lines: r.textsOf(path, body)}}
	}
	for i := range panes {
		if panes[i].dir == "" {
			panes[i].dir = root
		}
		if panes[i].line == 0 {
			panes[i].line = item.Line
		}
	}
	return r.window(path, item.Line, name, w, panes, d)
}

func (r *reader) tmuxinatorPanes(path string, body *recipes.Value, root string, before []string, w *window) []pane {
	s := r.section(path, body)
	defer s.end()
	dir := root
	if said := s.text("root", "dir of its tasks"); said != "" {
		dir = r.folder(said)
	}
	w.split = r.split(s)
	before = slices.Concat(before, s.texts("pre", "typed into its panes first"))
	s.refuse("what is typed goes to one pane", "synchronize")
	var panes []pane
	items := s.list("panes")
	for i, item := range items {
		panes = append(panes, r.tmuxinatorPane(fmt.Sprintf("%s.panes[%d]", path, i), item, dir, before))
	}
	if len(items) == 0 {
		panes = []pane{{dir: dir, before: before}}
	}
	return panes
}

func (r *reader) tmuxinatorPane(path string, item *recipes.Value, dir string, before []string) pane {
	p := pane{dir: dir, before: before, line: item.Line}
	body := item
	if item.Form == recipes.FormMapping && len(item.Pairs) > 0 {
		p.name, body = item.Pairs[0].Key.Text, item.Pairs[0].Value
		for _, one := range item.Pairs[1:] {
			r.drop(one.Key.Line, path+"."+shortened(one.Key.Text), "a pane has one title")
		}
	}
	if body.Form == recipes.FormNull {
		r.keep(item.Line, path, "a shell")
		return p
	}
	p.lines = append(p.lines, r.textsOf(path, body)...)
	r.keep(item.Line, path, "a task")
	return p
}

// split is a window's layout by the name that tmux has for it.
func (r *reader) split(s *section) string {
	v := s.take("layout", "")
	if v == nil {
		return ""
	}
	if !v.Scalar() {
		r.wrong(v, "%slayout must be text, not %s", s.path, v.Form)
		return ""
	}
	name, exact := splitOf(v.Text)
	switch {
	case exact:
		r.keep(v.Line, s.path+"layout", "split: "+name)
	case name != "":
		r.drop(v.Line, s.path+"layout", "its sizes; the arrangement is most like "+name+", which it is now")
	default:
		r.drop(v.Line, s.path+"layout", "it is no layout of tmux; it is tiled now")
	}
	return name
}

// window makes a window's tasks and returns their names.
func (r *reader) window(path string, line int, name string, w window, panes []pane, d *draft) []string {
	var names []string
	for _, p := range panes {
		t := d.pane(p, name, len(panes) == 1)
		names = append(names, t.name)
		if p.focus {
			w.focus = t.name
		}
	}
	if len(names) == 0 {
		return nil
	}
	shown, same := windowName(name, names[0])
	if w.name = shown; !same && name != "" {
		r.drop(line, path, fmt.Sprintf("its name: tmux would take it apart; it is %q now", w.name))
	}
	w.panes = names
	d.windows = append(d.windows, w)
	return names
}

// startPlace is where tmuxinator puts the cursor.
type startPlace struct {
	window, pane         string
	windowLine, paneLine int
}

func (r *reader) startPlace(top *section) startPlace {
	return startPlace{
		window: top.text("startup_window", ""), windowLine: top.keyLine("startup_window"),
		pane: top.text("startup_pane", ""), paneLine: top.keyLine("startup_pane"),
	}
}

func (p startPlace) apply(r *reader, d *draft) {
	at := 0
	if p.window != "" {
		at = slices.IndexFunc(d.windows, func(w window) bool { return w.name == p.window })
		if n, err := strconv.Atoi(p.window); at < 0 && err == nil && n < len(d.windows) && n >= 0 {
			at = n
		}
		if at == 0 {
			r.keep(p.windowLine, "startup_window", "the first window, where hob attach lands")
		} else {
			r.drop(p.windowLine, "startup_window", "hob attach RUN lands in the first window; hob attach TASK goes to any")
		}
	}
	if p.pane == "" {
		return
	}
	n, err := strconv.Atoi(p.pane)
	if err != nil || n < 0 || at < 0 || at >= len(d.windows) || n >= len(d.windows[at].panes) {
		r.drop(p.paneLine, "startup_pane", "there is no such pane in that window")
		return
	}
	d.windows[at].focus = d.windows[at].panes[n]
	r.keep(p.paneLine, "startup_pane", "focus (counted from 0)")
}

// startJobs makes jobs of what runs before all panes.
func (r *reader) startJobs(top *section, d *draft, root string, panes []string) {
	for _, key := range []string{"pre", "on_project_start", "on_project_first_start"} {
		lines := top.texts(key, "a job that all others wait for")
		if len(lines) > 0 {
			r.jobBefore(d, key, root, lines, panes)
		}
	}
}
