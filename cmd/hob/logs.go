package main

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"hob/tasks"
)

func (a *app) logsCommand() *cobra.Command {
	o := tasks.LogOptions{Lines: -1}
	cmd := &cobra.Command{
		Use:   "logs [-f] [-n N] [RUN | RUN/TASK | TASK]...",
		Short: "show what tasks wrote",
		Long: `Show the output of tasks from the first kept line to the last, also of tasks
that have ended. With several tasks each line begins with its task's name.
Without an argument: the only run that is up.`,
		Example: `  hob logs -n 20 chat/llm
  hob logs -f`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.viewer("logs")
			if err != nil {
				return err
			}
			sel, err := chosen(m, args, false)
			if err != nil {
				return err
			}
			return m.Logs(cmd.Context(), sel, o, a.logLines(sel))
		},
	}
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "go on until the tasks have ended")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("lines") && o.Lines < 0 {
			return usage("0 or more", fmt.Sprintf("--lines cannot be %d", o.Lines))
		}
		return nil
	}
	cmd.Flags().IntVarP(&o.Lines, "lines", "n", -1, "only the last `N` lines (else all that are kept)")
	return cmd
}

// logLines writes lines as they were, but for the carriage returns of the
// terminal that the task wrote to.
func (a *app) logLines(sel []tasks.Selection) func(tasks.Name, []byte) error {
	several := len(sel) > 1 || len(sel) == 1 && len(sel[0].Tasks) > 1
	return func(n tasks.Name, lines []byte) error {
		prefix := ""
		switch {
		case len(sel) > 1:
			prefix = n.String() + " | "
		case several:
			prefix = n.Task + " | "
		}
		_, err := a.out.Write(withPrefix(prefix, lines))
		return err
	}
}

// withPrefix puts a prefix before each line, and ends lines as files do, not as
// the terminal that the task wrote to.
func withPrefix(prefix string, lines []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(bytes.ReplaceAll(lines, []byte("\r\n"), []byte("\n"))) {
		b.WriteString(prefix)
		b.Write(line)
	}
	return b.Bytes()
}
