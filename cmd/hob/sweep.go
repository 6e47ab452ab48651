package main

import (
	"context"

	"github.com/spf13/cobra"

	"hob/tasks"
)

func (a *app) sweepCommand() *cobra.Command {
	var take []string
	cmd := &cobra.Command{
		Use:   "sweep [RUN | RUN/TASK | TASK]...",
		Short: "look for what outlived tasks that have ended, and end it",
		Long: `Look at the whole host for processes that outlived tasks which have ended. Those
that are provably theirs are ended; those that only look alike are named. Of a
living task nothing is signalled. Without an argument: every run. Exit 3 when something
survived, 4 when something could not be verified.`,
		Example: `  hob sweep --dry-run
  hob sweep chat/llm --take 4711:linux:745460`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.manager("sweep")
			if err != nil {
				return err
			}
			a.reapFirst(cmd.Context(), m)
			sel, err := named(m, args)
			if err != nil {
				return err
			}
			if len(take) > 0 {
				return a.take(cmd.Context(), m, sel, take)
			}
			return a.stopped(m.Sweep(cmd.Context(), sel, tasks.StopOptions{Reason: "sweep", DryRun: a.dryRun}))
		},
	}
	cmd.Flags().StringArrayVar(&take, "take", nil, "end a listed look-alike too, by its exact id: `PID:START` as in hob report --json")
	a.dryRunFlag(cmd)
	a.jsonFlag(cmd)
	return cmd
}

// take promotes look-alikes that the person named.
func (a *app) take(ctx context.Context, m *tasks.Manager, sel []tasks.Selection, ids []string) error {
	var outs []tasks.Outcome
	for _, id := range ids {
		out, err := m.Take(ctx, sel, id, tasks.StopOptions{Reason: "sweep", DryRun: a.dryRun})
		if err != nil {
			return join(a.stopped(outs), err)
		}
		outs = append(outs, out)
	}
	return a.stopped(outs)
}
