package tasks

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"hob/identity"
	"hob/tmux"
	"hob/tmux/tmuxtest"
)

// seenBy is the host as another user sees it.
type seenBy struct {
	identity.Host
	uid int
}

func (s seenBy) Facts() identity.Facts {
	f := s.Host.Facts()
	f.UID = s.uid
	return f
}

// A process of another user is not ours to adopt.
func TestOursOnly(t *testing.T) {
	h := localHost(t)
	for uid, want := range map[int]error{0: nil, os.Geteuid(): nil, os.Geteuid() + 4242: ErrUnverified} {
		m := &Manager{Host: seenBy{h, uid}}
		if _, _, err := m.ours(os.Getpid()); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("uid %d: %v", uid, err)
		}
	}
}

// The kernel says who listens, whoever made the socket's folder.
func TestPeer(t *testing.T) {
	path := filepath.Join(filepath.Dir(tmuxtest.Socket(t)), "p")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := peerIs(t.Context(), path, os.Getpid(), os.Geteuid()); err != nil {
		t.Errorf("it is us: %v", err)
	}
	if err := peerIs(t.Context(), path, os.Getppid(), os.Geteuid()); !errors.Is(err, ErrRefused) {
		t.Errorf("it is another: %v", err)
	}
}

// The pane is gone, its number another's, or its process no child of the server,
// between the look and the adoption: refused, and nothing is written.
func TestAdoptGoneBetween(t *testing.T) {
	srv := tmuxtest.New(t)
	pane := tmuxtest.Sleeper(t, srv, "theirs")
	store, err := OpenStore(filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	m := &Manager{Store: store, Host: localHost(t), Environ: []string{"XDG_RUNTIME_DIR=" + t.TempDir()}}
	guest, err := tmux.Guest(srv.Socket)
	if err != nil {
		t.Fatal(err)
	}
	found := foundPane{srv: guest, pane: pane}
	if err := errors.Join(m.whoServes(t.Context(), &found), m.whoRuns(t.Context(), &found)); err != nil {
		t.Fatal(err)
	}
	strange := found
	strange.pane.PID = os.Getpid()
	if err := m.whoRuns(t.Context(), &strange); !errors.Is(err, ErrRefused) {
		t.Errorf("no child of the server: %v", err)
	}
	if err := tmuxtest.KillPane(t.Context(), srv, pane.ID); err != nil && !errors.Is(err, tmux.ErrLost) {
		t.Fatal(err)
	}
	tmuxtest.WaitFor(t, "its process to end", func() bool { return m.finding(&found.first).Verdict == identity.Gone })
	a := adoption{Manager: m, found: found, o: AdoptOptions{Name: "chat/llm"}}
	if err := a.prepare(context.Background()); !errors.Is(err, identity.ErrGone) {
		t.Errorf("it has ended: %v", err)
	}
	if runs, err := store.Runs(); err != nil || len(runs) > 0 {
		t.Errorf("written: %v, %v", runs, err)
	}
}

// A torn record of the task that stood under the name before is kept, as by an up.
func TestAdoptOverATornRecord(t *testing.T) {
	r, d := newTask(t)
	m := &Manager{Store: r.store, Host: localHost(t)}
	self, err := m.self()
	if err != nil {
		t.Fatal(err)
	}
	task := testTask()
	task.State = Stopped
	torn := filepath.Join(d.Path, "capture.json")
	if err := errors.Join(d.WriteTask(task), os.WriteFile(torn, []byte(`{"schema": 1, "mem`), 0o600)); err != nil {
		t.Fatal(err)
	}
	a := adoption{Manager: m, name: Name{d.Run, d.Name}, found: foundPane{srv: &tmux.Server{}, server: *self, roots: []identity.Ref{*self}}}
	var rec *RecordError
	if err := a.openTask(t.Context()); !errors.As(err, &rec) || !errors.Is(err, ErrUnverified) {
		t.Errorf("adopted: %v", err)
	}
	if text, err := os.ReadFile(torn); err != nil || string(text) != `{"schema": 1, "mem` {
		t.Errorf("not kept: %q, %v", text, err)
	}
	if now, err := d.ReadTask(); err != nil || now.Adopted != nil {
		t.Errorf("written: %+v, %v", now, err)
	}
}
