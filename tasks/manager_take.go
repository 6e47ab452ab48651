package tasks

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"hob/identity"
	"hob/sweep"
)

// listed is a look-alike of a task's last report that a person has named.
type listed struct {
	run   Run
	dir   *RunDir
	task  *TaskDir
	pid   int
	start identity.Token
}

// Take ends a look-alike that the last report of a task lists, by its exact id
// "PID:START". That a person names it is the evidence; that it is still that
// process is verified here, and again at each signal.
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
	number, start, ok := strings.Cut(id, ":")
	pid, err := strconv.Atoi(number)
	if !ok || err != nil || pid < 2 || start == "" {
		return listed{}, usage("hob report --json shows both", "--take %q is not PID:START", id)
	}
	for _, s := range sel {
		run, err := s.Run.Read()
		if err != nil {
			continue
		}
		for _, name := range s.Tasks {
			l := listed{run: run, dir: s.Run, task: s.Run.Task(name), pid: pid, start: identity.Token(start)}
			if rep, err := l.task.ReadReport(); err == nil && l.in(rep) {
				return l, nil
			}
		}
	}
	return listed{}, usage("hob sweep lists them, hob report --json shows their ids", "no report lists a look-alike %s", id)
}

func (l listed) in(rep sweep.Report) bool {
	for _, like := range rep.Lookalikes {
		if like.PID == l.pid && like.Start == l.start {
			return true
		}
	}
	return false
}

func (m *Manager) take(ctx context.Context, l listed, o StopOptions, out *Outcome) {
	seen := m.look(l.task)
	d := Derive(seen)
	out.State = d.State
	switch {
	case seen.Trouble != nil:
		out.Err = seen.Trouble
		return
	case !d.Over() && d.State != Survivors && d.State != Unverified:
		out.Err = &Problem{Msg: fmt.Sprintf("%s is %s, and its look-alikes are taken when it has ended", out.Name, d.State), Tip: "hob down " + out.String()}
		return
	}
	member, err := m.pin(l)
	if errors.Is(err, identity.ErrGone) {
		out.Did = fmt.Sprintf("%d had ended", l.pid)
		return
	}
	if err != nil {
		out.Err = err
		return
	}
	s := stopper{Manager: m, run: l.dir, dir: l.task, seen: seen, server: l.run.Tmux.Server}
	target, prev, err := s.target(l.run)
	if err != nil {
		out.Err = err
		return
	}
	prev.Members = append(prev.Members, member)
	rep, err := sweep.Sweep(ctx, m.Host, target, prev, &s, false, sweep.Options{Reason: o.Reason, DryRun: o.DryRun})
	out.Did, out.Report, out.Err = "taken", &rep, err
	if o.DryRun || err != nil {
		return
	}
	m.event(l.dir, l.task.Name, fmt.Sprintf("took %d:%s", l.pid, l.start))
	out.State, out.Err = s.swept(rep)
}

// pin is the named process as a member, if it is still that one, and not one
// that hob never ends.
func (m *Manager) pin(l listed) (sweep.Member, error) {
	h, err := m.Host.Open(l.pid)
	if err != nil {
		return sweep.Member{}, err
	}
	defer h.Close()
	ref := h.Ref()
	if ref.Start != l.start {
		return sweep.Member{}, refused("hob sweep looks again", "pid %d is another process now (%s, not %s)", l.pid, ref.Start, l.start)
	}
	p, err := h.Read(identity.WantArgs)
	if err != nil {
		return sweep.Member{}, err
	}
	if p.Kernel {
		return sweep.Member{}, refused("", "pid %d is a kernel thread", l.pid)
	}
	return sweep.Member{
		Ref: ref, Parent: p.PPID, SID: p.SID, PGID: p.PGID, Args: p.Args,
		Evidence: []sweep.Evidence{sweep.Taken}, SeenAt: m.now(),
	}, nil
}
