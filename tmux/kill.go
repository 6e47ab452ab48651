package tmux

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// KillExactly kills the pane only if, at that moment and inside the server, its
// id, its first process and the server's own process are the ones in p. So an
// id that a new server gave to another pane between a look and the kill is
// safe: ErrOther. ErrNoTarget when there is no such pane.
func (s *Server) KillExactly(ctx context.Context, p Pane) error {
	return s.KillAllExactly(ctx, []Pane{p})[0]
}

// KillAllExactly is KillExactly for panes of one server, as many by one tmux
// invocation as it takes. It returns what came of each.
func (s *Server) KillAllExactly(ctx context.Context, all []Pane) []error {
	errs := make([]error, len(all))
	var args []string
	var these []int // what args kill, as places in all
	flush := func() {
		if len(these) == 0 {
			return
		}
		out, err := s.run(ctx, "/", args...)
		for _, i := range these {
			answer, rest, _ := strings.Cut(out, "\n")
			if out = rest; err != nil && answer == "" {
				errs[i] = err
				continue
			}
			errs[i] = killed(strings.TrimSpace(answer), all[i])
		}
		args, these = nil, nil
	}
	for i, p := range all {
		if errs[i] = checkID("pane", paneID, p.ID); errs[i] != nil {
			continue
		}
		one := killing(p)
		if bytesOf(args)+bytesOf(one) > spawnBytes {
			flush()
		}
		if len(these) > 0 {
			args = append(args, ";")
		}
		args, these = append(args, one...), append(these, i)
	}
	flush()
	return errs
}

// killing kills a pane if it is the one that is meant, and prints one line. It does
// not fail where there is none, which would end the sequence.
func killing(p Pane) []string {
	same := fmt.Sprintf("#{&&:#{==:#{pane_id},%s},#{&&:#{==:#{pane_pid},%d},#{==:#{pid},%d}}}", p.ID, p.PID, p.ServerPID)
	return []string{"if-shell", "-F", "-t", p.ID, same,
		"display-message -p killed ; kill-pane -t " + p.ID,
		"display-message -p -t " + p.ID + " 'other #{pane_id}'"}
}

// killed reads the answer of KillExactly. A target that is gone answers with
// blank fields and exit code 0. No answer at all is not that: nobody knows then what
// has become of the pane.
func killed(answer string, p Pane) error {
	err := fmt.Errorf("%w: tmux did not say what became of it", ErrLost) // the server ended before it could, mostly
	switch word, id, _ := strings.Cut(answer, " "); {
	case answer == "killed":
		return nil
	case word == "other" && id == p.ID:
		err = ErrOther
	case word == "other":
		err = ErrNoTarget
	}
	return fmt.Errorf("kill pane %s of tmux server %d: %w", p.ID, p.ServerPID, err)
}

// KillEmpty ends the server if it has no session, which the server itself decides
// at that moment: a pane that somebody has just made in it does not die. ErrSessions
// when it has one, ErrNoServer when none runs.
func (s *Server) KillEmpty(ctx context.Context) error {
	// S: goes through the sessions.
	out, err := s.run(ctx, "/", "if-shell", "-F", "#{==:#{S:x},}", "display-message -p killed ; kill-server", "display-message -p sessions")
	if err != nil {
		return err
	}
	if strings.TrimSpace(out) != "killed" {
		return fmt.Errorf("end the tmux server on %s: %w", s.Socket, ErrSessions)
	}
	return s.waitSocket(ctx, false)
}

// Forget removes the socket file of a server that has ended; tmux leaves it. It
// does nothing while anybody listens on it, or when it is no socket of ours. The
// caller sees to it that nobody starts a server there meanwhile.
func (s *Server) Forget() error {
	if err := checkSocket(s.Socket); err != nil {
		return err
	}
	info, err := os.Lstat(s.Socket)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || info.Mode()&fs.ModeSocket == 0 || !ownedByUs(info) {
		return err
	}
	conn, err := net.Dial("unix", s.Socket)
	if err == nil {
		return conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return nil // it may be somebody's who is busy
	}
	return os.Remove(s.Socket)
}

// deadFor is how old a socket must be that is taken for one which nobody is going to
// listen on: a server that starts binds its own, and listens a moment later.
const deadFor = time.Hour

// ForgetOthers removes the sockets beside ours on which nobody listens any more:
// those of servers that were killed by force, of state folders that are perhaps
// gone, so that no hob will come to do it. Only what bears such a name is ours.
func (s *Server) ForgetOthers(now time.Time) error {
	dir := filepath.Dir(s.Socket)
	if err := checkSocket(s.Socket); err != nil || filepath.Base(dir) != "hob" && !strings.HasPrefix(filepath.Base(dir), "hob-") {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		other := Server{Socket: filepath.Join(dir, e.Name())}
		if info, err := e.Info(); err == nil && isSocketName(e.Name()) && now.Sub(info.ModTime()) > deadFor && other.Socket != s.Socket {
			errs = append(errs, other.Forget())
		}
	}
	return errors.Join(errs...)
}

// WaitAnswer waits until a server listens on the socket: for one that was just
// told (SIGUSR1) to bind a deleted socket file anew.
func (s *Server) WaitAnswer(ctx context.Context) error { return s.waitSocket(ctx, true) }

// Answers reports whether anybody listens on the socket now.
func (s *Server) Answers(ctx context.Context) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", s.Socket)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// waitSocket dials until the socket answers, or answers no more. tmux leaves the
// socket file behind and tells nobody when it stops listening, so there is no
// event to wait for.
func (s *Server) waitSocket(ctx context.Context, want bool) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if answers := s.Answers(ctx); ctx.Err() == nil && answers == want {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the tmux socket %s (listening: %t): %w", s.Socket, want, ctx.Err())
		case <-tick.C:
		}
	}
}
