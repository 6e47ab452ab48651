//go:build linux

package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"hob/identity"
)

// A task in a network namespace of its own: what answers here is not it, though
// it listens on the same port there.
func TestOtherNetworkNamespace(t *testing.T) {
	here := start(t, serverConfig{}, nil)
	if os.Geteuid() != 0 {
		t.Skip("only root may make a network namespace")
	}
	there := start(t, serverConfig{Addr: fmt.Sprintf("127.0.0.1:%d", here.port)}, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET})
	r := once(t, Check{Port: here.port, HTTP: "/health"}, there.subject(t), "")
	notReady(t, r, "another network namespace")
}

// probeAsOther is run as another user: it probes and prints the result.
func probeAsOther(text string) int {
	var in struct {
		Port    int
		Subject Subject
	}
	h, err := identity.Local()
	if err != nil || json.Unmarshal([]byte(text), &in) != nil {
		return 2
	}
	r := Once(context.Background(), h, Check{Port: in.Port, HTTP: "/health"}, in.Subject, nil)
	_ = json.NewEncoder(os.Stdout).Encode(r)
	return 0
}

// An owner that cannot be read is neither ours nor a stranger.
func TestUnreadableOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	s := start(t, serverConfig{}, nil)
	in, _ := json.Marshal(map[string]any{"Port": s.port, "Subject": s.subject(t)})
	cmd := exec.Command(readable(t, os.Args[0]), "probe", string(in))
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	var r Result
	if err != nil || json.Unmarshal(out, &r) != nil {
		t.Fatalf("probing as another user: %v: %s", err, out)
	}
	notReady(t, r, "cannot tell", fmt.Sprintf("open files of pid %d cannot be read", s.pid))
	if r.Stranger != 0 {
		t.Errorf("called the stranger %d", r.Stranger)
	}
}

// readable copies the test binary to where other users may run it.
func readable(t *testing.T, path string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hobprobe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	to := filepath.Join(dir, "probe")
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close(), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return to
}

// blind is the real host with one kind of look failing.
type blind struct {
	identity.Host
	sockets, holders bool
}

var errBlind = errors.New("no procfs")

func (b blind) Sockets(ctx context.Context, pid int) ([]identity.Socket, error) {
	if b.sockets {
		return nil, errBlind
	}
	return b.Host.Sockets(ctx, pid)
}

func (b blind) Holders(ctx context.Context, inodes []uint64, among []int) (identity.Holders, error) {
	if b.holders {
		return identity.Holders{}, errBlind
	}
	return b.Host.Holders(ctx, inodes, among)
}

// A look that fails is neither "nothing listens" nor "ours".
func TestLookThatFails(t *testing.T) {
	s := start(t, serverConfig{}, nil)
	for _, h := range []blind{{local(t), true, false}, {local(t), false, true}} {
		notReady(t, Once(t.Context(), h, Check{Port: s.port, HTTP: "/health"}, s.subject(t), nil), "cannot tell", "no procfs")
		ready(t, Once(t.Context(), h, Check{Port: s.port, HTTP: "/health", AnyOwner: true}, s.subject(t), nil))
	}
}
