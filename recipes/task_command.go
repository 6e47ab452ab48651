package recipes

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kballard/go-shellquote"
)

// command is the argv: what the task says or else its engine, then args.
func (l *loader) command(d *draft) {
	t := &d.task
	own, shell := d.node.get("command"), d.node.get("shell")
	switch {
	case own == nil && d.node.has("command"):
	case shell != nil && shell.text == "true":
		l.shellCommand(d, own, shell)
		return
	case own == nil && d.engine != nil:
		t.Command = l.engineCommand(d)
	case own == nil && d.kind == "shell":
		t.Command = []string{l.loginShell()}
	default:
		t.Command = l.words(own, d.scope)
	}
	if len(t.Command) > 0 {
		t.Command = append(t.Command, d.node.get("args").words()...)
	}
}

// engineCommand is the engine's argv. Without a model what names it falls away.
func (l *loader) engineCommand(d *draft) []string {
	c := d.engine.tree.get("command")
	if flag := d.engine.tree.get("model_flag"); flag != nil {
		d.own.own["model_flag"] = flag.get(modelForm(d.own.own["model"])).str()
	}
	if c == nil || d.own.own["model"] != "" {
		return l.filled(c, d.own).words()
	}
	some := *c
	some.items = slices.DeleteFunc(slices.Clone(c.items), func(n *node) bool {
		return n.raw == "${model}" || n.raw == "${model_flag}"
	})
	return l.filled(&some, d.own).words()
}

// modelForm tells a model that is a file or folder from one that is a name.
func modelForm(model string) string {
	for _, start := range []string{"/", "./", "../", "~/"} {
		if strings.HasPrefix(model, start) {
			return "file"
		}
	}
	switch filepath.Ext(model) {
	case ".gguf", ".bin", ".safetensors", ".kcpps":
		return "file"
	}
	return "name"
}

func (l *loader) shellCommand(d *draft, own, shell *node) {
	switch args := d.node.any("args"); {
	case own == nil:
		l.errs.add(shell, "say command: the text for it", "shell: true without a command")
	case own.form == sequence:
		l.errs.add(own, "write it as text, or leave shell out", "a list runs as it is; shell: true goes with text")
	case args != nil:
		l.errs.add(args, "write them into the command", "args cannot be added to a shell's text")
	default:
		if text := l.fill(own, d.scope); !own.bad {
			d.task.Command = []string{"/bin/sh", "-c", text}
		}
	}
}

func (l *loader) loginShell() string {
	if sh := l.getenv("SHELL"); filepath.IsAbs(sh) {
		return sh
	}
	return "/bin/sh"
}

// words are those of a command: a list as it is, a text split; nil for none.
func (l *loader) words(n *node, s *scope) []string {
	switch {
	case n == nil:
		return nil
	case n.form != sequence:
		return l.split(n, s)
	case len(n.items) == 0:
		l.errs.add(n, "", "the command is empty")
	}
	return n.words()
}

// split takes a command's text apart as a POSIX shell does. Variables are filled
// in afterwards: what they hold stays one word.
func (l *loader) split(n *node, s *scope) []string {
	ps, err := parts(n.raw)
	if err != nil {
		l.badReference(n, err)
		return nil
	}
	var text strings.Builder
	for i, p := range ps { // NUL cannot stand in a file: it marks the references
		if p.name == "" {
			text.WriteString(p.literal)
			continue
		}
		text.WriteString("\x00" + strconv.Itoa(i) + "\x00")
	}
	argv, err := shellquote.Split(text.String())
	if err != nil {
		l.errs.add(n, "", "the command cannot be split into words: %s", strings.ToLower(err.Error()))
		return nil
	}
	if len(argv) == 0 {
		l.errs.add(n, "", "the command is empty")
	}
	for i, word := range argv {
		argv[i] = l.bounded(n, s.expand(rejoin(word, ps), l.missing(n)))
	}
	return argv
}

// rejoin puts the references back into a word.
func rejoin(word string, ps []part) []part {
	var out []part
	for i, piece := range strings.Split(word, "\x00") {
		switch {
		case i%2 == 0 && piece != "":
			out = append(out, part{literal: piece})
		case i%2 == 1:
			k, _ := strconv.Atoi(piece)
			out = append(out, ps[k])
		}
	}
	return out
}
