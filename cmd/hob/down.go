package main

import (
	"github.com/spf13/cobra"

	"hob/tasks"
)

func (a *app) downCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "down [RUN | RUN/TASK | TASK]...",
		Aliases: []string{"stop"},
		Short:   "stop tasks, and sweep up what outlived them",
		Long: `Stop tasks: write down their process trees, ask, end what does not follow, kill
the panes, and look at the whole host for what is left. Only processes that are
provably the task's are signalled. Without an argument: the only run that is up. Exit 3
when something survived, 4 when something could not be verified.`,
		Example: `  hob down --dry-run
  hob down chat/llm`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.manager("down")
			if err != nil {
				return err
			}
			a.reapFirst(cmd.Context(), m)
			sel, err := chosen(m, args, all)
			if err != nil {
				return err
			}
			show := a.progress(m)
			outs := m.Down(cmd.Context(), sel, tasks.StopOptions{Reason: "down", DryRun: a.dryRun})
			show.stop()
			if len(args) > 0 {
				return a.stopped(outs)
			}
			lost := m.Strays(cmd.Context(), m.Keepers()).Err()
			if lost != nil && len(outs) == 0 {
				return join(a.reports(outs), lost) // it would not be true that nothing is up
			}
			return join(a.stopped(outs), lost)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "stop every run")
	a.dryRunFlag(cmd)
	a.jsonFlag(cmd)
	return cmd
}

// chosen are the named runs and tasks, all, or the only one.
func chosen(m *tasks.Manager, args []string, all bool) ([]tasks.Selection, error) {
	switch {
	case all && len(args) > 0:
		return nil, usage("leave one of them out", "--all and names do not go together")
	case all:
		return m.All()
	case len(args) > 0:
		return m.Select(args)
	}
	return m.Only()
}

// stopped prints what a stop came to.
func (a *app) stopped(outs []tasks.Outcome) error {
	if err := a.reports(outs); err != nil {
		return err
	}
	if len(outs) == 0 && !a.json {
		a.say("nothing is up")
	}
	return a.problems(outs)
}
