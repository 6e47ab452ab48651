package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"hob/recipes"
)

func (a *app) checkCommand() *cobra.Command {
	var how reading
	cmd := &cobra.Command{
		Use:   "check [RECIPE] [TASK...]",
		Short: "read a recipe and say what is wrong with it",
		Long: `Read a recipe, resolve it and say what is wrong with it, with file, line and
column, the line itself, and the right word where hob knows it: all of it at
once. Nothing of the host is looked at. With TASKs, or groups of tasks, the table
has these, and what they depend on. Off a terminal: tab-separated task, kind,
engine, port, what it depends on, command.

With --json the recipe as resolved, or {"errors": [...]} of one that is wrong.`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeRecipe,
		RunE: func(_ *cobra.Command, args []string) error {
			r, names, err := a.recipeAndTasks(args, how)
			if err != nil {
				return a.wrong(err)
			}
			if r.Tasks, err = r.Select(names...); err != nil {
				return err
			}
			if a.json {
				return a.writeJSON(r)
			}
			for _, note := range r.Notes {
				a.note("note: %s", plain(note))
			}
			return a.table([]string{"TASK", "KIND", "ENGINE", "PORT", "AFTER", "COMMAND"}, checkRows(r))
		},
	}
	how.flags(cmd)
	a.jsonFlag(cmd)
	return cmd
}

// wrong passes on what is wrong with a recipe, with --json on standard output too.
func (a *app) wrong(err error) error {
	var faults recipes.Errors
	if a.json && errors.As(err, &faults) {
		return join(a.writeJSON(faulty{faults}), err)
	}
	return err
}

func checkRows(r *recipes.Recipe) [][]string {
	var rows [][]string
	for _, t := range r.Tasks {
		port := ""
		if t.Port.Auto {
			port = "auto"
		} else if t.Port.Number > 0 {
			port = strconv.Itoa(t.Port.Number)
		}
		var after []string
		for _, d := range t.DependsOn {
			after = append(after, d.Task+" "+d.Condition)
		}
		rows = append(rows, []string{t.Name, t.Kind, t.Engine, port, strings.Join(after, ", "), strings.Join(t.Command, " ")})
	}
	return rows
}
