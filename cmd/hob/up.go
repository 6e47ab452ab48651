package main

import (
	"slices"

	"github.com/spf13/cobra"

	"hob/recipes"
	"hob/tasks"
)

func (a *app) upCommand() *cobra.Command {
	var name string
	var how reading
	cmd := &cobra.Command{
		Use:   "up [RECIPE] [TASK...]",
		Short: "start what a recipe names, and wait until it answers",
		Long: `Start the tasks of a recipe, each in a tmux pane of its own, as soon as what
it depends on is there, and wait until the servers answer. They go on when hob
has ended. RECIPE is a file, or the name of a recipe; without it ./hob.yaml.
With TASKs, or groups of tasks, only these are started, and what they depend on.

Of a run that is up, tasks that live are left alone and others are started. On a
terminal it shows what each task waits for and its last log line, elsewhere a plain
line for each step.

With --dry-run nothing is started: for each task the exact command, the names of
the environment that it would get, its port, GPUs, readiness, stop, and the tmux
command that would make its pane; and what stands in the way of it. Off a terminal:
tab-separated task, what, text. With --json an array of the same. In a hook what looks
like a secret is left out; --json has it.`,
		Example: `  hob up
  hob up --rehearse --set model=Qwen/Qwen3-8B vllm.yaml`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeRecipe,
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.json && !a.dryRun {
				return usage("hob ps --json says what is up", "--json goes with --dry-run")
			}
			r, named, err := a.recipeAndTasks(args, how)
			if err != nil {
				return a.wrong(err)
			}
			set, err := how.set()
			if err != nil {
				return err
			}
			return a.up(cmd, r, tasks.UpOptions{Name: name, Tasks: named, Rehearse: how.rehearse, Set: set, Profiles: how.profiles, DryRun: a.dryRun})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the `NAME` of the run (else the recipe's)")
	how.flags(cmd)
	a.dryRunFlag(cmd)
	cmd.Flags().BoolVar(&a.json, "json", false, "write what --dry-run finds as JSON")
	return cmd
}

func (a *app) up(cmd *cobra.Command, r *recipes.Recipe, o tasks.UpOptions) error {
	m, err := a.manager("up")
	if err != nil {
		return err
	}
	a.reapFirst(cmd.Context(), m)
	show := a.progress(m)
	outs, err := m.Up(cmd.Context(), r, o)
	show.stop()
	if o.DryRun {
		return join(a.plans(outs), err)
	}
	if err != nil {
		return err
	}
	a.started(m, outs)
	return a.problems(outs)
}

// started says where each task is, and of those that failed their last lines.
func (a *app) started(m *tasks.Manager, outs []tasks.Outcome) {
	for _, o := range outs {
		if a.dryRun || o.Did == "left alone" && o.Err == nil {
			a.say("%s\t%s", o.Name, o.Did)
		}
		if o.Err == nil || a.quiet {
			continue
		}
		for _, line := range m.Tail(o.Name, 5) {
			a.note("%s | %s", o.Name, plain(line))
		}
		if o.Did == "started" {
			a.explain(m, o.Name)
		}
	}
}

// completeRecipe completes recipes first, then the tasks of the one that was named.
func (a *app) completeRecipe(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return recipes.Names(a.recipeDirs()), cobra.ShellCompDirectiveDefault
	}
	r, err := a.load(args[0], reading{rehearse: true})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, t := range r.Tasks {
		names = append(append(names, t.Name), t.Groups...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return without(names, args), cobra.ShellCompDirectiveNoFileComp
}
