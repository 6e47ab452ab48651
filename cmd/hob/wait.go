package main

import (
	"github.com/spf13/cobra"

	"hob/tasks"
)

func (a *app) waitCommand() *cobra.Command {
	var pass bool
	cmd := &cobra.Command{
		Use:   "wait RUN | RUN/TASK | TASK...",
		Short: "wait until tasks have ended",
		Long: `Wait until tasks have ended and their keepers have seen to what they left behind.
It fails when the work failed. Off a terminal: task, state, exit code.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("hob ps lists them", "say what is to be waited for")
			}
			return nil
		},
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.viewer("wait")
			if err != nil {
				return err
			}
			sel, err := m.Select(args)
			if err != nil {
				return err
			}
			ends, err := m.Wait(cmd.Context(), sel)
			if !a.quiet {
				err = join(err, a.table([]string{"TASK", "STATE", "CODE"}, endingRows(ends)))
			}
			return join(err, a.work(ends, pass))
		},
	}
	cmd.Flags().BoolVar(&pass, "exit-code", false, "exit with the work's own code")
	return cmd
}

func endingRows(ends []tasks.Ending) [][]string {
	var rows [][]string
	for _, e := range ends {
		if e.State != "" {
			rows = append(rows, []string{e.String(), string(e.State), number(e.Code)})
		}
	}
	return rows
}
