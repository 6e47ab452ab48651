package main

import (
	"github.com/spf13/cobra"

	"hob/recipes"
)

func (a *app) schemaCommand() *cobra.Command {
	var engine bool
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "print the JSON Schema of recipes, for editors",
		Long: `Print the JSON Schema of recipes. Editors with a YAML language server then
complete keys, say what each means, and mark what is wrong:

  hob schema > hob.schema.json

and, as the first line of the recipe:

  # yaml-language-server: $schema=./hob.schema.json

hob recipes init --schema does both.`,
		Args: most(0, ""),
		RunE: func(*cobra.Command, []string) error {
			text := recipes.Schema()
			if engine {
				text = recipes.EngineSchema()
			}
			_, err := a.out.Write(text)
			return err
		},
	}
	cmd.Flags().BoolVar(&engine, "engine", false, "print the schema of engine files instead")
	return cmd
}
