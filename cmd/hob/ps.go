package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"hob/identity"
	"hob/tasks"
)

func (a *app) psCommand() *cobra.Command {
	var all, verbose bool
	cmd := &cobra.Command{
		Use:     "ps [RUN | RUN/TASK | TASK]...",
		Aliases: []string{"ls"},
		Short:   "list tasks and what they are doing",
		Long: `List tasks with their states, each derived from the evidence at this moment:
the records are claims, and the processes are looked at.

Off a terminal: tab-separated, without headers: run, task, kind, state, pid, port,
started, ready, memory and GPU memory in bytes, restarts, url, note. What is not
known is empty. Memory is what the keepers have read last, GPU memory what one of them
has for all, at most every 10 s: -v says when. Exit 4 when a state is unverified.`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.viewer("ps")
			if err != nil {
				return err
			}
			sel, err := named(m, args)
			if err != nil {
				return err
			}
			list, err := m.List(sel)
			if all {
				old, oldErr := m.Archive()
				list, err = append(list, old...), join(err, oldErr)
			}
			for _, s := range list {
				err = join(err, unverifiedTask(tasks.Name{Run: s.Run, Task: s.Task}, s.State, s.Note, s.Err))
			}
			if len(args) == 0 {
				err = join(err, m.Strays(cmd.Context(), keepersOf(list)).Err())
			}
			if a.json {
				return join(a.writeJSON(list), err)
			}
			columns, rows := psColumns, psRows(list, a.outTTY, time.Now())
			if verbose {
				columns, rows = slices.Concat(columns, verdictColumns), withVerdicts(rows, list, a.outTTY, time.Now())
			}
			return join(a.table(columns, rows), err)
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "archived runs too")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also what keeper and command turned out to be, when memory was read, and the archive's folder")
	a.jsonFlag(cmd)
	return cmd
}

// unverifiedTask says that nobody can tell what a task is doing; nil where that is
// known, or where its record, which cannot be trusted, has said so already.
func unverifiedTask(n tasks.Name, s tasks.State, note string, record error) error {
	if s != tasks.Unverified || record != nil {
		return nil
	}
	return &tasks.Problem{Kind: tasks.ErrUnverified, Msg: n.String() + " is unverified: " + note, Tip: "hob sweep " + n.String() + " looks once more"}
}

// keepersOf are the keepers that live.
func keepersOf(list []tasks.Status) []int {
	var pids []int
	for _, s := range list {
		if s.Keeper.Verdict == identity.Owned {
			pids = append(pids, s.KeptBy)
		}
	}
	return pids
}

var verdictColumns = []string{"KEEPER", "COMMAND", "MEMORY READ", "GPU READ", "ARCHIVE"}

// withVerdicts adds the columns of -v: what keeper and command turned out to be, when
// memory was read, and where an archived run stands.
func withVerdicts(rows [][]string, list []tasks.Status, people bool, now time.Time) [][]string {
	for i, s := range list {
		gpuRead := moment(s.GPUAt, people, now)
		if s.GPUNote != nil {
			gpuRead = *s.GPUNote
		}
		rows[i] = append(rows[i], verdict(s.Keeper), verdict(s.Command), moment(s.MemoryAt, people, now), gpuRead, s.Archive)
	}
	return rows
}

func verdict(f identity.Finding) string {
	if f.Reason == "" {
		return string(f.Verdict)
	}
	return string(f.Verdict) + ": " + f.Reason
}

// named are the named runs and tasks, or all.
func named(m *tasks.Manager, args []string) ([]tasks.Selection, error) {
	if len(args) == 0 {
		return m.All()
	}
	return m.Select(args)
}

var psColumns = []string{"RUN", "TASK", "KIND", "STATE", "PID", "PORT", "STARTED", "READY", "MEMORY", "GPU", "RESTARTS", "URL", "NOTE"}

func psRows(list []tasks.Status, people bool, now time.Time) [][]string {
	var rows [][]string
	for _, s := range list {
		rows = append(rows, []string{
			s.Run, s.Task, text(s.Kind), string(s.State), number(s.PID), number(s.Port),
			moment(s.StartedAt, people, now), moment(s.ReadyAt, people, now), size(s.MemoryBytes, people), size(s.GPUBytes, people),
			number(s.Restarts), text(s.URL), s.Note,
		})
	}
	return rows
}

func number(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

func text[T ~string](s *T) string {
	if s == nil {
		return ""
	}
	return string(*s)
}

func moment(t *time.Time, people bool, now time.Time) string {
	switch {
	case t == nil:
		return ""
	case people:
		return ago(now.Sub(*t))
	}
	return t.Format(time.RFC3339)
}

// ago is a duration for people, to two figures.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}

func size(n *int64, people bool) string {
	switch {
	case n == nil:
		return ""
	case people:
		return tasks.Bytes(*n)
	}
	return strconv.FormatInt(*n, 10)
}
