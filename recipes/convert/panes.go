package convert

import (
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"
)

// pane is what another tool types into a pane.
type pane struct {
	name   string   // that its title gives it
	dir    string   // "" for where the recipe stands
	env    []pair   // set for it
	before []string // typed into every pane, first
	lines  []string // typed into this one
	shell  []string // instead of the person's own; nil for that
	focus  bool
	line   int // of the file
}

// ownShell is the shell that a pane has. What is typed into it may be what only
// that shell knows: aliases, source, conda.
var ownShell = ref("SHELL:-/bin/sh")

// stay lets Ctrl-C end what runs, not the pane; leave leaves a prompt, as there is
// one where commands are typed into a shell.
const (
	stay  = "trap : INT"
	leave = `exec "${SHELL:-/bin/sh}"`
)

// typedHint explains them, once in a recipe.
const typedHint = "What was typed into a pane runs in your own shell, which leaves a prompt behind it."

// pane makes the task of a pane. A pane without a command is a shell. One whose
// last command starts a known model server is that server; any other keeps a
// prompt behind its command.
func (d *draft) pane(p pane, window string, alone bool) *task {
	env, args, ok := lastOf(p.lines)
	all := merged(p.env, env)
	k := recognise(all, args)
	section := "shells"
	if k != nil {
		section = "servers"
	}
	t := d.add(section, p.called(window, alone, args))
	t.line = p.line
	if p.dir != "" {
		t.set("dir", literal(p.dir))
	}
	typed := slices.Concat(p.before, p.lines)
	switch {
	case k == nil && len(typed) > 0:
		all = p.env // the text sets its own
		t.set("command", argv(p.interactive(typed)))
		d.hint(typedHint)
	case k == nil && p.shell != nil:
		t.set("command", argv(p.shell))
	case k != nil && ok && len(typed) == 1 && p.shell == nil:
		t.set("command", argv(args))
	case k != nil:
		typed[len(typed)-1] = "exec " + shellquote.Join(args...)
		t.set("command", argv(append(p.program(), strings.Join(typed, "\n"))))
	}
	if k != nil {
		t.serve(k)
	}
	t.environ(all)
	return t
}

// lastOf is the last of the commands, if it is one that no shell is needed for.
func lastOf(lines []string) (env []pair, args []string, ok bool) {
	if len(lines) == 0 {
		return nil, nil, false
	}
	return simple(lines[len(lines)-1])
}

// interactive runs the lines and leaves a prompt.
func (p *pane) interactive(lines []string) []string {
	return append(p.program(), strings.Join(slices.Concat([]string{stay}, lines, []string{leave}), "\n"))
}

// program is the shell, told to run a text as if it had been typed.
func (p *pane) program() []string {
	if p.shell != nil {
		return append(slices.Clone(p.shell), "-ic")
	}
	return []string{ownShell, "-ic"}
}

// called is the name that a pane's task should have.
func (p *pane) called(window string, alone bool, args []string) string {
	switch {
	case slug(p.name) != "":
		return p.name
	case alone && slug(window) != "":
		return window
	}
	program := "shell"
	if len(args) > 0 {
		program = base(args[0])
	} else if len(p.lines) > 0 {
		program = firstWord(p.lines[len(p.lines)-1])
	}
	if slug(window) == "" {
		return program
	}
	return window + "-" + program
}

var wordChars = lazy(`^[A-Za-z0-9_.-]+`)

// firstWord is the program of a command line, roughly: for a name.
func firstWord(line string) string {
	for w := range strings.FieldsSeq(line) {
		if !strings.Contains(w, "=") {
			if w = wordChars().FindString(base(w)); w != "" {
				return w
			}
		}
	}
	return "shell"
}

// windowName is a name as hob lets windows have it, and whether that is the same.
func windowName(s string, otherwise string) (name string, same bool) {
	const most = 100
	clean := strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == '#' || c == '\\' || c == '\ufffd' {
			return '_'
		}
		return c
	}, strings.ToValidUTF8(s, "_"))
	if r := []rune(clean); len(r) > most {
		clean = string(r[:most])
	}
	if strings.TrimSpace(clean) == "" {
		return otherwise, false
	}
	return clean, clean == s
}
