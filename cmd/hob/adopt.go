package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"hob/tasks"
)

func (a *app) adoptCommand() *cobra.Command {
	var o tasks.AdoptOptions
	cmd := &cobra.Command{
		Use:   "adopt [-S SOCKET] %ID",
		Short: "take a server that was started by hand in a tmux pane under hob's care",
		Long: `Take what runs in the pane %ID of your own tmux server under hob's care, without
restarting it: its process tree is written down now, from the pane's foreground job
(where a shell is in the pane, the shell stays; else from the pane's own process),
and hob ps, down, sweep, report, wait and attach work with it. That tmux server is
only read: no option is set in it, and no pane is closed.

Limits: there is no keeper, so its exit code will not be known and hob has no log of
it; what leaves its tree before hob looks again can only be named; it cannot be
restarted. Every verb that acts looks again. hob rm --forget RUN lets it run on
without hob. Off a terminal: task, what was done, pid, port, pane.`,
		Example: `  tmux list-panes -a -F '#{pane_id} #{pane_current_command}'
  hob adopt %3 --name chat/llm
  hob down chat`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("tmux list-panes -a -F '#{pane_id} #{pane_current_command}' lists them", "hob adopt takes the id of one pane, like %3")
			}
			if o.Port < 0 || o.Port > 65535 {
				return usage("1 to 65535", fmt.Sprintf("--port cannot be %d", o.Port))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.manager("adopt")
			if err != nil {
				return err
			}
			a.reapFirst(cmd.Context(), m)
			o.Pane, o.DryRun = args[0], a.dryRun
			got, err := m.Adopt(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.adopted(got)
		},
	}
	cmd.Flags().StringVarP(&o.Socket, "socket", "S", "", "the path of the `SOCKET` of the tmux server (else $TMUX, else the default one)")
	cmd.Flags().StringVar(&o.Name, "name", "", "`RUN[/TASK]` that it becomes (else the tmux session's name and the program's)")
	cmd.Flags().IntVar(&o.Port, "port", 0, "the `PORT` that it answers on (else the only one that it listens on)")
	a.dryRunFlag(cmd)
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) adopted(got tasks.Adopted) error {
	name := tasks.Name{Run: got.Run, Task: got.Task}
	switch {
	case a.json:
		return a.writeJSON([]tasks.Adopted{got})
	case !a.outTTY:
		return a.table(nil, [][]string{{name.String(), got.Did, number(&got.PID), number(got.Port), got.Pane}})
	}
	a.say("%s %s: %d %s", name, got.Did, got.PID, plain(strings.Join(got.Args, " ")))
	for _, m := range got.Members[min(1, len(got.Members)):] {
		a.say("  and %d %s", m.PID, plain(strings.Join(m.Args, " ")))
	}
	for _, b := range got.Background {
		a.say("  not %d %s, which is in the background of that shell", b.PID, plain(strings.Join(b.Args, " ")))
	}
	for _, n := range got.Notes {
		a.say("  %s", n)
	}
	return nil
}
