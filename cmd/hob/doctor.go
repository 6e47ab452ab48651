package main

import (
	"github.com/spf13/cobra"

	"hob/tasks"
)

func (a *app) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "say what this host lets hob see and do",
		Long: `Say what this host lets hob see and do, and what is missing. Off a terminal:
tab-separated check, grade (ok, warning, bad, unknown), text, advice.`,
		Args: most(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := a.viewer("doctor")
			if err != nil {
				return err
			}
			checks := m.Doctor(cmd.Context())
			if a.json {
				err = a.writeJSON(checks)
			} else {
				err = a.table([]string{"CHECK", "GRADE", "WHAT", "ADVICE"}, checkTable(checks))
			}
			return join(err, unfit(checks))
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

func checkTable(checks []tasks.Check) [][]string {
	var rows [][]string
	for _, c := range checks {
		rows = append(rows, []string{c.Name, c.Grade, c.Text, c.Tip})
	}
	return rows
}

// unfit fails when hob cannot work here.
func unfit(checks []tasks.Check) error {
	for _, c := range checks {
		if c.Grade == tasks.Bad {
			return &tasks.Problem{Msg: "hob cannot work here: " + c.Name + ": " + c.Text, Tip: c.Tip}
		}
	}
	return nil
}
