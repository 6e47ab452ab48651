package tasks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"hob/identity"
	"hob/identity/child"
	"hob/identity/cut"
	"hob/recipes"
	"hob/tmux"
)

// paneMaker makes the panes of one run. The first one makes the session; panes
// that the layout puts into one window split it.
type paneMaker struct {
	m       *Manager
	dir     *RunDir
	srv     *tmux.Server
	plan    windowPlan
	mu      sync.Mutex // of session and panes
	session string
	server  *identity.Ref
	made    bool                 // this maker made the session
	looked  time.Time            // when there was no session of the run
	panes   map[string]tmux.Pane // of the tasks that share windows
	queue   spawnQueue
}

func (m *Manager) newPaneMaker(srv *tmux.Server, dir *RunDir, r *recipes.Recipe) *paneMaker {
	return &paneMaker{m: m, dir: dir, srv: srv, plan: planWindows(r), panes: map[string]tmux.Pane{}}
}

// spawnTries is how often a pane is made anew because its session was gone.
const spawnTries = 5

// spawn makes a task's pane. A session that has gone since it was seen, with its
// server perhaps, is looked for and made again; so is one that another up of the
// run has made meanwhile.
func (p *paneMaker) spawn(ctx context.Context, task string, argv []string) (tmux.Pane, error) {
	for try := 1; ; try++ {
		pane, err := p.spawnOnce(ctx, task, argv)
		moved := errors.Is(err, tmux.ErrNoTarget) || errors.Is(err, tmux.ErrNoServer) || errors.Is(err, tmux.ErrExists)
		if !moved || try == spawnTries {
			return pane, p.m.silent(err, p.srv.Socket)
		}
		p.mu.Lock()
		p.session, p.looked = "", time.Time{}
		p.mu.Unlock()
	}
}

// spawnOnce makes the pane where the session was seen. Panes of their own window
// are made together with those that others ask for meanwhile.
func (p *paneMaker) spawnOnce(ctx context.Context, task string, argv []string) (tmux.Pane, error) {
	p.mu.Lock()
	session, err := p.seen(ctx)
	if err != nil || session == "" || p.plan.shares(task) {
		defer p.mu.Unlock()
		if err != nil {
			return tmux.Pane{}, err
		}
		return p.first(ctx, session, task, argv)
	}
	p.mu.Unlock()
	s := p.plan.spawn(task, p.panes)
	s.Session, s.Argv = p.target(), argv
	pane, err := p.queue.ask(s, func(all []tmux.Spawn) ([]tmux.Pane, error) { return p.makeAll(ctx, all) })
	if err != nil {
		return pane, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return pane, p.landed(ctx, pane)
}

// target is the run's session by its whole name. Its id would be another session's
// in a server that was started since.
func (p *paneMaker) target() string { return "=" + p.dir.Name }

// landed writes down where the run's panes are now, if that has changed.
func (p *paneMaker) landed(ctx context.Context, pane tmux.Pane) error {
	if p.session == pane.Session && p.server != nil && p.server.PID == pane.ServerPID && p.m.finding(p.server).Verdict == identity.Owned {
		return nil
	}
	return p.record(ctx, pane)
}

// serverOf is the server that a pane was made in.
func (p *paneMaker) serverOf(pane tmux.Pane) *identity.Ref {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil || p.server.PID != pane.ServerPID {
		return nil
	}
	return p.server
}

// make makes a pane.
func (p *paneMaker) make(ctx context.Context, s tmux.Spawn) (tmux.Pane, error) {
	panes, err := p.makeAll(ctx, []tmux.Spawn{s})
	if len(panes) == 0 {
		return tmux.Pane{}, err
	}
	return panes[0], nil
}

// makeAll makes panes as far as it can, and says why it came no further. A window
// whose place a person's own has taken comes last.
func (p *paneMaker) makeAll(ctx context.Context, all []tmux.Spawn) (panes []tmux.Pane, err error) {
	cut.Point("tmux", "spawn")
	for {
		some, err := p.srv.SpawnAll(ctx, all[len(panes):])
		panes = append(panes, some...)
		if !errors.Is(err, tmux.ErrIndex) || all[len(panes)].Index == 0 {
			cut.Point("tmux", "spawned")
			return panes, err
		}
		all[len(panes)].Index = 0
	}
}

// first makes a pane while nobody else of this run does: the one that makes the
// session, or one that shares a window.
func (p *paneMaker) first(ctx context.Context, session, task string, argv []string) (tmux.Pane, error) {
	if session != "" {
		return p.beside(ctx, task, argv)
	}
	unlock, err := p.m.serverLock(ctx)
	if err != nil {
		return tmux.Pane{}, err
	}
	defer unlock()
	// Another up may have made the session while the lock was waited for, and
	// somebody may have deleted the socket.
	if session, err = p.ready(ctx); err != nil {
		return tmux.Pane{}, err
	}
	if session != "" {
		return p.beside(ctx, task, argv)
	}
	s := p.plan.spawn(task, p.panes)
	s.Session, s.New, s.Argv = p.dir.Name, true, argv
	if s.Join, err = p.m.serverLives(p.srv.Socket); err != nil {
		return tmux.Pane{}, err
	}
	var pane tmux.Pane
	child.Patiently(func() { pane, err = p.make(ctx, s) })
	if err != nil {
		return pane, err
	}
	p.made = true
	// The others wait until that is written: who lets them go on meanwhile, and holds the
	// server's lock, waits for one of them that waits for this lock.
	if err := p.record(ctx, pane); err != nil {
		return pane, err
	}
	p.dress(ctx, task, pane)
	return pane, nil
}

// beside makes a pane that shares a window. Those that have gone since they were
// seen are nothing to split.
func (p *paneMaker) beside(ctx context.Context, task string, argv []string) (tmux.Pane, error) {
	for {
		s := p.plan.spawn(task, p.panes)
		s.Session, s.Argv = p.target(), argv
		beside := s.Window
		for _, seen := range p.panes {
			if s.Split && seen.ID == beside {
				s.Window = seen.Window + "." + seen.ID
			}
		}
		pane, err := p.make(ctx, s)
		if errors.Is(err, tmux.ErrNoTarget) && s.Split {
			maps.DeleteFunc(p.panes, func(_ string, seen tmux.Pane) bool { return seen.ID == beside })
			continue
		}
		if err == nil {
			err = p.landed(ctx, pane)
		}
		if err != nil {
			return pane, err
		}
		p.dress(ctx, task, pane)
		return pane, nil
	}
}

// dress gives a pane its title, and the cursor where the layout says so. That it
// could not be done stops nothing.
func (p *paneMaker) dress(ctx context.Context, task string, pane tmux.Pane) {
	if !p.plan.shares(task) {
		return
	}
	p.panes[task] = pane
	look := p.plan.look(task)
	look.Front = look.Front && p.made
	if err := p.srv.Dress(ctx, pane, look); err != nil {
		p.m.event(p.dir, task, "its pane has no title: "+err.Error())
	}
}

// lookAhead finds the run's session while the records of the first tasks are still
// being written. What goes wrong shows when the first pane is asked for.
func (p *paneMaker) lookAhead(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.seen(ctx)
}

// aheadFor is how long it is taken for granted that there was no session. It is
// looked for again, under the server's lock, before one is made.
const aheadFor = time.Second

// seen is ready for those who may act on what was seen a moment ago.
func (p *paneMaker) seen(ctx context.Context) (string, error) {
	if p.session == "" && !p.looked.IsZero() && p.m.Host.Now().Sub(p.looked) < aheadFor {
		return "", nil
	}
	return p.ready(ctx)
}

// ready finds the run's session, "" when it has to be made.
func (p *paneMaker) ready(ctx context.Context) (string, error) {
	if p.session != "" {
		return p.session, nil
	}
	panes, err := p.m.livePanes(ctx, p.srv)
	if err != nil {
		return "", err
	}
	for _, pane := range panes {
		if pane.SessionName != p.dir.Name {
			continue
		}
		if err := p.record(ctx, pane); err != nil {
			return "", err
		}
		p.known(panes)
		return p.session, nil
	}
	p.looked = p.m.Host.Now()
	return "", nil
}

// known takes the panes that tasks which share windows already have.
func (p *paneMaker) known(panes []tmux.Pane) {
	for _, task := range p.plan.sharing() {
		t, err := p.dir.Task(task).ReadTask()
		if err != nil || t.Pane == nil {
			continue
		}
		if i := slices.IndexFunc(panes, func(x tmux.Pane) bool { return x.ID == t.Pane.Pane && x.PID == t.Pane.PID }); i >= 0 {
			p.panes[task] = panes[i]
		}
	}
}

// record writes down which server and session the run's panes are in.
func (p *paneMaker) record(ctx context.Context, pane tmux.Pane) error {
	ref, err := p.m.serverRef(pane.ServerPID)
	if errors.Is(err, identity.ErrGone) {
		if pid, _ := p.srv.PID(ctx); pid != pane.ServerPID {
			return fmt.Errorf("the tmux server %d ended as the pane was made: %w", pane.ServerPID, tmux.ErrLost)
		}
	}
	if err != nil {
		return err
	}
	last := make(chan error, 1)
	go func() { last <- p.m.lastServer(p.srv.Socket, ref) }() // both wait for the disk
	defer func() {
		if err := <-last; err != nil {
			p.m.event(p.dir, "", err.Error()) // the run's own record has it
		}
	}()
	unlock, err := p.dir.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	run, err := p.dir.Read()
	if err != nil {
		return err
	}
	run.Tmux = TmuxServer{Socket: p.srv.Socket, Session: pane.Session, Server: &ref}
	run.UpdatedAt = p.m.now()
	// The server ends with the host: a crash of that may leave the record before.
	if err := p.dir.write(run, whole); err != nil {
		return err
	}
	p.session, p.server = pane.Session, &ref
	return nil
}
