//go:build linux

package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hob/identity"
)

// Whatever address a server binds, the probe reaches it and knows it for ours.
func TestReadyOnEveryBind(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0", "127.0.0.2:0"} {
		t.Run(addr, func(t *testing.T) {
			if strings.HasPrefix(addr, "[") {
				needIPv6(t)
			}
			s := start(t, serverConfig{Addr: addr}, nil)
			ready(t, once(t, Check{Port: s.port}, s.subject(t), ""))
			ready(t, once(t, Check{Port: s.port, TCP: true}, s.subject(t), ""))
			ready(t, once(t, Check{Port: s.port, HTTP: "/health"}, s.subject(t), ""))
			ready(t, once(t, Check{Port: s.port, HTTP: "/health", AnyOwner: addr != "127.0.0.2:0", Expect: Expect{Status: 200}}, s.subject(t), ""))
		})
	}
}

func needIPv6(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skipf("this kernel has no IPv6: %v", err)
	}
	l.Close()
}

// The listener may be in a grandchild, or bound by a parent and served by a
// worker: it is the task's tree that counts.
func TestListenerAnywhereInTheTree(t *testing.T) {
	for name, c := range map[string]serverConfig{
		"grandchild":                 {Depth: 2},
		"prefork":                    {Prefork: true},
		"prefork below":              {Depth: 1, Prefork: true},
		"closes after its answer":    {Close: true},
		"takes nothing without data": {Defer: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, c, nil)
			ready(t, once(t, Check{Port: s.port, HTTP: "/health"}, s.subject(t), ""))
			if !c.Defer {
				ready(t, once(t, Check{Port: s.port, TCP: true}, s.subject(t), ""))
			}
		})
	}
}

// Fault 37: an orphan of an earlier run holds the port and answers the probe.
func TestStrangerHoldsThePort(t *testing.T) {
	orphan, mine := start(t, serverConfig{}, nil), bystander(t)
	for name, c := range map[string]Check{
		"port":       {Port: orphan.port},
		"http":       {Port: orphan.port, HTTP: "/health"},
		"log":        {Port: orphan.port, Log: regexp.MustCompile("ready")},
		"completion": {Port: orphan.port, Completion: true},
		"url":        {HTTP: fmt.Sprintf("http://localhost:%d/health", orphan.port)},
		"exec":       {Port: orphan.port, Exec: []string{"true"}, Run: exits(0)},
	} {
		t.Run(name, func(t *testing.T) {
			r := once(t, c, mine, "ready")
			notReady(t, r, fmt.Sprintf("port %d is held by pid %d (", orphan.port, orphan.pid), "serve", "not by this task")
			if r.Stranger != orphan.pid {
				t.Errorf("stranger %d, wanted %d", r.Stranger, orphan.pid)
			}
			c.AnyOwner = true
			if !c.Completion { // the server has no such route
				ready(t, once(t, c, mine, "ready"))
			}
		})
	}
}

// Fault 38: two servers share one port; half of the answers are a stranger's.
func TestSharedPort(t *testing.T) {
	ours := start(t, serverConfig{ReusePort: true}, nil)
	check := Check{Port: ours.port, HTTP: "/health"}
	ready(t, once(t, check, ours.subject(t), ""))
	other := start(t, serverConfig{ReusePort: true, Addr: fmt.Sprintf("127.0.0.1:%d", ours.port)}, nil)
	for range 8 { // whoever takes the connection
		r := once(t, check, ours.subject(t), "")
		notReady(t, r, fmt.Sprintf("also held by pid %d", other.pid))
		if r.Stranger != other.pid {
			t.Fatalf("stranger %d, wanted %d", r.Stranger, other.pid)
		}
	}
	other.stop()
	ready(t, once(t, check, ours.subject(t), ""))
}

// A process of the task that came after the last walk of its tree is not called
// a stranger, and not trusted either.
func TestChildAfterTheLastLook(t *testing.T) {
	s := start(t, serverConfig{Depth: 2}, nil)
	r := once(t, Check{Port: s.port}, Subject{Command: s.pid, Tree: []int{s.pid}}, "")
	notReady(t, r, "not in the last look")
	if r.Stranger != 0 {
		t.Errorf("a child of ours is called the stranger %d", r.Stranger)
	}
}

// A listener of ours proves nothing of the one that takes the connections.
func TestAcceptorIsNotTheListener(t *testing.T) {
	s := start(t, serverConfig{Prefork: true}, nil)
	parent := Subject{Command: s.pid, Tree: []int{s.pid}}
	for _, c := range []Check{{Port: s.port}, {Port: s.port, HTTP: "/health"}} {
		notReady(t, once(t, c, parent, ""), "not in the last look")
	}
}

// Fault 36: it listens and answers 503, and then it is ready.
func TestUnavailableThenReady(t *testing.T) {
	s := start(t, serverConfig{Statuses: []int{503, 503, 200}, Body: "loading model"}, nil)
	check := Check{Port: s.port, HTTP: "/health"}
	for range 2 {
		notReady(t, once(t, check, s.subject(t), ""), "503 Service Unavailable", "loading model")
	}
	ready(t, once(t, check, s.subject(t), ""))
}

// Fault 36: a busy server needs its time.
func TestSlowAnswer(t *testing.T) {
	s := start(t, serverConfig{Delay: 1500 * time.Millisecond}, nil)
	ready(t, once(t, Check{Port: s.port, HTTP: "/health", Timeout: time.Second}, s.subject(t), ""))
}

func TestNoAnswer(t *testing.T) {
	t.Parallel()
	const soon = 3 * time.Second // in which it looks at who listens, connects, and waits
	s := start(t, serverConfig{Delay: time.Hour}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	notReady(t, Once(ctx, local(t), Check{Port: s.port, HTTP: "/health"}, s.subject(t), nil), "no answer within")
	deaf := start(t, serverConfig{Deaf: true}, nil)
	ctx, cancel = context.WithTimeout(t.Context(), soon)
	defer cancel()
	notReady(t, Once(ctx, local(t), Check{Port: deaf.port}, deaf.subject(t), nil), "not accepted")
}

// A server may close every connection at once. It is the task's when nobody else
// could have taken them.
func TestServerThatHangsUp(t *testing.T) {
	for _, how := range []string{"close", "reset"} {
		t.Run(how, func(t *testing.T) {
			s := start(t, serverConfig{HangUp: how, ReusePort: true}, nil)
			for range 3 {
				ready(t, once(t, Check{Port: s.port}, s.subject(t), ""))
			}
			notReady(t, once(t, Check{Port: s.port, HTTP: "/health"}, s.subject(t), ""))
			notReady(t, once(t, Check{Port: s.port}, bystander(t), ""), fmt.Sprintf("port %d is held by pid %d", s.port, s.pid))
			other := start(t, serverConfig{HangUp: how, ReusePort: true, Addr: fmt.Sprintf("127.0.0.1:%d", s.port)}, nil)
			notReady(t, once(t, Check{Port: s.port}, s.subject(t), ""), fmt.Sprintf("also held by pid %d", other.pid))
		})
	}
}

// It closes the connection after that was seen in the table, and before it could be
// seen who has it.
func TestServerThatHangsUpBetweenTwoLooks(t *testing.T) {
	s := start(t, serverConfig{HangUp: "late"}, nil)
	ready(t, Once(t.Context(), late{local(t), s.port}, Check{Port: s.port}, s.subject(t), nil))
}

// late is the real host, which finds the holders of a connection to a port only
// once that is closed.
type late struct {
	identity.Host
	port int
}

func (l late) Holders(ctx context.Context, inodes []uint64, among []int) (identity.Holders, error) {
	for open := true; open; {
		all, err := l.Sockets(ctx, 0)
		if err != nil {
			return identity.Holders{}, err
		}
		open = slices.ContainsFunc(all, func(s identity.Socket) bool {
			return !s.Listen && int(s.Local.Port()) == l.port && slices.Contains(inodes, s.Inode)
		})
	}
	return l.Host.Holders(ctx, inodes, among)
}

// Fault 36: it says that it is ready, and listens on nothing.
func TestNothingListens(t *testing.T) {
	mine := bystander(t)
	port := silent(t)
	notReady(t, once(t, Check{Port: port, Log: regexp.MustCompile("ready")}, mine, "I am ready"), fmt.Sprintf("nothing listens on port %d", port))
	notReady(t, once(t, Check{Port: port, AnyOwner: true}, mine, ""), "nothing answers", "refused")
}

// silent is a port that is bound, so that nobody else takes it, and not listened on.
func silent(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return at.(*unix.SockaddrInet4).Port
}

func TestLog(t *testing.T) {
	mine := bystander(t)
	check := Check{Log: regexp.MustCompile(`startup complete\.`)}
	notReady(t, once(t, check, mine, "starting\n"), "log does not show", "startup complete")
	ready(t, once(t, check, mine, "starting\nApplication startup complete.\n"))
}

func exits(code int) Runner {
	return func(context.Context, []string, []string, string) (int, error) { return code, nil }
}

func TestExec(t *testing.T) {
	mine := bystander(t)
	var got []any
	run := func(_ context.Context, argv, env []string, dir string) (int, error) {
		got = []any{argv[1], env[0], dir}
		return 0, nil
	}
	ready(t, once(t, Check{Exec: []string{"ask", "-x"}, Env: []string{"A=b"}, Dir: "/d", Run: run}, mine, ""))
	if fmt.Sprint(got) != "[-x A=b /d]" {
		t.Errorf("the runner got %v", got)
	}
	notReady(t, once(t, Check{Exec: []string{"ask"}, Run: exits(3)}, mine, ""), "ask ended with exit code 3")
	fails := func(context.Context, []string, []string, string) (int, error) { return 0, errors.New("no such file") }
	notReady(t, once(t, Check{Exec: []string{"ask"}, Run: fails}, mine, ""), "run ask: no such file")
	notReady(t, once(t, Check{Exec: []string{"ask"}}, mine, ""), "nobody here can run ask")
	hangs := func(ctx context.Context, _, _ []string, _ string) (int, error) { <-ctx.Done(); return 0, nil }
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	notReady(t, Once(ctx, local(t), Check{Exec: []string{"ask"}, Run: hangs}, mine, nil), "did not end")
}

func TestUpIsReadyWithoutAPort(t *testing.T) {
	ready(t, once(t, Check{}, bystander(t), ""))
	notReady(t, once(t, Check{TCP: true}, bystander(t), ""), "no port")
	notReady(t, once(t, Check{Completion: true}, bystander(t), ""), "no port")
}

// A health page on another port does not excuse the task's own.
func TestHealthOnAnotherPort(t *testing.T) {
	s, other := start(t, serverConfig{}, nil), start(t, serverConfig{}, nil)
	both := Subject{Command: s.pid, Tree: []int{s.pid, other.pid}}
	check := Check{Port: s.port, HTTP: fmt.Sprintf("http://127.0.0.1:%d/health", other.port)}
	ready(t, once(t, check, both, ""))
	notReady(t, once(t, check, other.subject(t), ""), fmt.Sprintf("port %d is held by pid %d", s.port, s.pid))
	notReady(t, once(t, check, s.subject(t), ""), fmt.Sprintf("port %d is held by pid %d", other.port, other.pid))
}

func TestCompletion(t *testing.T) {
	text := `{"object":"text_completion","choices":[{"text":" there"}]}`
	models := `{"data":[{"id":"tiny"}]}`
	for name, c := range map[string]struct {
		routes map[string]string
		words  []string // none: ready
	}{
		"completes":       {routes: map[string]string{"/v1/models": models, "/v1/completions": text}},
		"lists no models": {routes: map[string]string{"/v1/completions": text}},
		"chats only":      {routes: map[string]string{"/v1/models": models, "/v1/chat/completions": text}},
		"error with 200":  {map[string]string{"/v1/completions": `{"error":{"message":"failed to load"},"choices":[{}]}`}, []string{"with an error", "failed to load"}},
		"null error":      {routes: map[string]string{"/v1/completions": `{"error":null,"choices":[{}]}`}},
		"no choices":      {map[string]string{"/v1/completions": `{"choices":[]}`}, []string{"without a completion"}},
		"not JSON":        {map[string]string{"/v1/completions": `<html>`}, []string{"without a completion", "<html>"}},
		"no route":        {map[string]string{"/v1/models": models}, []string{"/v1/chat/completions answered 404"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, serverConfig{Routes: c.routes}, nil)
			r := once(t, Check{Port: s.port, Completion: true}, s.subject(t), "")
			if c.words == nil {
				ready(t, r)
				return
			}
			notReady(t, r, c.words...)
		})
	}
}

// Fault 45: a task is probed for months; no attempt leaves anything open.
func TestAttemptsLeaveNothingOpen(t *testing.T) {
	s, mine := start(t, serverConfig{Body: "{}"}, nil), bystander(t)
	attempts := func(n int) {
		for range n {
			ready(t, once(t, Check{Port: s.port, HTTP: "/health"}, s.subject(t), ""))
			ready(t, once(t, Check{Port: s.port}, s.subject(t), ""))
			notReady(t, once(t, Check{Port: s.port, Completion: true}, s.subject(t), ""))
			notReady(t, once(t, Check{Port: s.port}, mine, ""))
		}
	}
	attempts(2)
	files, routines := openFiles(t), runtime.NumGoroutine()
	attempts(20)
	for end := time.Now().Add(20 * time.Second); openFiles(t) > files || runtime.NumGoroutine() > routines; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d files and %d goroutines grew to %d and %d", files, routines, openFiles(t), runtime.NumGoroutine())
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
