package tasks

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"hob/identity"
	"hob/tmux"
)

// closeDeadPanes closes the dead panes that a keeper of this state folder was to run in
// and that no record names: the hob that made one was killed before it wrote it down,
// and the keeper found nothing to start any more, or was killed too. The server would
// live for such a pane alone. It returns the panes that are left; the server's lock is
// held.
func (m *Manager) closeDeadPanes(ctx context.Context, srv *tmux.Server, panes []tmux.Pane) []tmux.Pane {
	if !slices.ContainsFunc(panes, func(p tmux.Pane) bool { return p.Dead }) {
		return panes
	}
	known, err := m.panesOnRecord()
	if err != nil {
		return panes // it may be of the task whose record cannot be read
	}
	return slices.DeleteFunc(panes, func(p tmux.Pane) bool {
		if !p.Dead || known[paneKey{p.ServerPID, p.ID}] || known[paneKey{0, p.ID}] {
			return false
		}
		command, err := srv.StartCommand(ctx, p.ID)
		return err == nil && m.keeperLine(command) && srv.KillExactly(ctx, p) == nil
	})
}

// keeperLine reports whether a pane's command line is of a keeper of this state folder.
func (m *Manager) keeperLine(command string) bool {
	return strings.Contains(command, " keeper ") && strings.Contains(command, m.Store.runs()+"/")
}

// paneKey is a pane among all servers; 0 is one that was not written down.
type paneKey struct {
	server int
	pane   string
}

func keyOf(pane string, server *identity.Ref) paneKey {
	if server == nil {
		return paneKey{0, pane}
	}
	return paneKey{server.PID, pane}
}

// panesOnRecord are the panes that tasks and keepers name. The error is about one
// that cannot be read and may name another.
func (m *Manager) panesOnRecord() (map[paneKey]bool, error) {
	runs, err := m.Store.Runs()
	errs := []error{err}
	known := map[paneKey]bool{}
	for _, name := range runs {
		r := m.Store.Run(name)
		run, _ := r.Read() // taskNames tells of what is wrong
		names, err := m.taskNames(r)
		errs = append(errs, err)
		for _, task := range names {
			rec, taskErr := r.Task(task).ReadTask()
			if rec.Pane != nil {
				known[keyOf(rec.Pane.Pane, cmp.Or(rec.Pane.Server, run.Tmux.Server))] = true
			}
			k, keeperErr := r.Task(task).ReadKeeper()
			if keeperErr == nil {
				known[keyOf(k.Pane, cmp.Or(k.Tmux, run.Tmux.Server))] = true
			}
			errs = append(errs, trouble(taskErr), trouble(keeperErr))
		}
	}
	return known, errors.Join(errs...)
}
