package main

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hob/tasks"
)

func (a *app) rmCommand() *cobra.Command {
	var o tasks.RemoveOptions
	var archived bool
	var age string
	cmd := &cobra.Command{
		Use:   "rm [RUN]...",
		Short: "remove the records of runs that have ended",
		Long: `Remove the records, logs and reports of runs that have ended: of each RUN and of its
archived namesakes. RUN may also be one folder of the archive (hob ps --all -v names
them). --archived removes the whole archive, --older-than what was archived that long
ago: of each RUN, or of all. A run that is up, or of which something survived, is kept.`,
		Example: `  hob rm chat
  hob rm --older-than 30d`,
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
			if len(args) == 0 && !archived && age == "" {
				return usage("hob rm RUN, hob rm --archived, or hob rm --older-than 30d", "say what is to be removed")
			}
			old, err := olderThan(age)
			if err != nil {
				return err
			}
			m, err := a.manager("rm")
			if err != nil {
				return err
			}
			a.reapFirst(cmd.Context(), m)
			if archived || age != "" {
				names, err := m.ArchivedBefore(before(old))
				if err != nil {
					return err
				}
				args = toRemove(args, names, age != "")
			}
			o.DryRun = a.dryRun
			outs, err := m.Remove(cmd.Context(), args, o)
			for _, out := range outs {
				a.say("%s\t%s", out.Name, out.Did)
			}
			return join(a.problems(outs), err)
		},
	}
	cmd.Flags().StringVar(&age, "older-than", "", "what was archived at least `AGE` ago, like 30d or 12h")
	cmd.Flags().BoolVar(&archived, "archived", false, "remove every run in the archive")
	cmd.Flags().BoolVar(&o.Forget, "forget", false, "remove records that cannot be verified or read, too; what they name runs on")
	a.dryRunFlag(cmd)
	return cmd
}

// olderThan reads an age, which may be in days and weeks.
func olderThan(age string) (time.Duration, error) {
	if age == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(age)
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if n, ok := strings.CutSuffix(age, unit); ok {
			var count int
			if count, err = strconv.Atoi(n); err == nil && count > int(math.MaxInt64/length) {
				err = strconv.ErrRange
			}
			d = time.Duration(count) * length
		}
	}
	if err != nil || d <= 0 {
		return 0, usage("write it like 30d, 2w or 12h", "--older-than "+quote(age)+" is no age")
	}
	return d, nil
}

// before is the time that an age means; the zero one without.
func before(age time.Duration) time.Time {
	if age == 0 {
		return time.Time{}
	}
	return time.Now().Add(-age)
}

// toRemove are the folders of the archive that go, and the runs that were named
// beside them. With an age the runs only say whose folders.
func toRemove(runs, folders []string, byAge bool) []string {
	if !byAge {
		return append(runs, folders...)
	}
	return slices.DeleteFunc(folders, func(folder string) bool {
		return len(runs) > 0 && !slices.Contains(runs, folder) && !slices.Contains(runs, tasks.ArchivedRun(folder))
	})
}
