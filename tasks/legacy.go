package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"hob/identity"
	"hob/sweep"
	"hob/tmux"
)

// Legacy is what another tool wrote down about a server that it started: the name
// of a tmux session, perhaps a number, and no proof.
type Legacy struct {
	Session string   // exact name on the person's tmux server; "" for none
	Host    string   // another machine's, where it ran; "" is this one
	PID     int      // 0: not recorded
	Start   string   // its start, if that is recorded too
	Args    []string // of its command
	Port    int
}

// LegacyFound is what is seen of one now. Its JSON is a contract. Nothing in it
// permits a signal.
type LegacyFound struct {
	Verdict    identity.Verdict  `json:"verdict"` // gone, foreign, unverifiable; never owned
	Why        string            `json:"why"`
	Socket     string            `json:"socket"`     // of the tmux server that was asked
	Pane       string            `json:"pane"`       // of its session, while that lives
	PID        *int              `json:"pid"`        // the pane's process
	Start      *identity.Token   `json:"start"`      //
	Args       []string          `json:"args"`       //
	Lookalikes []sweep.Lookalike `json:"lookalikes"` // by command line and port
	Ports      []sweep.PortState `json:"ports"`
	Notes      []string          `json:"notes"`
}

// legacySeen is what decides over a legacy record.
type legacySeen struct {
	elsewhere string            // the machine that it ran on
	found     *identity.Finding // of its number; nil without one
	asked     error             // why the tmux server could not be asked
	session   string
	panes     int // of a session with that exact name
	living    int
}

// decideLegacy is the rule for records without a boot id, pid or token. It is
// pure. It never says owned, and so nothing that it finds is ever signalled.
func decideLegacy(s legacySeen) (identity.Verdict, string) {
	switch {
	case s.elsewhere != "":
		return identity.Unverifiable, "it ran on " + s.elsewhere + ": only this host is looked at"
	case s.found != nil && s.found.Verdict != identity.Owned:
		return s.found.Verdict, s.found.Reason
	case s.found != nil:
		return identity.Unverifiable, "the number lives, and nothing recorded proves whose it is"
	case s.session == "":
		return identity.Unverifiable, "nothing is recorded that could be looked for"
	case s.asked != nil:
		return identity.Unverifiable, "the tmux server could not be asked: " + s.asked.Error()
	case s.panes == 0:
		return identity.Gone, "no tmux session has its name"
	case s.living == 0:
		return identity.Gone, "its tmux session is there, and every pane in it is dead"
	}
	return identity.Unverifiable, "a tmux session has its name, and nothing recorded proves that it is that one"
}

// LookLegacy looks for what such records tell of: by the exact name of the session
// on the person's tmux server (socket "": the caller's own, else the default one),
// which is only read, and for what looks like it on the whole host. The error says
// what could not be looked at.
func (m *Manager) LookLegacy(ctx context.Context, socket string, list []Legacy) ([]LegacyFound, error) {
	socket = cmp.Or(socket, tmux.UserSocket(m.getenv))
	panes, asked := m.legacyPanes(ctx, socket)
	errs := []error{}
	if asked != nil {
		errs = append(errs, &Problem{Kind: ErrUnverified, Msg: "the tmux server on " + socket + " could not be asked", Err: asked})
	}
	self, err := m.self()
	if err != nil {
		return nil, err
	}
	found := make([]LegacyFound, len(list))
	for i, l := range list {
		found[i], err = m.lookLegacy(ctx, l, socket, panes, asked, *self)
		errs = append(errs, err)
	}
	return found, errors.Join(errs...)
}

// legacyPanes are all panes of the person's server; none where no server runs.
func (m *Manager) legacyPanes(ctx context.Context, socket string) ([]tmux.Pane, error) {
	srv, err := tmux.Guest(socket)
	if _, gone := os.Lstat(socket); errors.Is(err, tmux.ErrNoTmux) && errors.Is(gone, fs.ErrNotExist) {
		return nil, nil // no server has ever listened there
	}
	if err != nil {
		return nil, err
	}
	panes, err := srv.Panes(ctx)
	switch {
	case errors.Is(err, tmux.ErrNoServer):
		return nil, nil
	case err != nil:
		return nil, err
	case len(panes) > 0:
		err = peerIs(ctx, socket, panes[0].ServerPID, m.Host.Facts().UID)
	}
	return panes, err
}

func (m *Manager) lookLegacy(ctx context.Context, l Legacy, socket string, panes []tmux.Pane, asked error, self identity.Ref) (LegacyFound, error) {
	f := LegacyFound{Socket: socket, Args: []string{}, Lookalikes: []sweep.Lookalike{}, Ports: []sweep.PortState{}, Notes: []string{}}
	seen := legacySeen{elsewhere: l.Host, asked: asked, session: l.Session}
	if l.Host != "" {
		f.Verdict, f.Why = decideLegacy(seen)
		return f, nil
	}
	if l.PID > 0 {
		found := m.finding(&identity.Ref{PID: l.PID, Start: legacyToken(l.Start, m.Host.Facts().OS)})
		seen.found = &found
	}
	for _, p := range panes {
		if p.SessionName != l.Session || l.Session == "" {
			continue
		}
		seen.panes++
		if !p.Dead {
			if seen.living++; seen.living == 1 {
				m.describePane(&f, p)
			}
		}
	}
	f.Verdict, f.Why = decideLegacy(seen)
	return f, m.likeLegacy(ctx, l, self, &f)
}

// legacyToken is a start as other tools write it: bare ticks are Linux's.
func legacyToken(start, os string) identity.Token {
	if _, err := strconv.ParseUint(start, 10, 64); err == nil && os == "linux" {
		start = "linux:" + start
	}
	return identity.Token(start)
}

func (m *Manager) describePane(f *LegacyFound, p tmux.Pane) {
	f.Pane = p.ID
	h, err := m.Host.Open(p.PID)
	if err != nil {
		f.Notes = append(f.Notes, fmt.Sprintf("the process %d of its pane could not be looked at: %v", p.PID, err))
		return
	}
	defer h.Close()
	ref := h.Ref()
	f.PID, f.Start = &ref.PID, &ref.Start
	if row, err := h.Read(identity.WantArgs); err == nil {
		f.Args = append(f.Args, row.Args...)
	}
}

// likeLegacy looks at the whole host for what looks like it.
func (m *Manager) likeLegacy(ctx context.Context, l Legacy, self identity.Ref, f *LegacyFound) error {
	t := sweep.Target{Run: "import", Task: l.Session, Kind: sweep.Server, Args: l.Args, Spared: []identity.Ref{self}}
	if l.Port > 0 {
		t.Ports = []int{l.Port}
	}
	rep, err := sweep.Sweep(ctx, m.Host, t, sweep.Capture{}, untouched{}, true, sweep.Options{Reason: "import"})
	f.Lookalikes = append(f.Lookalikes, rep.Lookalikes...)
	f.Ports = append(f.Ports, rep.Ports...)
	f.Notes = append(f.Notes, rep.Host.Notes...)
	if err == nil && rep.Host.Inspection == "none" {
		err = unverified("", "%s: the host could not be looked at", l.Session)
	}
	return err
}

// untouched are the effects of a look that has none.
type untouched struct{}

func (untouched) SaveCapture(sweep.Capture) error { return nil }
func (untouched) ClosePane(context.Context) error { return nil }
func (untouched) KeeperDone() bool                { return false }
func (untouched) KeeperLeft() bool                { return false }
func (untouched) Note(string, ...any)             {}
