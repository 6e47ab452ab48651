package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"hob/recipes/convert"
	"hob/tasks"
)

func (a *app) freezeCommand() *cobra.Command {
	var o tasks.FreezeOptions
	var to writing
	cmd := &cobra.Command{
		Use:   "freeze [-S SOCKET] [SESSION]",
		Short: "write a recipe of what runs in a tmux session",
		Long: `Write a recipe of a tmux session, hob's own or anybody's: its windows, panes and
layouts, and for each pane the job in its foreground, with its arguments, folder and
the port that it listens on. What listens, or is a model server that hob knows,
becomes a server; a shell at its prompt becomes a shell. The session is only read.

Environments are not copied, for they hold secrets; what looks like one in a command is
taken from a variable, FROZEN_…, that hob up is to be given. What cannot be taken over is
named, on standard error and in the recipe's first lines; where a process could not
be looked at, the pane becomes a shell, and hob exits with 4.

Without SESSION: the session that hob runs in, or the only one. Without -S: the tmux
server that hob runs in, else the default one, else hob's own.

With --json an object: kind, file, name, recipe (the text), and kept and dropped,
lists of {what, says}.`,
		Example: `  hob freeze work -o work.yaml
  hob check work.yaml`,
		Args:              most(1, "session"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Session = args[0]
			}
			m, err := a.viewer("freeze")
			if err != nil {
				return err
			}
			seen, err := m.Freeze(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.frozen(seen, to)
		},
	}
	cmd.Flags().StringVarP(&o.Socket, "socket", "S", "", "the path of the `SOCKET` of the tmux server (else $TMUX, the default one, or hob's own)")
	to.flags(cmd)
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) frozen(seen tasks.Frozen, to writing) error {
	res, err := convert.Freeze(seen.Session)
	if err != nil {
		return err
	}
	if err := a.give(res, to, res.Name); err != nil {
		return err
	}
	if seen.Unseen > 0 {
		return &tasks.Problem{Kind: tasks.ErrUnverified, Msg: fmt.Sprintf("what runs in %d of the panes could not be looked at", seen.Unseen), Tip: "the recipe names them"}
	}
	return nil
}
