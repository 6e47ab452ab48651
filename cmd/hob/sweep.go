package main

import (
	"github.com/spf13/cobra"

	"hob/tasks"
)

func (a *app) sweepCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sweep [RUN | RUN/TASK | TASK]...",
		Short: "look for what outlived tasks that have ended, and end it",
		Long: `Look at the whole host for processes that outlived tasks which have ended. Those
that are provably theirs are ended; those that only look alike are named. Of a
living task nothing is signalled. Without an argument: every run.`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.manager("sweep")
			if err != nil {
				return err
			}
			sel, err := named(m, args)
			if err != nil {
				return err
			}
			return a.stopped(m.Sweep(cmd.Context(), sel, tasks.StopOptions{Reason: "sweep", DryRun: a.dryRun}))
		},
	}
	a.dryRunFlag(cmd)
	a.jsonFlag(cmd)
	return cmd
}
