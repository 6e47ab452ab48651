package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hob/recipes"
)

// The groups that `hob --help` lists the verbs in.
const (
	groupRun     = "run"
	groupLook    = "look"
	groupEnd     = "end"
	groupRecipes = "recipes"
	groupOthers  = "others"
	groupHob     = "hob"
)

func verbGroups() []*cobra.Group {
	return []*cobra.Group{
		{ID: groupRun, Title: "Start and stop"},
		{ID: groupLook, Title: "Look"},
		{ID: groupEnd, Title: "What outlived a stop"},
		{ID: groupRecipes, Title: "Recipes"},
		{ID: groupOthers, Title: "What others started"},
		{ID: groupHob, Title: "hob itself"},
	}
}

// in puts verbs into a group.
func in(group string, verbs ...*cobra.Command) []*cobra.Command {
	for _, v := range verbs {
		v.GroupID = group
	}
	return verbs
}

// topics are pages of help that belong to no verb.
func (a *app) topics() []*cobra.Command {
	return []*cobra.Command{
		a.topic("language", "the recipe language: its rules, its engines, all keys", recipes.Language),
		a.topic("exit-codes", "what hob's exit codes mean", func() string { return exitCodes }),
	}
}

func (a *app) topic(name, short string, text func() string) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short}
	cmd.SetHelpFunc(func(*cobra.Command, []string) { fmt.Fprint(a.out, text()) })
	return cmd
}

const exitCodes = `0    done, and clean
1    something failed
2    wrong usage, or a recipe that is wrong; nothing was started or stopped
3    survivors remain
4    something could not be verified or inspected: a record that cannot be
     trusted, a process that cannot be told
5    refused on identity: a pane, server or process lives there and is not
     proven to be ours
130  interrupted

Where several apply: 130, 5, 3, 4, 1. Look-alikes, and processes that were left
alone on purpose, change nothing.
`

// writeUsage is the part of a help page that comes from the verb's own tables.
func writeUsage(cmd *cobra.Command) error {
	w := cmd.OutOrStderr()
	fmt.Fprintln(w, "Usage:")
	if cmd.Runnable() && cmd.HasParent() {
		fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s [command]\n", cmd.CommandPath())
	}
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(w, "\nAlso called:\n  %s\n", strings.Join(cmd.Aliases, ", "))
	}
	if cmd.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	writeCommands(w, cmd)
	if err := errors.Join(writeFlags(w, "Flags", cmd.LocalFlags()), writeFlags(w, "Flags of every verb", cmd.InheritedFlags())); err != nil {
		return err
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n%s [command] --help says more of each.\n", cmd.CommandPath())
	}
	return nil
}

// writeCommands lists what is below a command, by group where it has groups.
func writeCommands(w io.Writer, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	fmt.Fprintln(w, "\nAvailable Commands:")
	if len(cmd.Groups()) == 0 {
		writeGroup(w, cmd, func(c *cobra.Command) bool { return c.IsAvailableCommand() })
	}
	for i, g := range cmd.Groups() {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, " %s\n", g.Title)
		writeGroup(w, cmd, func(c *cobra.Command) bool { return c.IsAvailableCommand() && c.GroupID == g.ID })
	}
	if cmd.HasHelpSubCommands() {
		fmt.Fprintf(w, "\nTopics (%s help TOPIC):\n", cmd.CommandPath())
		writeGroup(w, cmd, (*cobra.Command).IsAdditionalHelpTopicCommand)
	}
}

func writeGroup(w io.Writer, cmd *cobra.Command, has func(*cobra.Command) bool) {
	for _, c := range cmd.Commands() {
		if has(c) {
			fmt.Fprintf(w, "  %-*s  %s\n", cmd.NamePadding(), c.Name(), c.Short)
		}
	}
}

// writeFlags lists flags by name.
func writeFlags(w io.Writer, title string, flags *pflag.FlagSet) error {
	if !flags.HasAvailableFlags() {
		return nil
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		short := "    "
		if f.Shorthand != "" {
			short = "-" + f.Shorthand + ", "
		}
		value, says := pflag.UnquoteUsage(f)
		if value != "" {
			value = " " + value
		}
		fmt.Fprintf(table, "  %s--%s%s\t%s\n", short, f.Name, value, says)
	})
	return table.Flush()
}
