package tasks

import (
	"context"
	"errors"
	"fmt"

	"hob/identity"
	"hob/sweep"
	"hob/sweep/gpu"
)

// listed is a look-alike of a task's last report that a person has named.
type listed struct {
	sweep.Take
	run  Run
	dir  *RunDir
	task *TaskDir
}

// Take ends a look-alike that the last report of a task lists, by its exact id
// "PID:START". That a person names it is the evidence; that it is still that
// process, and still looks like the task's, is verified by the sweep.
func (m *Manager) Take(ctx context.Context, sel []Selection, id string, o StopOptions) (Outcome, error) {
	l, err := findListed(sel, id)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Name: Name{l.dir.Name, l.task.Name}}
	unlock, err := l.task.Lock(ctx)
	if err != nil {
		return out, err
	}
	defer unlock()
	m.take(ctx, l, o, &out)
	return out, nil
}

// findListed looks for the id among the look-alikes of the selected tasks.
func findListed(sel []Selection, id string) (listed, error) {
	take, err := sweep.ParseTake(id)
	if err != nil {
		return listed{}, usage("hob report --json shows both", "--take %q is not PID:START", id)
	}
	var unread []error
	for _, s := range sel {
		run, err := s.Run.Read()
		if err != nil {
			unread = append(unread, err)
			continue
		}
		for _, name := range s.Tasks {
			l := listed{Take: take, run: run, dir: s.Run, task: s.Run.Task(name)}
			rep, err := l.task.ReadReport()
			if err == nil && l.in(rep) {
				return l, nil
			}
			unread = append(unread, trouble(err))
		}
	}
	if err := errors.Join(unread...); err != nil {
		return listed{}, &Problem{Kind: ErrUnverified, Msg: "no report that can be read lists a look-alike " + id, Err: err,
			Tip: "hob sweep writes new reports where the old ones have been moved away"}
	}
	return listed{}, usage("hob sweep lists them, hob report --json shows their ids", "no report lists a look-alike %s", id)
}

func (l listed) in(rep sweep.Report) bool {
	for _, like := range rep.Lookalikes {
		if like.PID == l.PID && like.Start == l.Start {
			return true
		}
	}
	return false
}

func (m *Manager) take(ctx context.Context, l listed, o StopOptions, out *Outcome) {
	seen := m.lookHeld(l.task)
	d := Derive(seen)
	out.State = d.State
	switch {
	case seen.Trouble != nil:
		out.Err = m.untrusted(l.dir.Name, l.task, seen.Trouble)
		return
	case !d.Over() && seen.startedElsewhere(out.Name) != nil:
		out.Err = seen.startedElsewhere(out.Name)
		return
	case !d.Over() && d.State != Survivors && d.State != Unverified:
		out.Err = &Problem{Msg: fmt.Sprintf("%s is %s, and its look-alikes are taken when it has ended", out.Name, d.State), Tip: "hob down " + out.String()}
		return
	}
	if out.Err = m.notOfOthers(l.Take); out.Err != nil {
		return
	}
	s := stopper{Manager: m, run: l.dir, dir: l.task, seen: seen, server: l.run.Tmux.Server}
	target, prev, err := s.target(l.run)
	if err != nil {
		out.Err = err
		return
	}
	rep, err := sweep.Sweep(ctx, m.Host, target, prev, &s, false,
		sweep.Options{Reason: o.Reason, DryRun: o.DryRun, Take: []sweep.Take{l.Take}, GPU: gpu.Read})
	switch {
	case errors.Is(err, identity.ErrGone):
		out.Did = fmt.Sprintf("%d had ended", l.PID)
		return
	case errors.Is(err, sweep.ErrRefused):
		out.Err = &Problem{Kind: ErrRefused, Err: err, Tip: "hob sweep looks again"}
		return
	}
	out.Did, out.Report, out.Err = "taken", &rep, err
	if o.DryRun || err != nil {
		return
	}
	m.event(l.dir, l.task.Name, "took "+l.Take.String())
	out.State, out.Err = s.swept(rep)
}

// notOfOthers refuses a process that another task of hob's keeps, and lives.
func (m *Manager) notOfOthers(t sweep.Take) error {
	owners, _ := m.owners([]int{t.PID})
	if o := owners[t.PID]; o.lives {
		return refused("hob down "+o.task.String()+" ends it", "%s is of %s, which is up", t, o.task)
	}
	return nil
}
