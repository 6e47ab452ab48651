package main

import (
	"context"

	"github.com/spf13/cobra"

	"hob/tasks"
)

// reaped is what the reaper did about one record, for --json.
type reaped struct {
	Run   string      `json:"run"`
	Task  string      `json:"task"`
	State tasks.State `json:"state"`
	Did   string      `json:"did"`
}

func (a *app) reapCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reap",
		Short: "stop what belongs to a hob that is gone, and correct the records of what has ended",
		Long: `Look at every record. Tasks of a contained run (hob run) whose hob is gone are
stopped; of all others only the record is corrected, and nothing is ever stopped for
being old. What cannot be told is left as it is. Every verb that acts does this first.
Off a terminal: task, state, what was done.`,
		Args: most(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := a.manager("reap")
			if err != nil {
				return err
			}
			outs, err := m.Reap(cmd.Context(), true, tasks.StopOptions{Reason: "owner", DryRun: a.dryRun})
			if a.json {
				err = join(err, a.writeJSON(reapedList(outs)))
			} else {
				err = join(err, a.table([]string{"TASK", "STATE", "DID"}, reapedRows(outs)))
			}
			return join(err, a.problems(outs))
		},
	}
	a.dryRunFlag(cmd)
	a.jsonFlag(cmd)
	return cmd
}

func reapedList(outs []tasks.Outcome) []reaped {
	list := []reaped{}
	for _, o := range outs {
		list = append(list, reaped{o.Run, o.Task, o.State, o.Did})
	}
	return list
}

func reapedRows(outs []tasks.Outcome) [][]string {
	var rows [][]string
	for _, o := range outs {
		rows = append(rows, []string{o.String(), string(o.State), o.Did})
	}
	return rows
}

// reapFirst is the reaper at the start of a verb that acts. What it meets in a run is no
// fault of the verb: only what it stopped is told. That it could not look is.
func (a *app) reapFirst(ctx context.Context, m *tasks.Manager) {
	if a.dryRun {
		return
	}
	outs, err := m.Reap(ctx, false, tasks.StopOptions{Reason: "owner"})
	a.unreaped = err
	for _, o := range outs {
		if o.Report != nil {
			a.note("reaped %s: its hob is gone; it is %s", o.Name, o.State)
		}
	}
}
