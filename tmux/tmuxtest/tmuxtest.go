// Package tmuxtest gives a test a real tmux server of its own, on a short
// private socket, and takes it away again.
package tmuxtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hob/tmux"
)

// Patience is how long a test waits for something that is going to happen. It is
// never reached where all is well.
const Patience = 30 * time.Second

// New is a server on a socket of the test's own. Nothing runs until the first
// Spawn; what runs at the end of the test is ended. A missing tmux fails the
// test, it does not skip it.
func New(t testing.TB) *tmux.Server {
	t.Helper()
	s, err := tmux.New(t.Context(), Socket(t))
	if err != nil {
		t.Fatalf("a tmux server for the test: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		if err := KillServer(ctx, s); err != nil && !errors.Is(err, tmux.ErrNoServer) {
			t.Errorf("ending the test's tmux server: %v", err)
		}
	})
	return s
}

// KillServer does what a person may do: it ends the server, and waits until it is
// gone. tmux.ErrNoServer when none runs.
func KillServer(ctx context.Context, s *tmux.Server) error {
	if !s.Answers(ctx) {
		return tmux.ErrNoServer
	}
	err := kill(ctx, s, "kill-server")
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for err == nil && s.Answers(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return err
}

// KillSession ends a session as a person may, by its id or exact name.
func KillSession(ctx context.Context, s *tmux.Server, session string) error {
	if !strings.HasPrefix(session, "$") {
		session = "=" + session
	}
	return kill(ctx, s, "kill-session", "-t", session)
}

// KillPane closes a pane as a person may. The server may end with its last one before
// it has answered.
func KillPane(ctx context.Context, s *tmux.Server, id string) error {
	return kill(ctx, s, "kill-pane", "-t", id)
}

func kill(ctx context.Context, s *tmux.Server, args ...string) error {
	cmd := exec.CommandContext(ctx, s.Bin, append([]string{"-u", "-S", s.Socket, "-f", os.DevNull}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}
	out, err := cmd.CombinedOutput()
	if said := string(out); err == nil || strings.Contains(said, "server exited") || strings.Contains(said, "lost server") {
		return nil
	}
	return fmt.Errorf("tmux %q: %w: %s", args, err, out)
}

// Socket is a path for a socket in a 0700 folder that is gone after the test. It
// is short: t.TempDir with its test name in it may be longer than a socket's
// path can be.
func Socket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hobt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// Foreground is New with the server as a child of the test, so that the test may
// signal it through the returned command: kill it, stop it, have it bind its
// socket anew. It is running when Foreground returns.
func Foreground(t testing.TB) (*tmux.Server, *exec.Cmd) {
	t.Helper()
	s := New(t)
	cmd := exec.Command(s.Bin, "-D", "-S", s.Socket, "-f", os.DevNull)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LC_ALL=C.UTF-8"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if err := s.WaitAnswer(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, cmd
}

// Sleeper spawns a session with one pane that does nothing, for ten minutes. It does
// so when Sleeper returns: before its exec what is in a pane is a tmux, and no sleep.
func Sleeper(t testing.TB, s *tmux.Server, session string) tmux.Pane {
	t.Helper()
	p, err := s.Spawn(t.Context(), tmux.Spawn{Session: session, New: true, Argv: []string{"sleep", "600"}})
	if err != nil {
		t.Fatal(err)
	}
	WaitFor(t, "the pane's program to be started", func() bool { return Started(p.PID) })
	return p
}

// Started reports whether a pane's process has become its program, as far as a procfs
// tells: tmux itself names the program that it was to start.
func Started(pid int) bool {
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return true
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err != nil || len(args) > 0 && !strings.HasPrefix(string(comm), "tmux")
}

// WaitFor waits until seen reports true.
func WaitFor(t testing.TB, what string, seen func() bool) {
	t.Helper()
	end := time.After(Patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !seen() {
		select {
		case <-end:
			t.Fatalf("not seen within %v: %s", Patience, what)
		case <-tick.C:
		}
	}
}

// Find is the pane with this id, as the server lists it now; nil if it lists none.
func Find(t testing.TB, s *tmux.Server, id string) *tmux.Pane {
	t.Helper()
	panes, err := s.Panes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range panes {
		if panes[i].ID == id {
			return &panes[i]
		}
	}
	return nil
}
