package tasks

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"hob/identity"
	"hob/tmux/tmuxtest"
)

// TestLookLegacy: sessions are found by their whole names, dead ones are gone, and
// what looks like one is named.
func TestLookLegacy(t *testing.T) {
	srv := tmuxtest.New(t)
	pane := tmuxtest.Sleeper(t, srv, "serve-abcdef")
	_, r := newTask(t)
	m := &Manager{Store: &Store{Home: r.Path}, Host: localHost(t)}
	like := exec.Command("sleep", "86431")
	if err := like.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = like.Process.Kill(); _ = like.Wait() })
	self, err := m.self()
	if err != nil {
		t.Fatal(err)
	}
	list := []Legacy{
		{Session: "serve-abc"}, {Session: "serve-abcdef", Args: []string{"sleep", "86431"}}, {Session: "serve-*"}, {Session: "serve-abcdef", Host: "x"},
		{Session: "x", PID: os.Getpid(), Start: "1"}, {Session: "x", PID: os.Getpid(), Start: strings.TrimPrefix(string(self.Start), "linux:")}, {Session: "x", PID: 1<<22 - 2},
	}
	got, err := m.LookLegacy(t.Context(), srv.Socket, list)
	if err != nil {
		t.Fatal(err)
	}
	want := []identity.Verdict{identity.Gone, identity.Unverifiable, identity.Gone, identity.Unverifiable, identity.Foreign, identity.Unverifiable, identity.Gone}
	for i, f := range got {
		if f.Verdict != want[i] {
			t.Errorf("%+v: %+v, want %s", list[i], f, want[i])
		}
	}
	if f := got[1]; f.Pane != pane.ID || f.PID == nil || *f.PID != pane.PID || !slices.Equal(f.Args, []string{"sleep", "600"}) ||
		len(f.Lookalikes) != 1 || f.Lookalikes[0].PID != like.Process.Pid {
		t.Errorf("%+v", f)
	}
	none, err := m.LookLegacy(t.Context(), tmuxtest.Socket(t), list[:1])
	if err != nil || none[0].Verdict != identity.Gone {
		t.Errorf("no server: %+v, %v", none, err)
	}
}

// A server that cannot be asked says nothing of what runs in it.
func TestLookLegacyBlind(t *testing.T) {
	socket := tmuxtest.Socket(t)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	m := &Manager{Store: &Store{Home: t.TempDir()}, Host: localHost(t)}
	got, err := m.LookLegacy(t.Context(), socket, []Legacy{{Session: "serve-abc"}})
	if !errors.Is(err, ErrUnverified) || len(got) != 1 || got[0].Verdict != identity.Unverifiable {
		t.Errorf("%+v, %v", got, err)
	}
}

// Without a tmux program nobody can ask a server that may be there.
func TestLookLegacyNoTmux(t *testing.T) {
	socket := tmuxtest.Socket(t)
	t.Setenv("PATH", t.TempDir())
	m := &Manager{Store: &Store{Home: t.TempDir()}, Host: localHost(t)}
	got, err := m.LookLegacy(t.Context(), socket, []Legacy{{Session: "serve-abc"}})
	if err != nil || len(got) != 1 || got[0].Verdict != identity.Gone {
		t.Errorf("no socket: %+v, %v", got, err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got, err = m.LookLegacy(t.Context(), socket, []Legacy{{Session: "serve-abc"}})
	if !errors.Is(err, ErrUnverified) || len(got) != 1 || got[0].Verdict != identity.Unverifiable {
		t.Errorf("a socket: %+v, %v", got, err)
	}
}
