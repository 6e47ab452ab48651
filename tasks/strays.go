package tasks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"hob/identity"
)

// Strays are keepers of this state folder that no record names: somebody has
// removed the folder, or a run's, while its tasks ran. They are only named.
type Strays struct {
	Keepers []StrayKeeper
	Server  int    // the tmux server on the folder's socket, when no record names it; 0: none
	Socket  string // of that server
	Blind   error  // why there may be more

	alone bool // nothing else is known to run in that server
}

// StrayKeeper is one of them, by what it was told to start.
type StrayKeeper struct {
	Name
	PID int
}

// Strays looks for keepers that are not among known, the living keepers that the
// records name. Mostly that is one look at what the tmux server has started; where
// the folder does not say that there was one, it is a look at the whole host.
func (m *Manager) Strays(ctx context.Context, known []int) Strays {
	s := Strays{alone: len(known) == 0}
	servers := s.servers(ctx, m)
	_, err := m.Store.ReadServer()
	rows, err := m.mayBeKeepers(ctx, servers, known, errors.Is(err, ErrNoRecord))
	s.Blind = errors.Join(s.Blind, err)
	for _, p := range rows {
		if n, ours := m.keeperOf(p, servers); ours && m.strays(n, p.PID) {
			s.Keepers = append(s.Keepers, StrayKeeper{n, p.PID})
		}
	}
	return s
}

// servers are the living tmux servers of this folder, by the records and by who
// listens on its socket.
func (s *Strays) servers(ctx context.Context, m *Manager) (pids []int) {
	var err error
	if s.Socket, err = m.socket(); err != nil {
		return nil // no server can listen on a path that is no socket's
	}
	refs, _ := m.servers(s.Socket)
	for _, ref := range refs {
		if m.finding(&ref).Verdict == identity.Owned && !slices.Contains(pids, ref.PID) {
			pids = append(pids, ref.PID)
		}
	}
	pid, _, err := listensOn(ctx, s.Socket)
	switch none := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED); {
	case err != nil && !none && !errors.Is(err, identity.ErrUnsupported):
		s.Blind = err
	case err == nil && pid > 0 && !slices.Contains(pids, pid):
		s.Server, pids = pid, append(pids, pid)
	}
	return pids
}

// mayBeKeepers are the processes to be looked at: what the servers have started,
// or all there are.
func (m *Manager) mayBeKeepers(ctx context.Context, servers, known []int, all bool) ([]identity.Process, error) {
	var rows []identity.Process
	var errs []error
	for _, server := range servers {
		kids, err := m.Host.Children(server)
		switch {
		case errors.Is(err, identity.ErrUnsupported):
			all = true
		case err != nil && !errors.Is(err, identity.ErrGone):
			errs = append(errs, fmt.Errorf("what the tmux server %d has started could not be looked at: %w", server, err))
		}
		for _, kid := range kids {
			if !slices.Contains(known, kid) {
				row, err := m.row(kid)
				rows, errs = append(rows, row), append(errs, err)
			}
		}
	}
	if !all {
		return rows, errors.Join(errs...)
	}
	table, err := m.Host.Snapshot(ctx, identity.WantArgs)
	if err != nil {
		return rows, fmt.Errorf("keepers without a record could not be looked for: %w", err)
	}
	return slices.DeleteFunc(table.Procs, func(p identity.Process) bool { return slices.Contains(known, p.PID) }), nil
}

// row is a process, zero when it has ended.
func (m *Manager) row(pid int) (identity.Process, error) {
	h, err := m.Host.Open(pid)
	if err == nil {
		defer h.Close()
		var p identity.Process
		if p, err = h.Read(identity.WantArgs); err == nil && p.State != 'Z' && p.Missing&identity.WantArgs != 0 {
			err = fmt.Errorf("process %d in a pane: its arguments cannot be read", pid)
		}
		if err == nil {
			return p, nil
		}
	}
	if errors.Is(err, identity.ErrGone) {
		err = nil
	}
	return identity.Process{}, err
}

// keeperOf is the task that a process was told to keep, when it is one of this
// folder: by its argument, or since a server of the folder's has started it.
func (m *Manager) keeperOf(p identity.Process, servers []int) (Name, bool) {
	if p.State == 'Z' || len(p.Args) != 3 || p.Args[1] != "keeper" { // the tmux server has a keeper's whole command line in its own
		return Name{}, false
	}
	r, t, err := taskOfSpec(p.Args[2])
	if err != nil {
		return Name{}, false
	}
	return Name{r.Name, t.Name}, slices.Contains(servers, p.PPID) || sameFolder(r.store.Home, m.Store.Home)
}

// sameFolder also knows a folder that is reached through a link.
func sameFolder(a, b string) bool {
	real := func(dir string) string {
		if to, err := filepath.EvalSymlinks(dir); err == nil {
			return to
		}
		return dir
	}
	return filepath.Clean(a) == filepath.Clean(b) || real(a) == real(b)
}

// strays reports whether a keeper lives that the records of its task do not name.
// One that is just coming up has not written itself down yet; a record that cannot
// be read says so by itself.
func (m *Manager) strays(n Name, pid int) bool {
	t := m.Store.Run(n.Run).Task(n.Task)
	task, err := t.ReadTask()
	switch {
	case trouble(err) != nil:
		return false
	case err == nil:
		k, err := t.ReadKeeper()
		if task.State == Starting || trouble(err) != nil || err == nil && k.Keeper.PID == pid {
			return false
		}
	}
	// Looked for once more after that: while it lived its records were not there.
	row, err := m.row(pid)
	again, ours := m.keeperOf(row, []int{row.PPID})
	return err == nil && ours && again == n
}

// listensOn is the process that listens on a socket, by the kernel's word, and its user.
func listensOn(ctx context.Context, socket string) (pid, uid int, err error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return 0, -1, fmt.Errorf("ask who listens on %s: %w", socket, err)
	}
	defer c.Close()
	unix, ok := c.(*net.UnixConn)
	if !ok {
		return 0, -1, fmt.Errorf("%s is no socket of this host", socket)
	}
	return identity.Peer(unix)
}

// Err says what runs without a record, and what a person can do about it; nil when
// nothing does.
func (s Strays) Err() error { return errors.Join(s.lost(), s.blind()) }

func (s Strays) lost() error {
	if len(s.Keepers) == 0 {
		return nil
	}
	var names, pids []string
	for _, k := range s.Keepers {
		names = append(names, fmt.Sprintf("%s (keeper %d)", k.Name, k.PID))
		pids = append(pids, strconv.Itoa(k.PID))
	}
	where := ""
	if s.Server > 0 {
		where = fmt.Sprintf(", in the tmux server %d on %s", s.Server, s.Socket)
	}
	return unverified(s.tip(pids), "what runs has lost its records, by the removal of the state folder or of a run: %s%s", strings.Join(names, ", "), where)
}

func (s Strays) blind() error {
	if s.Blind == nil {
		return nil
	}
	return &Problem{Kind: ErrUnverified, Err: s.Blind, Tip: "hob doctor says what this host lets hob see"}
}

// notes are Err for who goes on all the same.
func (s Strays) notes() []string {
	var notes []string
	for _, err := range []error{s.lost(), s.blind()} {
		if p, ok := errors.AsType[*Problem](err); ok {
			notes = append(notes, p.Error()+": "+p.Tip)
		}
	}
	return notes
}

func (s Strays) tip(pids []string) string {
	tip := "kill " + strings.Join(pids, " ") + " has the keepers stop their tasks"
	if s.alone && s.Server > 0 {
		return tip + "; then tmux -S " + s.Socket + " kill-server closes the panes"
	}
	return tip
}

// checkStrays is [Manager.Strays] for doctor.
func (m *Manager) checkStrays(ctx context.Context) Check {
	const name = "lost records"
	s := m.Strays(ctx, m.Keepers())
	var p *Problem
	switch {
	case errors.As(s.lost(), &p):
		return Check{name, Warning, p.Error(), p.Tip}
	case s.Blind != nil:
		return Check{name, Unknown, s.Blind.Error(), ""}
	case s.Server > 0:
		return Check{name, Warning, fmt.Sprintf("a tmux server, pid %d, listens on %s, and nothing in the state folder names it", s.Server, s.Socket),
			"hob down ends it when it has no panes; tmux -S " + s.Socket + " list-panes -a shows them"}
	}
	return Check{name, Good, "none: every keeper that lives is written down", ""}
}
