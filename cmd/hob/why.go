package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"hob/tasks"
)

func (a *app) whyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why [RUN | RUN/TASK | TASK]...",
		Short: "say why a task has failed or does not answer, and what to do",
		Long: `Say why tasks have failed or do not answer: their state, what the last lines of
their logs mean by what is known of their engines, and what to do. Without an
argument: every task that is not as it should be.

It exits with 4 where a task is unverified: why that is so could not be told.

With --json an array of {run, task, engine, state, note, findings, lines, log}.`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeNames,
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := a.viewer("why")
			if err != nil {
				return err
			}
			sel, err := named(m, args)
			if err != nil {
				return err
			}
			list, err := m.Why(sel, tasks.WhyOptions{EngineDir: a.engineDir(), Troubled: len(args) == 0})
			for _, w := range list {
				err = join(err, unverifiedTask(w.Name(), w.State, w.Note, w.Err))
			}
			if a.json {
				return join(a.writeJSON(list), err)
			}
			for _, w := range list {
				a.why(w)
			}
			if len(list) == 0 && err == nil {
				a.say("every task is as it should be")
			}
			return err
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

// why is what is known of one task.
func (a *app) why(w tasks.Why) {
	head := w.Name().String() + "  " + string(w.State)
	if w.Note != "" {
		head += ": " + w.Note
	}
	fmt.Fprintln(a.out, head)
	for _, f := range w.Findings {
		fmt.Fprint(a.out, indented(
			[2]string{"said", plain(f.Line)}, [2]string{"cause", f.Cause}, [2]string{"do", f.Fix}, [2]string{"see", f.Source}))
	}
	if len(w.Findings) > 0 {
		return
	}
	for _, line := range w.Lines {
		fmt.Fprintln(a.out, "  |", plain(line))
	}
	switch {
	case len(w.Lines) > 0 && !w.Fine():
		fmt.Fprintf(a.out, "  no rule knows these lines; hob logs %s has them all\n", w.Name())
	case len(w.Lines) == 0:
		fmt.Fprintln(a.out, "  it has written nothing")
	}
}

// indented are labelled lines; those without a text fall away.
func indented(rows ...[2]string) string {
	var b strings.Builder
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(&b, "  %-6s %s\n", row[0], cut(row[1], 300))
		}
	}
	return b.String()
}

// explain writes beside the result why a task has failed.
func (a *app) explain(m *tasks.Manager, n tasks.Name) {
	for _, f := range m.WhyOf(n, a.engineDir()).Findings {
		a.note("%s: %s", n, f.Cause)
		a.note("hint: %s", f.Fix)
	}
}
