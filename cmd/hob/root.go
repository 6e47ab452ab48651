package main

import (
	"strings"

	"github.com/spf13/cobra"

	"hob/tasks"
)

// root builds the whole command line.
func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hob",
		Short: "start model servers in tmux panes, and end all of what was started",
		Long: `hob starts what a recipe names (model servers, jobs, shells) in tmux panes,
waits until it answers, and stops it again: with every process that it left
behind, and with no other.`,
		Args:              cobra.ArbitraryArgs,
		RunE:              a.noVerb,
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
	}
	cmd.SetOut(a.out)
	cmd.SetErr(a.err)
	cmd.SetFlagErrorFunc(flagError)
	f := cmd.PersistentFlags()
	f.StringVar(&a.home, "home", "", "the state `FOLDER` (else $HOB_HOME, $XDG_STATE_HOME/hob, ~/.local/state/hob)")
	f.BoolVar(&a.noColor, "no-color", false, "write no colours (also: $NO_COLOR)")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "write only what was asked for, and errors")
	cmd.SetUsageFunc(writeUsage)
	cmd.AddGroup(verbGroups()...)
	cmd.AddCommand(in(groupRun, a.upCommand(), a.downCommand(), a.restartCommand(), a.runCommand())...)
	cmd.AddCommand(in(groupLook, a.psCommand(), a.logsCommand(), a.attachCommand(), a.whyCommand(), a.waitCommand(), a.eventsCommand())...)
	cmd.AddCommand(in(groupEnd, a.sweepCommand(), a.reportCommand(), a.reapCommand(), a.rmCommand())...)
	cmd.AddCommand(in(groupRecipes, a.checkCommand(), a.recipesCommand(), a.schemaCommand(), a.convertCommand())...)
	cmd.AddCommand(in(groupOthers, a.adoptCommand(), a.freezeCommand(), a.importCommand())...)
	cmd.AddCommand(in(groupHob, a.doctorCommand(), a.versionCommand())...)
	cmd.AddCommand(a.topics()...)
	cmd.SetCompletionCommandGroupID(groupHob)
	cmd.SetHelpCommandGroupID(groupHob)
	cmd.InitDefaultCompletionCmd()
	for _, c := range cmd.Commands() {
		if c.Name() == "completion" {
			c.Args, c.RunE = cobra.ArbitraryArgs, noShell
			c.Short, c.Long = "print the completion script of a shell", "Print the completion script of a shell; the help of each says how it is loaded."
		}
	}
	return cmd
}

// noShell is for `hob completion` alone, and for a word that is no shell.
func noShell(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var shells []string
	for _, c := range cmd.Commands() {
		shells = append(shells, c.Name())
	}
	return usage("there are "+strings.Join(shells, ", "), "there is no completion for "+quote(args[0]))
}

// noVerb is for `hob` alone, and for a word that is no verb.
func (a *app) noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var verbs []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			verbs = append(append(verbs, c.Name()), c.Aliases...)
		}
	}
	tip := "hob --help lists the verbs"
	if near := tasks.Near(args[0], verbs); len(near) > 0 {
		tip = "did you mean hob " + strings.Join(near, " or hob ") + "?"
	}
	return usage(tip, "there is no verb "+quote(args[0]))
}

func flagError(cmd *cobra.Command, err error) error {
	return &tasks.Problem{Kind: tasks.ErrUsage, Err: err, Tip: cmd.CommandPath() + " --help"}
}

func usage(tip, msg string) error {
	return &tasks.Problem{Kind: tasks.ErrUsage, Msg: msg, Tip: tip}
}

func quote(s string) string { return `"` + s + `"` }

// most refuses more arguments than a verb takes.
func most(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		if n == 0 {
			return usage(cmd.CommandPath()+" --help", cmd.CommandPath()+" takes no arguments, got "+quote(args[0]))
		}
		return usage(cmd.CommandPath()+" --help", cmd.CommandPath()+" takes one "+what+", got "+quote(args[n])+" too")
	}
}

// jsonFlag and dryRunFlag add flags that several verbs have.
func (a *app) jsonFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.json, "json", false, "write JSON")
}

func (a *app) dryRunFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.dryRun, "dry-run", false, "say what would be done, and do nothing")
}

// completeNames completes runs and tasks.
func (a *app) completeNames(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	m, err := a.viewer("completion")
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ns, _ := m.Names() // what cannot be read is not offered
	return without(ns.Words(), args), cobra.ShellCompDirectiveNoFileComp
}

// completeOne is completeNames for verbs that take one name.
func (a *app) completeOne(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeNames(cmd, args, word)
}

func without(words, used []string) []string {
	var left []string
	for _, w := range words {
		taken := false
		for _, u := range used {
			taken = taken || u == w
		}
		if !taken {
			left = append(left, w)
		}
	}
	return left
}
