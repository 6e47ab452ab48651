package main

import (
	"errors"

	"github.com/spf13/cobra"

	"hob/tasks"
)

func (a *app) runCommand() *cobra.Command {
	var o tasks.RunOptions
	var how reading
	var pass bool
	cmd := &cobra.Command{
		Use:   "run [RECIPE]",
		Short: "run a recipe that ends with this hob",
		Long: `Run a recipe as a contained run: it belongs to this hob. It shows what the tasks
write, and ends with the last job (without jobs, with the last task), with the task
that --until names, with Ctrl-C, or when hob itself is killed: always by the stop
protocol, with the report at the end. It fails when the work failed.`,
		Example: `  hob run evaluate.yaml
  hob run evaluate.yaml --until score --exit-code`,
		Args:              most(1, "recipe"),
		ValidArgsFunction: a.completeRecipe,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, _, err := a.recipeAndTasks(args, how)
			if err != nil {
				return err
			}
			set, err := how.set()
			if err != nil {
				return err
			}
			o.Up.DryRun = a.dryRun
			o.Up.Rehearse, o.Up.Profiles, o.Up.Set = how.rehearse, how.profiles, set
			if a.dryRun {
				return a.up(cmd, r, o.Up)
			}
			m, err := a.manager("run")
			if err != nil {
				return err
			}
			a.reapFirst(cmd.Context(), m)
			o.Log = a.prefixed
			m.Tell = (&progress{a: a}).plainly
			res, err := m.Run(cmd.Context(), r, o)
			return a.ran(res, err, pass)
		},
	}
	cmd.Flags().StringVar(&o.Up.Name, "name", "", "the `NAME` of the run (else the recipe's)")
	cmd.Flags().StringVar(&o.Until, "until", "", "end with this `TASK` (else with the last job, or without jobs with the last task)")
	cmd.Flags().BoolVar(&pass, "exit-code", false, "exit with the work's own code")
	how.flags(cmd)
	a.dryRunFlag(cmd)
	return cmd
}

// ran prints the reports and says how the work went.
func (a *app) ran(res tasks.RunResult, err error, pass bool) error {
	errs := []error{err, a.problems(res.Started)}
	for i, o := range res.Stopped {
		if o.Report != nil {
			res.Stopped[i].Did = "" // the report is shown, whoever made it: this run is over
		}
	}
	errs = append(errs, a.reports(res.Stopped), a.problems(res.Stopped), a.work(res.Work, pass))
	return errors.Join(errs...)
}

// workFailed is work that failed; with code above 0 hob exits with it.
type workFailed struct {
	err  error
	code int
}

func (w *workFailed) Error() string { return w.err.Error() }
func (w *workFailed) Unwrap() error { return w.err }

// work are the failures among the endings.
func (a *app) work(ends []tasks.Ending, pass bool) error {
	var errs []error
	for _, e := range ends {
		err := e.Failure()
		if err == nil {
			continue
		}
		if e.State == tasks.Unverified { // nobody knows whether it failed
			errs = append(errs, &tasks.Problem{Kind: tasks.ErrUnverified, Err: err, Tip: "hob sweep " + e.String() + " looks once more"})
			continue
		}
		failed := &workFailed{err: err}
		if pass {
			failed.code = e.ExitCode()
		}
		errs = append(errs, failed)
	}
	return errors.Join(errs...)
}

// prefixed writes lines with their task in front.
func (a *app) prefixed(n tasks.Name, lines []byte) error {
	_, err := a.out.Write(withPrefix(n.Task+" | ", lines))
	return err
}
