package tasks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"hob/identity"
	"hob/recipes"
	"hob/tmux"
	"hob/tmux/tmuxtest"
)

// paneRig is a run whose panes are made in a server of the test's own.
type paneRig struct {
	t      *testing.T
	m      *Manager
	dir    *RunDir
	srv    *tmux.Server
	recipe *recipes.Recipe
}

func newPaneRig(t *testing.T, layout ...recipes.Window) paneRig {
	t.Helper()
	r, _ := newTask(t)
	g := paneRig{t, &Manager{Store: r.store, Host: localHost(t)}, r, tmuxtest.New(t),
		&recipes.Recipe{Name: r.Name, Layout: layout, Tasks: []recipes.Task{{Name: "a"}, {Name: "b"}, {Name: "c"}}}}
	if err := r.Write(Run{Name: r.Name, ID: "feedface", Tmux: TmuxServer{Socket: g.srv.Socket}}); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g paneRig) maker() *paneMaker { return g.m.newPaneMaker(g.srv, g.dir, g.recipe) }

func (g paneRig) spawn(p *paneMaker, task string) tmux.Pane {
	g.t.Helper()
	pane, err := p.spawn(g.t.Context(), task, []string{"sleep", "600"})
	if err != nil {
		g.t.Fatalf("the pane of %s: %v", task, err)
	}
	return pane
}

// sessions are the names of the sessions of all panes.
func (g paneRig) sessions() []string {
	g.t.Helper()
	panes, err := g.srv.Panes(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	var names []string
	for _, p := range panes {
		names = append(names, p.SessionName)
	}
	slices.Sort(names)
	return names
}

// A tmux server that is started anew gives out the same ids again: a pane goes to
// the run's session there, not to the one that has the id now.
func TestPanesInARestartedServer(t *testing.T) {
	for name, layout := range map[string][]recipes.Window{
		"windows of their own": nil,
		"one window":           {{Name: "w", Panes: []string{"a", "b", "c"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newPaneRig(t, layout...)
			p := g.maker()
			before := g.spawn(p, "a")
			if err := tmuxtest.KillServer(t.Context(), g.srv); err != nil {
				t.Fatal(err)
			}
			other := tmuxtest.Sleeper(t, g.srv, "other")
			if other.Session != before.Session || other.ID != before.ID {
				t.Fatalf("the new server does not repeat its ids: %+v, %+v", before, other)
			}
			b := g.spawn(p, "b")
			g.spawn(p, "c")
			if got, want := g.sessions(), []string{g.dir.Name, g.dir.Name, "other"}; !slices.Equal(got, want) {
				t.Errorf("sessions of the panes: %q", got)
			}
			run, err := g.dir.Read()
			if err != nil || run.Tmux.Server == nil || run.Tmux.Server.PID != other.ServerPID || run.Tmux.Session != b.Session {
				t.Errorf("the run is said to be in %+v, %v", run.Tmux, err)
			}
			if last, err := g.m.Store.ReadServer(); err != nil || last.Server.PID != other.ServerPID || last.Socket != g.srv.Socket {
				t.Errorf("the last server is %+v, %v", last, err)
			}
			if ref := p.serverOf(b); ref == nil || ref.PID != other.ServerPID {
				t.Errorf("the pane is written down in server %+v", ref)
			}
		})
	}
}

// Two ups of one run make its session once, although both have seen none.
func TestTwoUpsMakeOneSession(t *testing.T) {
	g := newPaneRig(t)
	unlock, err := g.m.serverLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waits := lockWaits(t)
	var wg sync.WaitGroup
	for _, task := range []string{"a", "b"} {
		p := g.maker()
		wg.Go(func() {
			if _, err := p.spawn(t.Context(), task, []string{"sleep", "600"}); err != nil {
				t.Errorf("the pane of %s: %v", task, err)
			}
		})
		<-waits
	}
	unlock()
	wg.Wait()
	if got, want := g.sessions(), []string{g.dir.Name, g.dir.Name}; !slices.Equal(got, want) {
		t.Errorf("sessions of the panes: %q", got)
	}
}

// The pane of a task that ended with an earlier server is gone, whatever pane has
// its id now.
func TestCloseThePaneOfAnEarlierServer(t *testing.T) {
	g := newPaneRig(t)
	p := g.maker()
	a := g.spawn(p, "a")
	pane := &Pane{Pane: a.ID, PID: a.PID, Server: p.serverOf(a)}
	if err := tmuxtest.KillServer(t.Context(), g.srv); err != nil {
		t.Fatal(err)
	}
	again := g.maker()
	b := g.spawn(again, "b")
	if b.ID != a.ID {
		t.Fatalf("the new server does not repeat its ids: %+v, %+v", a, b)
	}
	s := stopper{Manager: g.m, run: g.dir, dir: g.dir.Task("a"), seen: Seen{Task: &Task{State: Stopped, Pane: pane}}}
	if err := s.ClosePane(t.Context()); err != nil {
		t.Errorf("a pane that is gone: %v", err)
	}
	s.server = pane.Server // and if the server was changed since it was verified
	if err := s.kill(t.Context(), g.srv, a); err != nil {
		t.Errorf("a pane whose server has just gone: %v", err)
	}
	if len(g.sessions()) != 1 {
		t.Error("another task's pane was closed")
	}
	pane.Server = nil // as an older hob has written it down
	if err := s.ClosePane(t.Context()); !errors.Is(err, ErrRefused) {
		t.Errorf("a pane of nobody knows which server: %v", err)
	}
}

// A server of which no run tells any more is found again all the same when its
// socket file is gone: a second one is not started.
func TestTheLastServerIsFoundAgain(t *testing.T) {
	g := newPaneRig(t)
	first := g.spawn(g.maker(), "a")
	if err := errors.Join(g.dir.Write(Run{Name: g.dir.Name, ID: "feedface"}), os.Remove(g.srv.Socket)); err != nil {
		t.Fatal(err)
	}
	panes, err := g.m.livePanes(t.Context(), g.srv)
	if err != nil || len(panes) != 1 || panes[0].ServerPID != first.ServerPID {
		t.Errorf("%+v, %v", panes, err)
	}
	// Torn, it may have named one: that is not "there is none".
	if err := errors.Join(tmuxtest.KillServer(context.WithoutCancel(t.Context()), g.srv), os.WriteFile(filepath.Join(g.m.Store.Home, "server.json"), []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	var torn *RecordError
	if _, err := g.m.livePanes(t.Context(), g.srv); !errors.As(err, &torn) {
		t.Errorf("a torn server.json: %v", err)
	}
}

// A run may be archived or removed while a stop or a sweep waits for its task:
// that is done only to what has ended, so there is nothing left to do.
func TestStopOfWhatIsArchivedMeanwhile(t *testing.T) {
	for _, verb := range []string{"stop", "sweep"} {
		t.Run(verb, func(t *testing.T) {
			r, d := newTask(t)
			m := &Manager{Store: r.store, Host: localHost(t)}
			task := testTask()
			task.State = Exited
			if err := errors.Join(r.Write(Run{Name: r.Name, ID: "feedface", Tasks: []string{d.Name}}), d.WriteTask(task)); err != nil {
				t.Fatal(err)
			}
			unlock, err := d.Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			waits := lockWaits(t)
			done := make(chan []Outcome)
			go func() {
				sel := []Selection{{Run: r, Tasks: []string{d.Name}, Whole: true}}
				if verb == "sweep" {
					done <- m.Sweep(t.Context(), sel, StopOptions{Reason: verb})
					return
				}
				done <- m.stopTasks(t.Context(), sel[0], StopOptions{Reason: verb})
			}()
			<-waits
			if _, err := r.Archive(); err != nil {
				t.Fatal(err)
			}
			unlock()
			if outs := <-done; firstError(outs) != nil || len(outs) != 1 || outs[0].State != Stopped {
				t.Errorf("%+v", outs)
			}
			if outs := m.Sweep(t.Context(), []Selection{{Run: r, Whole: true}}, StopOptions{}); len(outs) != 0 {
				t.Errorf("a sweep of what is gone: %+v", outs)
			}
		})
	}
}

// A start that was cut before its keeper ran is seen to by a sweep, and has nobody to
// say why it ended: the sweep that finds nothing of it does.
func TestSweepSaysWhyATaskIsStopped(t *testing.T) {
	r, d := newTask(t)
	m := &Manager{Store: r.store, Host: localHost(t)}
	task := testTask()
	task.State, task.Reason = Starting, ""
	run := Run{Name: r.Name, ID: "feedface", Tasks: []string{d.Name}, Tmux: TmuxServer{Socket: tmuxtest.Socket(t)}}
	if err := errors.Join(r.Write(run), d.WriteTask(task)); err != nil {
		t.Fatal(err)
	}
	outs := m.Sweep(t.Context(), []Selection{{Run: r, Tasks: run.Tasks}}, StopOptions{Reason: "sweep"})
	if firstError(outs) != nil {
		t.Errorf("%+v", outs)
	}
	if now := mustTask(t, d); now.State != Stopped || now.Reason != "sweep" {
		t.Errorf("it is %s, because of %q", now.State, now.Reason)
	}
}

// A server that ends as soon as it has made the pane is gone; it is not one of
// another container, whose number is nobody's here.
func TestAServerThatEndsAtOnce(t *testing.T) {
	g := newPaneRig(t)
	p := g.maker()
	pane := g.spawn(p, "a")
	if err := tmuxtest.KillServer(t.Context(), g.srv); err != nil {
		t.Fatal(err)
	}
	ref := *p.serverOf(pane)
	tmuxtest.WaitFor(t, "the server to be gone", func() bool { return p.m.finding(&ref).Verdict != identity.Owned })
	if err := p.record(t.Context(), pane); errors.Is(err, ErrRefused) || !errors.Is(err, tmux.ErrLost) {
		t.Errorf("%v", err)
	}
}
