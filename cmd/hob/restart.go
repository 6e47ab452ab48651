package main

import (
	"github.com/spf13/cobra"

	"hob/tasks"
)

func (a *app) restartCommand() *cobra.Command {
	var all bool
	var how reading
	cmd := &cobra.Command{
		Use:   "restart [RUN | RUN/TASK | TASK]...",
		Short: "stop tasks, and start them by their recipe as it is now",
		Long: `Stop tasks and start them again, by the recipe as it is now, with what was set and
laid over it at the start unless that is given anew. It is read before anything is
stopped. What could not be stopped clean is not started again.
Without an argument: the only run that is up.`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.manager("restart")
			if err != nil {
				return err
			}
			a.reapFirst(cmd.Context(), m)
			sel, err := chosen(m, args, all)
			if err != nil {
				return err
			}
			show := a.progress(m)
			outs, err := m.Restart(cmd.Context(), sel, a.reload(how), tasks.StopOptions{Reason: "restart", DryRun: a.dryRun})
			show.stop()
			if err != nil {
				return err
			}
			a.started(m, outs)
			return a.problems(outs)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "restart every run")
	how.variation(cmd)
	a.dryRunFlag(cmd)
	return cmd
}
