package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kballard/go-shellquote"

	"hob/recipes/convert"
	"hob/tasks"
)

// plans writes what an up would do.
func (a *app) plans(outs []tasks.Outcome) error {
	list := []*tasks.Planned{}
	for _, o := range outs {
		list = append(list, o.Plan)
	}
	if a.json {
		return a.writeJSON(list)
	}
	for _, p := range list {
		name := p.Run + "/" + p.Task
		if !a.outTTY {
			if err := tsv(a.out, planRows(name, p)); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(a.out, "%s  %s\n", name, p.Does)
		for _, row := range planRows(name, p)[1:] {
			fmt.Fprintf(a.out, "  %-11s %s\n", row[1], row[2])
		}
	}
	return nil
}

// planRows are task, what and text; the first says what would be done.
func planRows(name string, p *tasks.Planned) [][]string {
	rows := [][]string{{name, p.Does}}
	add := func(what, text string) {
		if text != "" {
			rows = append(rows, []string{name, what, text})
		}
	}
	add("after", strings.Join(p.After, ", "))
	add("before", hook(p.Before))
	add("command", shellquote.Join(p.Command...))
	add("dir", p.Dir)
	add("env", masked(p.Env))
	if p.Port != nil {
		add("port", strconv.Itoa(*p.Port))
	}
	add("gpus", p.GPUs)
	add("ready", p.Ready)
	add("after_ready", hook(p.AfterReady))
	add("stop", p.Stop)
	add("after_stop", hook(p.AfterStop))
	add("restart", p.Restart)
	if len(p.Tmux) > 0 {
		add("tmux", shellquote.Join(p.Tmux...))
	}
	return rows
}

// hook is a hook's command for people. Unlike the task's, which is shown as it is and
// stands in every list of processes, it is shown nowhere else: no event or log has its
// arguments. So what looks like a secret in it is left out; --json has all of it.
func hook(args []string) string {
	words := convert.Hide(args)
	for i, word := range words {
		if word == args[i] {
			words[i] = shellquote.Join(word)
		}
	}
	return strings.Join(words, " ")
}

// masked are the names of an environment, whose values are never shown.
func masked(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(n + "=***")
	}
	return b.String()
}
