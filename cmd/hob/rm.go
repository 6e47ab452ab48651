package main

import (
	"github.com/spf13/cobra"

	"hob/tasks"
)

func (a *app) rmCommand() *cobra.Command {
	var o tasks.RemoveOptions
	var archived bool
	cmd := &cobra.Command{
		Use:   "rm [RUN]...",
		Short: "remove the records of runs that have ended",
		Long: `Remove the records (logs and reports too) of runs that have ended: of RUN and of
its archived namesakes, or of one folder of the archive. A run that is up, or of
which something survived, is kept.`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			m, err := a.viewer("completion")
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			names, _ := m.Ended()
			return without(names, args), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !archived {
				return usage("hob rm RUN, or hob rm --archived", "say what is to be removed")
			}
			m, err := a.manager("rm")
			if err != nil {
				return err
			}
			a.reapFirst(cmd.Context(), m)
			if archived {
				names, err := m.Archived()
				if err != nil {
					return err
				}
				args = append(args, names...)
			}
			o.DryRun = a.dryRun
			outs, err := m.Remove(cmd.Context(), args, o)
			for _, out := range outs {
				a.say("%s\t%s", out.Name, out.Did)
			}
			return join(a.problems(outs), err)
		},
	}
	cmd.Flags().BoolVar(&archived, "archived", false, "every run in the archive")
	cmd.Flags().BoolVar(&o.Forget, "forget", false, "also records that cannot be verified or read")
	a.dryRunFlag(cmd)
	return cmd
}
