package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"hob/tasks"
)

func (a *app) attachCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "attach [RUN | RUN/TASK | TASK]",
		Short: "go to a task's pane",
		Long: `Go to a task's pane, or to the first living one of a run. Inside another tmux it
is nested (detach with its prefix twice); inside hob's own the client switches.
Without an argument: the only run that is up.`,
		Args:              most(1, "run or task"),
		ValidArgsFunction: a.completeOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.viewer("attach")
			if err != nil {
				return err
			}
			sel, err := chosen(m, args, false)
			if err != nil {
				return err
			}
			if len(sel) == 0 {
				return usage("hob up starts one", "no run is up")
			}
			if !a.inTTY || !a.outTTY {
				return usage("hob logs "+strings.Join(args, " ")+" shows what it wrote", "attach needs a terminal")
			}
			return a.attach(cmd, m, sel[0])
		},
	}
}

// attach becomes tmux.
func (a *app) attach(cmd *cobra.Command, m *tasks.Manager, s tasks.Selection) error {
	srv, pane, err := m.AttachTo(cmd.Context(), s)
	if err != nil {
		return err
	}
	argv, unset := srv.AttachArgs(pane, a.getenv("TMUX"))
	env := slices.DeleteFunc(slices.Clone(a.env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(unset, name)
	})
	a.complain(a.amiss(nil)) // now, for it is not hob that ends
	if err := syscall.Exec(argv[0], argv, env); err != nil {
		return fmt.Errorf("attach: start %s: %w", argv[0], err)
	}
	return nil
}
