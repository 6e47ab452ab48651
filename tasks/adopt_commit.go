package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hob/identity"
	"hob/sweep"
)

// commit writes the records. task.json comes last: before it there is no task,
// whatever cuts hob here, and what was written so far makes room for the next try.
func (a *adoption) commit(ctx context.Context) error {
	var err error
	for range upTries {
		if err = errors.Join(a.notYet(), a.makeRoom(ctx)); err == nil {
			err = a.commitLocked(ctx)
		}
		if !errors.Is(err, errMeanwhile) {
			return err
		}
	}
	return err
}

// makeRoom ends and archives what an earlier run of the name left, before the
// server's lock is taken: a stop takes its time.
func (a *adoption) makeRoom(ctx context.Context) error {
	into, run, have, began, err := a.place()
	if err != nil || into != intoNew || len(have) == 0 && run.ID == "" {
		return err
	}
	u := &upRun{Manager: a.Manager, dir: a.Store.Run(a.name.Run), run: run}
	if err := u.settleRun(ctx, have, began, nil); err != nil {
		return err
	}
	return u.archive(ctx, settled{run.ID, began})
}

// commitLocked holds the server's lock, as an up does, so that two cannot make one run.
func (a *adoption) commitLocked(ctx context.Context) error {
	unlock, err := a.serverLock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := errors.Join(a.notYet(), a.openRun(ctx)); err != nil {
		return err
	}
	return a.openTask(ctx)
}

// What `adopt` finds under the name of a run.
type adoptInto int

const (
	intoNew    adoptInto = iota // nothing, or what has ended: a new run
	intoThis                    // a run of adopted tasks that is up
	intoOthers                  // a run of a recipe that is up
)

// decideAdopt is pure. recorded is the digest of the recipe that a run was started
// from; one of adopted tasks has none.
func decideAdopt(exists bool, recorded string, lives bool) adoptInto {
	switch {
	case !exists || !lives:
		return intoNew
	case recorded == "":
		return intoThis
	}
	return intoOthers
}

// place is what stands under the name of the run.
func (a *adoption) place() (into adoptInto, run Run, have map[string]Derived, began map[string]time.Time, err error) {
	u := &upRun{Manager: a.Manager, dir: a.Store.Run(a.name.Run)}
	run, err = u.dir.Read()
	if trouble(err) != nil {
		return intoOthers, run, nil, nil, err
	}
	exists := err == nil
	have, began, _ = u.lookAll()
	lives := exists && a.startedBy(run)
	for _, d := range have {
		lives = lives || d.State.Lives()
	}
	into = decideAdopt(exists, run.Digest, lives)
	d, taken := have[a.name.Task]
	switch {
	case into == intoOthers:
		return into, run, have, began, usage("another name with --name", "run %q is up, and was started from a recipe", a.name.Run)
	case into == intoThis && taken && !d.Over():
		return into, run, have, began, usage("another name with --name", "%s is there already, and is %s", a.name, d.State)
	}
	return into, run, have, began, nil
}

// openRun makes run.json, or adds the task to it.
func (a *adoption) openRun(ctx context.Context) error {
	into, run, have, _, err := a.place()
	if err != nil {
		return err
	}
	if into == intoNew && (len(have) > 0 || run.ID != "") {
		return fmt.Errorf("run %q: %w", a.name.Run, errMeanwhile) // there was room
	}
	r := a.Store.Run(a.name.Run)
	if err := r.Create(); err != nil {
		return err
	}
	return a.writeRun(ctx, r, run.ID)
}

// writeRun writes run.json under its lock. That this hob is at work on the run
// keeps others from removing it before its task is there.
func (a *adoption) writeRun(ctx context.Context, r *RunDir, id string) error {
	unlock, err := r.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	now := a.now()
	run, err := r.Read()
	switch {
	case trouble(err) != nil:
		return err
	case err != nil || run.ID != id:
		if id, err = randomHex(); err != nil {
			return err
		}
		run = Run{Name: r.Name, ID: id, Lifetime: Detached, CreatedAt: now, Ports: map[string]int{}}
	}
	if run.Starter, err = a.self(); err != nil {
		return err
	}
	if !slices.Contains(run.Tasks, a.name.Task) {
		run.Tasks = append(run.Tasks, a.name.Task)
	}
	delete(run.Ports, a.name.Task)
	if a.port > 0 {
		run.Ports[a.name.Task] = a.port
	}
	run.Dir, run.UpdatedAt, run.HobBin = a.found.row.Cwd, now, a.Version
	a.id = run.ID
	return r.Write(run)
}

// openTask makes the task's records.
func (a *adoption) openTask(ctx context.Context) error {
	r := a.Store.Run(a.name.Run)
	t := r.Task(a.name.Task)
	if err := t.Create(); err != nil {
		return err
	}
	unlock, err := t.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if seen := a.look(t); seen.Trouble != nil || seen.Task != nil && !Derive(seen).Over() {
		return errors.Join(seen.Trouble, usage("another name with --name", "%s is there already", a.name))
	}
	if err := unreadable(t); err != nil {
		return a.untrusted(r.Name, t, err) // torn: kept, not forgotten
	}
	if err := t.forget("keeper.json", "exit.json", "stop.json", "report.json", "capture.json"); err != nil {
		return err
	}
	return a.writeTask(r, t)
}

func (a *adoption) writeTask(r *RunDir, t *TaskDir) error {
	nonce, err := randomHex()
	if err != nil {
		return err
	}
	if err := t.BeginCapture(a.capture); err != nil {
		return err
	}
	term, err := signalNamed("TERM")
	if err != nil {
		return err
	}
	spec := Spec{Run: t.Run, Task: t.Name, RunID: a.id, Nonce: nonce, Kind: sweep.Server, Args: a.found.row.Args, Dir: a.found.row.Cwd,
		Env: []string{}, Port: a.port, Lifetime: Detached, Restart: Restart{Policy: "no"},
		Stop: sweep.StopPolicy{Signal: term, Grace: adoptGrace, TermGrace: adoptTermGrace, Detached: "kill"}}
	if err := t.WriteSpec(spec); err != nil {
		return err
	}
	now, p, root := a.now(), a.found.pane, a.found.roots[0]
	task := Task{Run: t.Run, Task: t.Name, Kind: sweep.Server, State: Up, Nonce: nonce, UpdatedAt: now, Adopted: &Adoption{
		Command: root, First: a.found.first, At: now,
		Pane: Pane{Window: p.Window, Pane: p.ID, TTY: p.TTY, PID: p.PID},
		Tmux: TmuxServer{Socket: a.found.srv.Socket, Session: p.Session, Server: &a.found.server}}}
	if started := a.found.row.Started; !started.IsZero() {
		task.StartedAt = &started
	}
	if a.port > 0 {
		task.Port = &a.port
	}
	if f := a.finding(&root); f.Verdict != identity.Owned {
		return fmt.Errorf("process %d: %w", root.PID, f.Err())
	}
	if err := t.WriteTask(task); err != nil {
		return err
	}
	a.event(r, t.Name, fmt.Sprintf("adopted %d from pane %s of the tmux server %d on %s", root.PID, p.ID, p.ServerPID, a.found.srv.Socket))
	return nil
}
