package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hob/tasks"
)

// event is one event with its run, for --json.
type event struct {
	Run string `json:"run"`
	tasks.Event
}

func (a *app) eventsCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "events [-f] [RUN]...",
		Short: "show who did what, and when",
		Long: `Show what happened to runs, the oldest first: when, which verb, its pid, which task,
what. Without RUN: of all runs, with -f also of those that come. With --json a list, or
with -f a line for each.`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.viewer("events")
			if err != nil {
				return err
			}
			m.Warn = func(what string) { a.note("note: %s", what) }
			sel, err := named(m, args)
			if err != nil {
				return err
			}
			if a.json && !follow {
				list := []event{}
				err := m.Events(cmd.Context(), sel, tasks.EventsOptions{}, func(run string, e tasks.Event) error {
					list = append(list, event{run, e})
					return nil
				})
				return join(a.writeJSON(list), err)
			}
			return m.Events(cmd.Context(), sel, tasks.EventsOptions{Follow: follow, All: len(args) == 0}, a.event)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on as things happen")
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) event(run string, e tasks.Event) error {
	if a.json {
		return json.NewEncoder(a.out).Encode(event{run, e})
	}
	at := e.At.Format(time.RFC3339)
	if a.outTTY {
		at = e.At.Local().Format("2006-01-02 15:04:05")
	}
	_, err := fmt.Fprintf(a.out, "%s\t%s\t%d\t%s\t%s\n", at, e.Verb, e.PID, tasks.Name{Run: run, Task: e.Task}, plain(e.What))
	return err
}
