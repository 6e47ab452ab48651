package tasks

import (
	"context"
	"fmt"
	"os"
	"slices"

	"hob/identity"
	"hob/sweep"
	"hob/tmux"
)

// What the verbs do with a task that hob did not start.

// spared are the processes around an adopted task that are a person's own.
func (a Adoption) spared() []identity.Ref {
	var refs []identity.Ref
	if a.Tmux.Server != nil {
		refs = append(refs, *a.Tmux.Server)
	}
	if a.First.PID != a.Command.PID {
		refs = append(refs, a.First)
	}
	return refs
}

// isAdopted reports whether a task says that hob did not start it.
func isAdopted(t *TaskDir) bool {
	task, err := t.ReadTask()
	return err == nil && task.Adopted != nil
}

// adoptedIn is the name of an adopted task of the selection, "" for none.
func adoptedIn(s Selection) string {
	i := slices.IndexFunc(s.Tasks, func(task string) bool { return isAdopted(s.Run.Task(task)) })
	if i < 0 {
		return ""
	}
	return Name{s.Run.Name, s.Tasks[i]}.String()
}

// inside reports whether hob itself runs in what was adopted, or may.
func (m *Manager) inside(s Seen) bool {
	a := s.adopted()
	return a != nil && s.Command.Verdict == identity.Owned && m.beneath(os.Getpid(), a.Command.PID) != elsewhere
}

// captureAgain brings the capture of a living adopted task up to date: it has no
// keeper that would. Who is at work on the task captures it better.
func (m *Manager) captureAgain(ctx context.Context, r *RunDir, t *TaskDir) {
	unlock, ok, err := t.TryLock()
	if err != nil || !ok {
		return
	}
	defer unlock()
	run, err := r.Read()
	seen := m.look(t)
	if err != nil || seen.Trouble != nil || seen.adopted() == nil || Derive(seen).State != Up {
		return
	}
	s := stopper{Manager: m, run: r, dir: t, seen: seen}
	target, prev, err := s.target(run)
	if err != nil {
		return
	}
	c, changed, err := sweep.Observe(ctx, m.Host, target, prev)
	if changed && err == nil {
		err = t.WriteCapture(c, false)
	}
	if err != nil {
		m.event(r, t.Name, "could not be captured again: "+err.Error())
	}
}

// noLog says that hob has no log of an adopted task, and where its words are.
func noLog(t *TaskDir) error {
	task, err := t.ReadTask()
	if err != nil || task.Adopted == nil {
		return nil //nolint:nilerr // a record that cannot be read hides no log
	}
	a := task.Adopted
	return &Problem{Msg: fmt.Sprintf("%s/%s was adopted: hob has no log of it", t.Run, t.Name),
		Tip: "what its pane shows: " + tmux.CaptureCommand(a.Tmux.Socket, a.Pane.Pane) + "; hob attach " + Name{t.Run, t.Name}.String() + " goes there"}
}

// adoptionIn is the adoption to go to: of the first task that lives, else of the first.
func (m *Manager) adoptionIn(s Selection) *Adoption {
	var first *Adoption
	for _, name := range s.Tasks {
		seen := m.look(s.Run.Task(name))
		if seen.adopted() == nil {
			continue
		}
		if seen.Command.Verdict == identity.Owned {
			return seen.adopted()
		}
		if first == nil {
			first = seen.adopted()
		}
	}
	return first
}

// attachGuest finds the pane of an adopted task in the person's tmux server, if it
// is that server and that pane still.
func (m *Manager) attachGuest(ctx context.Context, s Selection, a Adoption) (*tmux.Server, tmux.Pane, error) {
	switch f := m.finding(a.Tmux.Server); f.Verdict {
	case identity.Owned:
	case identity.Unverifiable:
		return nil, tmux.Pane{}, unverified("", "the tmux server that run %q was adopted from: %s", s.Run.Name, f.Reason)
	default:
		return nil, tmux.Pane{}, &Problem{Msg: fmt.Sprintf("the tmux server that run %q was adopted from is gone", s.Run.Name)}
	}
	srv, err := tmux.Guest(a.Tmux.Socket)
	if err != nil {
		return nil, tmux.Pane{}, err
	}
	panes, err := srv.Panes(ctx)
	if err != nil {
		return nil, tmux.Pane{}, err
	}
	i := slices.IndexFunc(panes, func(p tmux.Pane) bool {
		return p.ServerPID == a.Tmux.Server.PID && p.ID == a.Pane.Pane && (p.PID == a.Pane.PID || p.PID == 0)
	})
	if i < 0 {
		return nil, tmux.Pane{}, &Problem{Msg: fmt.Sprintf("pane %s of %s is gone, or another's", a.Pane.Pane, a.Tmux.Socket)}
	}
	return srv, panes[i], nil
}
