package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hob/identity"
	"hob/identity/cut"
	"hob/sweep"
	"hob/tmux"
)

// serverDeadline is how long an ended tmux server may take to be gone.
const serverDeadline = 5 * time.Second

// stopper is the outside of one task's stop: its records and its pane.
type stopper struct {
	*Manager
	run    *RunDir
	dir    *TaskDir
	seen   Seen
	server *identity.Ref
	socket string // of the run's tmux server, once its pane is looked for

	byItself bool // the command had ended before the stop began
	captured bool // this stop has written a capture
}

// target is the task as the stop needs to know it.
func (s *stopper) target(run Run) (sweep.Target, sweep.Capture, error) {
	t := sweep.Target{Run: run.Name, Task: s.dir.Name, Kind: s.seen.Task.Kind, Marker: run.ID}
	spec, err := s.dir.ReadSpec()
	if err = cmp.Or(trouble(err), s.specMissing(s.dir, s.seen)); err != nil {
		return t, sweep.Capture{}, err
	}
	prev, err := s.dir.ReadCapture()
	if err != nil && !errors.Is(err, ErrNoRecord) {
		return t, sweep.Capture{}, err
	}
	if k := s.seen.Keeper; k != nil && prev.Cgroup == nil { // before its first look
		prev.Cgroup = k.Cgroup
	}
	t.Args, t.Stop = spec.Args, spec.Stop
	if p := s.seen.Task.Port; p != nil {
		t.Ports = []int{*p}
	}
	if k := s.seen.Keeper; k != nil {
		t.Keeper, t.Command, t.Stamp = &k.Keeper, k.Command, k.Stamp
	}
	a := s.seen.adopted()
	if a != nil {
		t.Command = &a.Command
	}
	self, err := s.self() // a caller that cannot name itself could not be spared
	if err != nil {
		return t, prev, err
	}
	t.Spared = []identity.Ref{*self}
	if t.Server = s.server; s.server != nil {
		t.Spared = append(t.Spared, *s.server)
	}
	if a != nil {
		t.Spared = append(t.Spared, a.spared()...)
	}
	return t, prev, nil
}

// SaveCapture writes the capture to disk before it returns. A crash of the host may
// lose one that comes after this stop's first, and leave that: what it knew more was
// of processes that ended with the host.
func (s *stopper) SaveCapture(c sweep.Capture) error {
	how := durable
	if s.captured {
		how = whole
	}
	err := s.dir.putCapture(c, how, false)
	s.captured = s.captured || err == nil
	return err
}

// KeeperDone reports whether the keeper has said that its tree is empty.
func (s *stopper) KeeperDone() bool { return s.keeperSays(func(k Keeper) bool { return k.Empty }) }

// KeeperLeft reports whether the keeper has ended and left the rest alone.
func (s *stopper) KeeperLeft() bool { return s.keeperSays(func(k Keeper) bool { return k.Left }) }

func (s *stopper) keeperSays(that func(Keeper) bool) bool {
	k, err := s.dir.ReadKeeper()
	return err == nil && k.Nonce == s.seen.Task.Nonce && that(k)
}

// Note tells the watching person what goes on.
func (s *stopper) Note(format string, args ...any) {
	s.tell(Progress{Name: Name{s.run.Name, s.dir.Name}, State: Stopping, Since: s.seen.Task.UpdatedAt, Text: fmt.Sprintf(format, args...)})
}

// ClosePane kills the task's recorded pane, if it is still that pane: the
// server's Ref is verified, and the server itself compares pane and pid. tmux
// ends the session with its last pane. An adopted task's pane is not ours to close.
func (s *stopper) ClosePane(ctx context.Context) error {
	if s.seen.adopted() != nil {
		return nil
	}
	pane, server, err := s.pane(ctx)
	if err != nil || pane == nil {
		return err
	}
	h, f := s.Host.Verify(*server)
	switch f.Verdict {
	case identity.Owned:
		defer h.Close()
	case identity.Unverifiable:
		return unverified("tmux -S SOCKET list-panes -a shows it", "pane %s is left: its tmux server cannot be verified: %s", pane.ID, f.Reason)
	default:
		return nil // the server is gone, and its panes with it
	}
	srv, err := tmux.Open(s.socket)
	if err != nil {
		return err
	}
	return s.kill(ctx, srv, *pane)
}

func (s *stopper) kill(ctx context.Context, srv *tmux.Server, pane tmux.Pane) error {
	cut.Point("tmux", "kill-pane")
	err := s.killPane(ctx, srv, pane)
	cut.Point("tmux", "killed-pane")
	if errors.Is(err, tmux.ErrNoServer) {
		if again, _ := s.rebindOne(ctx, srv, *s.server); again {
			err = srv.KillExactly(ctx, pane)
		}
	}
	if errors.Is(err, tmux.ErrLost) && s.dies(ctx, *s.server) {
		return nil
	}
	if errors.Is(err, tmux.ErrOther) && s.replaced(ctx, srv) {
		return nil
	}
	switch {
	case err == nil, errors.Is(err, tmux.ErrNoTarget), errors.Is(err, tmux.ErrNoServer):
		return nil
	case errors.Is(err, tmux.ErrSilent):
		return s.silent(err, srv.Socket, *s.server)
	case errors.Is(err, tmux.ErrOther):
		return &Problem{Kind: ErrRefused, Err: err, Tip: "somebody started another program in it; hob attach " + s.run.Name + " shows it"}
	}
	return err
}

// replaced reports whether another tmux server listens on the socket since ours, which
// was just verified, has ended: its panes are gone with it.
func (s *stopper) replaced(ctx context.Context, srv *tmux.Server) bool {
	pid, err := srv.PID(ctx)
	return err == nil && pid != s.server.PID && s.dies(ctx, *s.server)
}

// killPane kills a pane, with those that others have killed meanwhile.
func (s *stopper) killPane(ctx context.Context, srv *tmux.Server, pane tmux.Pane) error {
	if s.kills == nil {
		return srv.KillExactly(ctx, pane)
	}
	came, err := s.kills.ask(paneOf{srv, pane}, func(all []paneOf) ([]error, error) { return killAll(ctx, all) })
	return cmp.Or(err, came)
}

// pane is the pane as recorded, nil when there is none. A start that was cut
// has written it only into the keeper's record.
func (s *stopper) pane(ctx context.Context) (*tmux.Pane, *identity.Ref, error) {
	run, err := s.run.shared()
	if err != nil {
		return nil, nil, err
	}
	s.server, s.socket = run.Tmux.Server, run.Tmux.Socket
	// The run may have been brought up in another server since: ids begin anew there.
	var p tmux.Pane
	switch k := s.seen.Keeper; {
	case s.seen.Task != nil && s.seen.Task.Pane != nil:
		p.ID, p.PID = s.seen.Task.Pane.Pane, s.seen.Task.Pane.PID
		s.server = cmp.Or(s.seen.Task.Pane.Server, s.server)
	case k != nil && k.Pane != "":
		p.ID, p.PID = k.Pane, k.Keeper.PID
		s.server = cmp.Or(k.Tmux, s.server)
	}
	if s.server == nil || p.ID == "" {
		return s.findPane(ctx, run)
	}
	p.ServerPID = s.server.PID
	return &p, s.server, nil
}

// findPane looks for the pane of a start that was cut before it wrote down which
// server it is in.
func (s *stopper) findPane(ctx context.Context, run Run) (*tmux.Pane, *identity.Ref, error) {
	srv, err := tmux.Open(run.Tmux.Socket)
	if err != nil {
		return nil, nil, err
	}
	panes, err := s.livePanes(ctx, srv)
	others, _ := s.recordedPanes(Selection{Run: s.run, Tasks: run.Tasks}, nil)
	for _, p := range panes {
		if p.SessionName == run.Name && !slices.Contains(others, p.ID) && s.madeBy(p) {
			server, err := s.serverRef(p.ServerPID)
			s.server = &server
			return &p, s.server, err
		}
	}
	return nil, nil, err
}

// madeBy reports whether a pane of the run's session is the one of this task's
// start: its keeper says so. Where none came up the window bears the task's name,
// and that is not enough for a pane that lives: a person may have called a window
// so, and other tasks share one by the layout.
func (s *stopper) madeBy(p tmux.Pane) bool {
	if k := s.seen.Keeper; k != nil {
		return p.ID == k.Pane && p.PID == k.Keeper.PID
	}
	return p.WindowName == s.dir.Name && (p.Dead || s.keeps(p.PID))
}

// keeps reports whether a process is a keeper that was told to start this task.
func (s *stopper) keeps(pid int) bool {
	h, err := s.Host.Open(pid)
	if err != nil {
		return false
	}
	defer h.Close()
	row, err := h.Read(identity.WantArgs)
	return err == nil && keeps(row.Args, s.dir)
}

// keeps reports whether a command line is of a keeper that was told to start a task.
func keeps(args []string, t *TaskDir) bool {
	return len(args) == 3 && args[1] == "keeper" && args[2] == t.SpecPath()
}

// endedAt is when the task ended, by its keeper's word if there is one.
func endedAt(s Seen, now time.Time) *time.Time {
	if s.Exit != nil {
		return &s.Exit.At
	}
	return &now
}
