package main

import (
	"github.com/spf13/cobra"

	"hob/tasks"
)

func (a *app) waitCommand() *cobra.Command {
	var pass bool
	cmd := &cobra.Command{
		Use:   "wait RUN | RUN/TASK | TASK...",
		Short: "wait until tasks have ended",
		Long: `Wait until tasks have ended and their keepers have seen to what they left behind.
It fails when the work failed, and with exit 4 when a record is removed meanwhile.
Off a terminal: task, state, exit code. With --json an array of {run, task, state,
exit_code, signal, note}.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("hob ps lists them", "say what is to be waited for")
			}
			return nil
		},
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.viewer("wait")
			if err != nil {
				return err
			}
			sel, err := m.Select(args)
			if err != nil {
				return err
			}
			ends, err := m.Wait(cmd.Context(), sel)
			switch {
			case a.json:
				err = join(err, a.writeJSON(endingList(ends)))
			case !a.quiet:
				err = join(err, a.table([]string{"TASK", "STATE", "CODE"}, endingRows(ends)))
			}
			return join(err, a.work(ends, pass))
		},
	}
	cmd.Flags().BoolVar(&pass, "exit-code", false, "exit with the work's own code")
	a.jsonFlag(cmd)
	return cmd
}

// ended is how a task ended, for --json.
type ended struct {
	Run      string      `json:"run"`
	Task     string      `json:"task"`
	State    tasks.State `json:"state"`
	ExitCode *int        `json:"exit_code"`
	Signal   *string     `json:"signal"`
	Note     string      `json:"note"`
}

func endingList(ends []tasks.Ending) []ended {
	list := []ended{}
	for _, e := range ends {
		if e.State == "" { // it was not waited for to its end
			continue
		}
		one := ended{Run: e.Run, Task: e.Task, State: e.State, ExitCode: e.Code, Note: e.Note}
		if e.Sig != "" {
			one.Signal = &e.Sig
		}
		list = append(list, one)
	}
	return list
}

func endingRows(ends []tasks.Ending) [][]string {
	var rows [][]string
	for _, e := range ends {
		if e.State != "" {
			rows = append(rows, []string{e.String(), string(e.State), number(e.Code)})
		}
	}
	return rows
}
