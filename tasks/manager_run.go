package tasks

import (
	"context"
	"errors"
	"slices"
	"sync"

	"hob/recipes"
	"hob/sweep"
)

// RunOptions of Run.
type RunOptions struct {
	Up    UpOptions
	Until string                   // the run ends with this task; "" is the last job, or without jobs the last task
	Log   func(Name, []byte) error // gets every line that a task writes
}

// RunResult is what a contained run came to.
type RunResult struct {
	Started []Outcome // what up came to
	Work    []Ending  // of the tasks that the run was for
	Stopped []Outcome // the stop, with the reports
}

// Run is a contained run: it belongs to the calling hob, goes on until its work
// is done or ctx is, and is always ended by the stop protocol. Should this hob
// be killed, each keeper sees its owner end and stops its task.
func (m *Manager) Run(ctx context.Context, r *recipes.Recipe, o RunOptions) (RunResult, error) {
	owner, err := m.self()
	if err != nil {
		return RunResult{}, err
	}
	o.Up.Lifetime, o.Up.Owner = Contained, owner
	if o.Until != "" && !slices.ContainsFunc(r.Tasks, func(t recipes.Task) bool { return t.Name == o.Until }) {
		return RunResult{}, Names{}.unknown("task in "+r.Name, o.Until, taskNamesOf(r))
	}
	u, err := m.prepareUp(ctx, r, o.Up)
	if err != nil {
		return RunResult{}, err
	}
	defer u.watch.close()
	c := &contained{upRun: u, o: o}
	return c.toTheEnd(ctx)
}

func (c *contained) toTheEnd(ctx context.Context) (RunResult, error) {
	reading, endLogs := context.WithCancel(context.Background())
	res := RunResult{Started: c.work(ctx, reading)}
	sel, err := c.Select([]string{c.dir.Name})
	if err == nil {
		res.Stopped = c.Down(context.WithoutCancel(ctx), sel, StopOptions{Reason: "down"})
	}
	endLogs() // all that there is has been written
	c.logs.Wait()
	for _, t := range c.goals() {
		if seen := c.look(t.dir); seen.Task != nil {
			res.Work = append(res.Work, endingOf(Name{c.dir.Name, t.Name}, seen))
		}
	}
	if ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	return res, err
}

func taskNamesOf(r *recipes.Recipe) []string {
	var names []string
	for _, t := range r.Tasks {
		names = append(names, t.Name)
	}
	return names
}

// contained is a contained run under way.
type contained struct {
	*upRun
	o       RunOptions
	logs    sync.WaitGroup
	writing sync.Mutex // lines of one task at a time
}

// work brings the tasks up and waits until the run has done what it is for. A
// task that does not come up ends it as well.
func (c *contained) work(ctx, reading context.Context) []Outcome {
	asked := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, t := range c.tasks {
		if t.dir.Create() == nil { // else its start says why not
			c.followLog(reading, t)
		}
	}
	started := make(chan []Outcome, 1)
	go func() { started <- c.bringAll(ctx) }()
	done := c.goalsReached(ctx)
	select {
	case <-done:
		cancel() // what is still on its way up is not waited for
		return notCut(asked, <-started)
	case outs := <-started:
		if firstError(outs) == nil {
			<-done
		}
		return outs
	}
}

// notCut are the outcomes of an up that was cut since the work is done: that is no
// fault, unless somebody asked for the end.
func notCut(asked context.Context, outs []Outcome) []Outcome {
	for i := range outs {
		if asked.Err() == nil && errors.Is(outs[i].Err, context.Canceled) {
			outs[i].Err = nil
		}
	}
	return outs
}

// goalsReached is closed when the tasks that the run is for have ended.
func (c *contained) goalsReached(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		var wg sync.WaitGroup
		for _, t := range c.goals() {
			// What went wrong is read again after the stop.
			wg.Go(func() { _, _ = c.untilEndOf(ctx, c.watch, Name{c.dir.Name, t.Name}, true) })
		}
		wg.Wait()
	}()
	return done
}

// goals are the tasks whose ends end the run.
func (c *contained) goals() []*upTask {
	pick := func(want func(*upTask) bool) []*upTask {
		return slices.DeleteFunc(slices.Clone(c.tasks), func(t *upTask) bool { return !want(t) })
	}
	if c.o.Until != "" {
		return pick(func(t *upTask) bool { return t.Name == c.o.Until })
	}
	if jobs := pick(func(t *upTask) bool { return t.Kind == string(sweep.Job) }); len(jobs) > 0 {
		return jobs
	}
	return c.tasks
}

// followLog passes on what a task writes, from its start to its end.
func (c *contained) followLog(reading context.Context, t *upTask) {
	if c.o.Log == nil {
		return
	}
	f := &logReader{m: c.Manager, dir: t.dir, watch: c.watch, o: LogOptions{Follow: true, Lines: -1}, expected: true}
	f.out = func(b []byte) error {
		c.writing.Lock()
		defer c.writing.Unlock()
		return c.o.Log(Name{c.dir.Name, t.Name}, b)
	}
	c.logs.Go(func() {
		if err := f.run(reading); err != nil && reading.Err() == nil {
			c.tell(Progress{Name: Name{c.dir.Name, t.Name}, Text: "its log: " + err.Error()})
		}
	})
}

func firstError(outs []Outcome) error {
	var errs []error
	for _, o := range outs {
		errs = append(errs, o.Err)
	}
	return errors.Join(errs...)
}
