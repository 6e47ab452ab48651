package convert

import (
	"fmt"
	"slices"
	"strings"

	"hob/recipes"
)

// The format is that of tmuxp's documentation (https://tmuxp.git-pull.com); what
// is handed down from session to window to pane is as its loader does it
// (src/tmuxp/workspace/loader.py).
func (r *reader) tmuxp(top *section, d *draft) {
	d.name = r.runName(top, "session_name")
	var session inherited
	session.dir = r.folder(expanded(top.text("start_directory", "dir of every task")))
	session.env = r.variables(top, "environment")
	session.before = r.typed(top, "shell_command_before")
	top.refuse("an option of tmux: hob's server has its own", "options", "global_options")
	top.refuse("hob has no plugins", "plugins")
	top.refuse("nothing is typed, so nothing gets into a history", "suppress_history")
	top.refuse("hob has a tmux server of its own, and never touches another", "socket_name", "socket_path", "config")
	var names []string
	for i, item := range top.list("windows") {
		path := fmt.Sprintf("windows[%d]", i)
		if s := r.section(path, item); s != nil {
			names = append(names, r.tmuxpWindow(s, i, session, d)...)
			s.end()
		}
	}
	if script := top.text("before_script", "a job that all others wait for"); script != "" {
		dir := session.dir
		if strings.HasPrefix(script, ".") { // from where the file is
			dir = r.folder("")
		}
		r.jobBefore(d, "before_script", dir, []string{script}, names)
	}
}

// inherited is what a session gives its windows, and a window its panes.
type inherited struct {
	dir    string
	env    []pair
	before []string
	shell  []string
}

func (r *reader) tmuxpWindow(s *section, index int, in inherited, d *draft) []string {
	name := expanded(s.text("window_name", "window"))
	if dir := s.text("start_directory", "dir of its tasks"); dir != "" {
		in.dir = r.within(in.dir, expanded(dir))
	}
	session := in.env
	own := r.variables(s, "environment")
	in.env = merged(session, own)
	in.before = slices.Concat(in.before, r.typed(s, "shell_command_before"))
	in.shell = r.shell(s, "window_shell")
	w := window{split: r.split(s)}
	s.refuse("windows stand in the order of the file", "window_index")
	s.refuse("an option of tmux: hob's server has its own", "options", "options_after")
	s.refuse("nothing is typed, so nothing gets into a history", "suppress_history")
	r.tmuxpFocus(s, index)
	var panes []pane
	for i, item := range s.list("panes") {
		at := fmt.Sprintf("%spanes[%d]", s.path, i)
		p := r.tmuxpPane(at, item, in, session)
		r.unheard(at, &p)
		panes = append(panes, p)
	}
	if len(panes) == 0 {
		panes = []pane{{dir: in.dir, env: in.env, before: in.before, shell: in.shell, line: s.v.Line}}
	}
	return r.window(strings.TrimSuffix(s.path, "."), s.v.Line, name, w, panes, d)
}

// tmuxpFocus: the window that the session shows.
func (r *reader) tmuxpFocus(s *section, index int) {
	v := s.take("focus", "")
	switch {
	case v == nil || v.Text == "false":
	case index == 0:
		r.keep(v.Line, s.path+"focus", "the first window, where hob attach lands")
	default:
		r.drop(v.Line, s.path+"focus", "hob attach RUN lands in the first window; hob attach TASK goes to any")
	}
}

func (r *reader) tmuxpPane(path string, item *recipes.Value, in inherited, session []pair) pane {
	p := pane{dir: in.dir, env: in.env, shell: in.shell, before: slices.Clone(in.before), line: item.Line}
	switch {
	case item.Form == recipes.FormNull || item.Scalar() && isBlank(item.Text):
		r.keep(item.Line, path, "a shell")
	case item.Form == recipes.FormMapping:
		s := r.section(path, item)
		r.tmuxpPaneKeys(s, &p, in, session)
		s.end()
	default:
		r.keep(item.Line, path, "a task")
		p.lines = append(p.lines, r.commands(path, item)...)
	}
	return p
}

func (r *reader) tmuxpPaneKeys(s *section, p *pane, in inherited, session []pair) {
	if dir := s.text("start_directory", "dir"); dir != "" {
		p.dir = r.within(in.dir, expanded(dir))
	}
	if s.v.Get("environment") != nil { // a pane's replaces its window's
		p.env = merged(session, r.variables(s, "environment"))
	}
	if sh := r.shell(s, "shell"); sh != nil {
		p.shell = sh
	}
	p.name = s.text("title", "the task's name")
	p.focus = s.yes("focus", "focus")
	p.before = append(p.before, r.typed(s, "shell_command_before")...)
	typed := r.typed(s, "shell_command")
	if v := s.v.Get("enter"); v != nil && v.Text == "false" {
		s.refuse("its commands were typed and not run: hob types nothing", "enter")
		typed = nil
	}
	p.lines = append(p.lines, typed...)
	s.take("enter", "it is run")
	s.refuse("nothing is typed, so nothing gets into a history", "suppress_history")
	s.refuse("depends_on waits for what is there, not for a time", "sleep_before", "sleep_after")
}

// typed are the commands of a key: a text, a list of texts, or of mappings.
func (r *reader) typed(s *section, key string) []string {
	v := s.take(key, "")
	if v == nil {
		return nil
	}
	r.keep(v.Line, s.path+key, "what its tasks run")
	if v.Form == recipes.FormMapping { // tmuxp's own long form of it
		if v.Get("cmd") != nil {
			return r.oneCommand(s.path+key, v)
		}
		inner := r.section(s.path+key, v)
		defer inner.end()
		return r.typed(inner, "shell_command")
	}
	return r.commands(s.path+key, v)
}

func (r *reader) commands(path string, v *recipes.Value) []string {
	if v.Scalar() {
		if isBlank(v.Text) {
			return nil
		}
		return []string{v.Text}
	}
	if v.Form != recipes.FormList {
		r.wrong(v, "%s must be text or a list, not %s", path, v.Form)
		return nil
	}
	var lines []string
	for i, item := range v.Items {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case item.Form == recipes.FormNull || item.Scalar() && isBlank(item.Text):
		case item.Scalar():
			lines = append(lines, item.Text)
		case item.Form == recipes.FormMapping:
			lines = append(lines, r.oneCommand(at, item)...)
		default:
			r.wrong(item, "%s must be a command, not %s", at, item.Form)
		}
	}
	return lines
}

// oneCommand is {cmd: …, enter: …, sleep_before: …}.
func (r *reader) oneCommand(path string, v *recipes.Value) []string {
	s := r.section(path, v)
	defer s.end()
	s.refuse("depends_on waits for what is there, not for a time", "sleep_before", "sleep_after")
	s.refuse("nothing is typed, so nothing gets into a history", "suppress_history")
	if e := v.Get("enter"); e != nil && e.Text == "false" {
		s.refuse("it was typed and not run: hob types nothing", "cmd", "enter")
		return nil
	}
	s.take("enter", "it is run")
	return s.texts("cmd", "a command")
}

// isBlank are tmuxp's words for a pane in which nothing is typed.
func isBlank(s string) bool { return s == "" || s == "blank" || s == "pane" }

// shell is a program that takes the place of a pane's shell.
func (r *reader) shell(s *section, key string) []string {
	v := s.take(key, "")
	if v == nil || v.Text == "" {
		return nil
	}
	_, args, ok := simple(expanded(v.Text))
	if !ok {
		args = []string{"/bin/sh", "-c", v.Text}
	}
	r.keep(v.Line, s.path+key, "what its tasks run in")
	return args
}

// unheard drops what would be typed into a program that is no shell.
func (r *reader) unheard(path string, p *pane) {
	if p.shell == nil || isShell(p.shell[0]) {
		return
	}
	if len(p.before)+len(p.lines) > 0 {
		r.drop(p.line, path, "what is typed into it: "+shortened(p.shell[0])+" is no shell that would run it")
	}
	p.before, p.lines = nil, nil
}

// isShell reports whether a program is one that people type into.
func isShell(program string) bool {
	switch strings.TrimPrefix(base(program), "-") {
	case "sh", "bash", "zsh", "fish", "dash", "ksh", "mksh", "ash", "tcsh", "csh", "rbash", "nu", "xonsh", "elvish", "pwsh":
		return true
	}
	return false
}

// variables are an environment, whose values tmuxp fills in.
func (r *reader) variables(s *section, key string) []pair {
	list := s.pairs(key, "env")
	good := list[:0]
	for _, p := range list {
		if !envName().MatchString(p.name) {
			r.drop(s.keyLine(key), s.path+key+"."+shortened(p.name), "a variable's name is letters, digits and _")
			continue
		}
		if rest, ok := strings.CutPrefix(p.value, "~/"); ok {
			p.value = "$HOME/" + rest
		}
		good = append(good, pair{p.name, expanded(p.value)})
	}
	return good
}

func merged(base, over []pair) []pair {
	all := slices.Clone(base)
	for _, p := range over {
		all = setPair(all, p)
	}
	return all
}
