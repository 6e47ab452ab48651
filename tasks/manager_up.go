package tasks

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"hob/identity"
	"hob/identity/child"
	"hob/recipes"
	"hob/sweep"
	"hob/tmux"
)

// UpOptions says what of a recipe is started, and how.
type UpOptions struct {
	Name     string   // of the run; "" is the recipe's
	Tasks    []string // or groups, with what they depend on; empty is all
	Lifetime Lifetime // "" is Detached
	Owner    *identity.Ref
	Rehearse bool // the recipe was loaded with the pilot in every engine's place
	Set      map[string]string
	Profiles []string // that were laid over the recipe
	Keep     bool     // the run is gone on with although nothing of it is up: a restart
	DryRun   bool
}

// upRun is one `up` under way.
type upRun struct {
	*Manager
	dir    *RunDir
	run    Run
	recipe *recipes.Recipe
	o      UpOptions
	wanted []recipes.Task
	tasks  []*upTask // in start order
	before *settled  // an earlier run of the name
	notes  []string  // of preflight: what stops nothing
	grants map[string]GPUGrant
	tmux   *tmux.Server
	panes  *paneMaker
	watch  *watcher

	program func() (*tmux.Server, error) // looks for tmux, or says what came of it
	strays  func() []string              // looks for what has lost its records, or says what came of it

	limits     child.Limits // the caller's
	limitsOnce sync.Once
}

// upTask is one task of it.
type upTask struct {
	recipes.Task
	dir   *TaskDir
	was   Derived   // before this up
	began time.Time // when it was started before this up
	act   action
	port  int
	mark  milestones

	gpus  string // "0,1": chosen for gpus: auto
	begun Seen   // what its start has written and read last; empty without one
}

// action is what `up` does with one task.
type action int

const (
	leave  action = iota // it lives, or is a job that has completed
	start                // it has ended, or never ran
	settle               // an earlier stop was cut or left something: finish that, then start
)

// Up starts the tasks of a recipe, each when what it depends on is there, and
// waits until they answer. One that fails leaves the others up. The error is
// about the whole; nothing has been started then.
func (m *Manager) Up(ctx context.Context, r *recipes.Recipe, o UpOptions) ([]Outcome, error) {
	u, err := m.prepareUp(ctx, r, o)
	if err != nil || o.DryRun {
		return u.planned(ctx), err
	}
	defer u.watch.close()
	return u.bringAll(ctx), nil
}

// bringAll brings all tasks to where they are to be, side by side.
func (u *upRun) bringAll(ctx context.Context) []Outcome {
	var wg sync.WaitGroup
	outs := make([]Outcome, len(u.tasks))
	for i, t := range u.tasks {
		wg.Go(func() { outs[i] = u.bring(ctx, t) })
	}
	wg.Wait()
	return outs
}

// prepareUp decides and checks everything that can be before the first task
// starts.
func (m *Manager) prepareUp(ctx context.Context, r *recipes.Recipe, o UpOptions) (*upRun, error) {
	u := &upRun{Manager: m, recipe: r, o: o}
	name := r.Name
	if o.Name != "" {
		name = o.Name
	}
	if !ValidName(name) {
		return u, notAName(name)
	}
	u.dir = m.Store.Run(name)
	var err error
	if u.wanted, err = r.Select(o.Tasks...); err != nil {
		return u, err
	}
	var beside sync.WaitGroup
	beside.Go(func() { u.program = u.findTmux(ctx) }) // which asks the program for its version
	u.strays = u.findStrays(ctx)
	beside.Wait()
	for range upTries {
		if err = u.settle(ctx); err == nil {
			err = u.prepareLocked(ctx)
		}
		if !errors.Is(err, errMeanwhile) {
			return u, err
		}
	}
	return u, err
}

// upTries is how often an up plans anew because others have acted on its run.
const upTries = 20

// errMeanwhile means that the run is not as it was when this up looked.
var errMeanwhile = errors.New("others started and ended it again and again meanwhile")

// prepareLocked is what two ups must not do at once: the server's lock is held,
// so that they cannot both find a port free or both make the run.
func (u *upRun) prepareLocked(ctx context.Context) error {
	unlock, err := u.serverLock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := u.plan(); err != nil {
		return err
	}
	if err := u.preflight(ctx); err != nil || u.o.DryRun {
		return err
	}
	go u.callerLimits() // beside what else is to be done
	if u.before != nil {
		if err := u.archive(ctx, *u.before); err != nil {
			return err
		}
	}
	return u.open(ctx)
}

// callerLimits are those of whoever called hob, looked up once.
func (u *upRun) callerLimits() child.Limits {
	u.limitsOnce.Do(func() { u.limits = child.CallerLimits(context.Background()) })
	return u.limits
}

// open makes the run's records and the window maker.
func (u *upRun) open(ctx context.Context) error {
	if err := u.dir.createAll(nil); err != nil {
		return err
	}
	goesOn := u.run.ID != ""
	if goesOn {
		if err := u.setAllAside(u.dir, u.run.Tasks); err != nil {
			return err
		}
	}
	if err := u.fillRun(); err != nil {
		return err
	}
	if err := u.record(ctx, goesOn); err != nil {
		return err
	}
	w, err := newWatcher()
	if err != nil {
		return err
	}
	u.watch = w
	u.panes = u.newPaneMaker(u.tmux, u.dir, u.recipe)
	go u.panes.lookAhead(ctx)
	return nil
}

// toStart are the names of the tasks that are to be started.
func (u *upRun) toStart() []string {
	var names []string
	for _, t := range u.tasks {
		if t.act != leave {
			names = append(names, t.Name)
		}
	}
	return names
}

// record writes run.json. Another up of the same run may have written where its
// panes are since this one has read it; or the run that this up goes on with has
// been archived or removed, and then all is planned anew.
func (u *upRun) record(ctx context.Context, goesOn bool) error {
	unlock, err := u.dir.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	now, err := u.dir.Read()
	if goesOn && (errors.Is(err, ErrNoRecord) || err == nil && now.ID != u.run.ID) {
		return fmt.Errorf("run %q: %w", u.dir.Name, errMeanwhile)
	}
	if goesOn && err == nil {
		u.run.Tmux = now.Tmux
	}
	if err := u.dir.createAll(u.toStart()); err != nil {
		return err
	}
	return u.dir.writeAll(u.run)
}

func (u *upRun) fillRun() error {
	now := u.now()
	r := &u.run
	if r.ID == "" {
		id, err := randomHex()
		if err != nil {
			return err
		}
		socket, err := u.socket()
		if err != nil {
			return err
		}
		*r = Run{Schema: Schema, Name: u.dir.Name, ID: id, CreatedAt: now, Lifetime: u.o.Lifetime, Owner: u.o.Owner, Tmux: TmuxServer{Socket: socket}}
		if r.Lifetime == "" {
			r.Lifetime = Detached
		}
	}
	r.Recipe, r.Dir, r.Rehearse, r.Set, r.Profiles = u.recipe.File, u.recipe.Dir, u.o.Rehearse, u.o.Set, u.o.Profiles
	resolved, err := json.Marshal(u.recipe)
	if err != nil {
		return fmt.Errorf("write down the recipe: %w", err)
	}
	if r.Starter, err = u.self(); err != nil {
		return err
	}
	r.Resolved, r.Digest, r.HobBin, r.UpdatedAt = resolved, digest(u.recipe), u.Version, now
	r.Tasks = nil
	for _, t := range u.recipe.Tasks {
		r.Tasks = append(r.Tasks, t.Name)
	}
	// Tasks that this up is not about keep what they have.
	if r.Ports == nil {
		r.Ports = map[string]int{}
	}
	maps.DeleteFunc(r.Ports, func(name string, _ int) bool { return !slices.Contains(r.Tasks, name) })
	for _, t := range u.tasks {
		delete(r.Ports, t.Name)
		if t.port > 0 {
			r.Ports[t.Name] = t.port
		}
	}
	u.fillGPUs()
	return nil
}

// bring takes one task to where it is to be, once its dependencies are there.
func (u *upRun) bring(ctx context.Context, t *upTask) Outcome {
	defer t.mark.close()
	o := Outcome{Name: Name{u.dir.Name, t.Name}, Port: t.port, Did: "left alone"}
	if t.act != leave {
		o.Did = "not started"
		if o.Err = u.dependencies(ctx, t); o.Err != nil {
			return o
		}
		if o.Err = u.start(ctx, t); o.Err != nil {
			o.State = Derive(u.look(t.dir)).State
			return o
		}
		o.Did = "started"
	}
	d, err := u.follow(ctx, t)
	o.State, o.Err, o.URL = d.State, err, t.url()
	if t.act == leave && err == nil {
		o.Err = u.amiss(t.dir, u.look(t.dir))
	}
	return o
}

// dependencies waits until what the task depends on has come as far as it needs.
func (u *upRun) dependencies(ctx context.Context, t *upTask) error {
	for _, d := range t.DependsOn {
		i := slices.IndexFunc(u.tasks, func(o *upTask) bool { return o.Name == d.Task })
		if i < 0 {
			return fmt.Errorf("%s depends on %s, which the recipe does not have", t.Name, d.Task)
		}
		u.tell(Progress{Name: Name{u.dir.Name, t.Name}, Since: u.now(), Text: "waits for " + d.Task + " to be " + d.Condition})
		if err := u.tasks[i].mark.wait(ctx, d.Condition); err != nil {
			return fmt.Errorf("%s was not started: %w", t.Name, err)
		}
	}
	return nil
}

// goal is how far this up follows a task: as far as somebody depends on it, and
// a server or a shell until it answers.
func (u *upRun) goal(t *upTask) string {
	goal := condStarted
	if t.Kind != string(sweep.Job) {
		goal = condReady
	}
	for _, o := range u.tasks {
		for _, d := range o.DependsOn {
			if d.Task == t.Name && rank(d.Condition) > rank(goal) {
				goal = d.Condition
			}
		}
	}
	return goal
}

func randomHex() (string, error) {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		return "", errors.Join(errors.New("no random numbers"), err)
	}
	return hex.EncodeToString(b), nil
}
