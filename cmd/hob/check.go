package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"hob/recipes"
)

func (a *app) checkCommand() *cobra.Command {
	var rehearse bool
	cmd := &cobra.Command{
		Use:   "check [RECIPE]",
		Short: "read a recipe and say what is wrong with it",
		Long: `Read a recipe, resolve it and say what is wrong with it, with file, line and
column. Nothing of the host is looked at. Off a terminal: tab-separated task,
kind, engine, port, what it depends on, command.`,
		Args:              most(1, "recipe"),
		ValidArgsFunction: a.completeRecipe,
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := a.load(strings.Join(args, ""), rehearse)
			if err != nil {
				return err
			}
			if a.json {
				return a.writeJSON(r)
			}
			return a.table([]string{"TASK", "KIND", "ENGINE", "PORT", "AFTER", "COMMAND"}, checkRows(r))
		},
	}
	cmd.Flags().BoolVar(&rehearse, "rehearse", false, "with the built-in pilot in every engine's place")
	a.jsonFlag(cmd)
	return cmd
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
