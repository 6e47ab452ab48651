package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"hob/identity"
	"hob/tmux"
)

// AttachTo finds the pane of a task, or of a run the first living one: what has the
// cursor in its first window, where the layout says so.
func (m *Manager) AttachTo(ctx context.Context, s Selection) (*tmux.Server, tmux.Pane, error) {
	run, err := s.Run.Read()
	if err != nil {
		return nil, tmux.Pane{}, err
	}
	if a := m.adoptionIn(s); a != nil {
		return m.attachGuest(ctx, s, *a)
	}
	if run.Tmux.Server == nil {
		return nil, tmux.Pane{}, noPane(s)
	}
	srv, err := m.verifiedServer(run)
	if err != nil {
		return nil, tmux.Pane{}, err
	}
	panes, err := m.livePanes(ctx, srv)
	if err != nil {
		return nil, tmux.Pane{}, err
	}
	for _, living := range []bool{true, false} {
		for _, task := range visit(run, s) {
			if p, ok := m.paneOf(s.Run.Task(task), run, panes); ok && p.Dead != living {
				return srv, p, nil
			}
		}
	}
	return nil, tmux.Pane{}, noPane(s)
}

// visit is the order in which the tasks' panes are looked for: of a run by its
// layout, else as they were named.
func visit(run Run, s Selection) []string {
	r, err := run.recipe()
	if !s.Whole || err != nil {
		return s.Tasks
	}
	return slices.DeleteFunc(planWindows(r).visit(), func(task string) bool { return !slices.Contains(s.Tasks, task) })
}

// verifiedServer is the tmux server that the run was started in, if it is that.
func (m *Manager) verifiedServer(run Run) (*tmux.Server, error) {
	switch f := m.finding(run.Tmux.Server); f.Verdict {
	case identity.Owned:
		return tmux.Open(run.Tmux.Socket)
	case identity.Unverifiable:
		return nil, unverified("", "the tmux server of run %q: %s", run.Name, f.Reason)
	}
	return nil, &Problem{Msg: fmt.Sprintf("the tmux server of run %q is gone", run.Name), Tip: "hob logs " + run.Name}
}

func (m *Manager) paneOf(t *TaskDir, run Run, panes []tmux.Pane) (tmux.Pane, bool) {
	task, err := t.ReadTask()
	if err != nil || task.Pane == nil {
		return tmux.Pane{}, false
	}
	server := cmp.Or(task.Pane.Server, run.Tmux.Server)
	for _, p := range panes {
		if p.ServerPID == server.PID && p.ID == task.Pane.Pane && (p.PID == task.Pane.PID || p.PID == 0) {
			return p, true
		}
	}
	return tmux.Pane{}, false
}

func noPane(s Selection) error {
	name := Name{Run: s.Run.Name}
	if !s.Whole && len(s.Tasks) > 0 {
		name.Task = s.Tasks[0]
	}
	return &Problem{Err: errors.New(name.String() + " has no pane"), Tip: "hob logs " + name.String()}
}
