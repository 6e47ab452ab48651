package main

import (
	"errors"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"hob/recipes"
	"hob/tasks"
)

func (a *app) recipesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "recipes",
		Short: "list the recipes that have a name, or take one of them over",
		Long: `List the recipes that hob up takes by name: your own, in the folder recipes of
hob's configuration ($XDG_CONFIG_HOME/hob, ~/.config/hob), and those of hob's
gallery. Off a terminal: tab-separated name, what it is, file (empty: gallery).`,
		Args: most(0, ""),
		RunE: func(*cobra.Command, []string) error {
			list := recipes.List(a.recipeDirs())
			if a.json {
				return a.writeJSON(list)
			}
			return a.table([]string{"RECIPE", "WHAT IT IS", "FILE"}, entryRows(list))
		},
	}
	a.jsonFlag(cmd)
	cmd.AddCommand(a.recipesShowCommand(), a.recipesInitCommand())
	return cmd
}

func entryRows(list []recipes.Entry) [][]string {
	var rows [][]string
	for _, e := range list {
		rows = append(rows, []string{e.Name, e.About, e.File})
	}
	return rows
}

func (a *app) recipesShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "show RECIPE",
		Short:             "print a recipe as it is written",
		Args:              most(1, "recipe"),
		ValidArgsFunction: a.completeEntry,
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := a.entry(args)
			if err != nil {
				return err
			}
			text, err := recipes.Show(file)
			if err != nil {
				return err
			}
			_, err = io.WriteString(a.out, text)
			return err
		},
	}
}

func (a *app) recipesInitCommand() *cobra.Command {
	var schema bool
	cmd := &cobra.Command{
		Use:   "init RECIPE [FILE]",
		Short: "write a recipe into a file of your own, to be changed",
		Long: `Write a recipe into FILE, without it ./hob.yaml. A file that is there already is
left as it is.`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeEntry,
		RunE: func(_ *cobra.Command, args []string) error {
			from, err := a.entry(args)
			if err != nil {
				return err
			}
			file, beside := "hob.yaml", ""
			switch len(args) {
			case 1:
			case 2:
				file = args[1]
			default:
				return usage("hob recipes init RECIPE [FILE]", "one recipe goes into one file, got "+quote(args[2])+" too")
			}
			if schema {
				beside = "hob.schema.json"
			}
			if err := recipes.Init(from, file, beside); err != nil {
				return notWritten(file, err)
			}
			a.say("wrote %s; hob check reads it, hob up starts it, hob up --rehearse tries it", file)
			return nil
		},
	}
	cmd.Flags().BoolVar(&schema, "schema", false, "write hob.schema.json beside it, and tell editors of it in the first line")
	return cmd
}

// entry is the file of the recipe that was named.
func (a *app) entry(args []string) (string, error) {
	if len(args) == 0 {
		return "", usage("hob recipes lists them", "say which recipe")
	}
	return a.find(args[0])
}

func notWritten(file string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return &tasks.Problem{Kind: tasks.ErrUsage, Msg: file + " is there already", Tip: "name another file, or move that one away"}
	}
	return err
}

func (a *app) completeEntry(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return recipes.Names(a.recipeDirs()), cobra.ShellCompDirectiveNoFileComp
}
