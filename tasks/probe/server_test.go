//go:build linux

package probe

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hob/identity"
)

// serverConfig is what a server of a test does. It runs in the test binary.
type serverConfig struct {
	Addr      string // host:port
	ReusePort bool
	Defer     bool          // TCP_DEFER_ACCEPT: no connection without data
	Depth     int           // this many processes below the first one listen
	Prefork   bool          // the parent listens, a child accepts
	HangUp    string        // accepts and closes: "close", "reset", or "late": after a moment
	Key       string        // that every route but /health asks for
	Header    string        // that the same ask for, "NAME: value"; what they got they repeat
	Deaf      bool          // listens and accepts nothing
	Statuses  []int         // of /health, the last one repeated
	Delay     time.Duration // before every answer
	Close     bool          // the connection is closed after an answer
	Body      string        // of /health
	Routes    map[string]string
}

// TestMain lets the test binary be a server, or a probe of another user.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "serve":
		os.Exit(serve(os.Args[2]))
	case len(os.Args) == 3 && os.Args[1] == "probe":
		os.Exit(probeAsOther(os.Args[2]))
	}
	os.Exit(m.Run())
}

// serve runs until its standard input ends, as all below it do.
func serve(text string) int {
	var c serverConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return 2
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	if c.Depth > 0 {
		c.Depth--
		return below(c)
	}
	l, err := listenAs(c)
	if err != nil {
		fmt.Println("ERROR", err)
		return 1
	}
	if c.Prefork {
		c.Prefork = false
		f, _ := l.(*net.TCPListener).File()
		return below(c, f)
	}
	fmt.Println("PORT", l.Addr().(*net.TCPAddr).Port)
	if c.Deaf {
		select {}
	}
	if c.HangUp != "" {
		return hangUp(l, c.HangUp)
	}
	_ = (&http.Server{Handler: c.handler()}).Serve(l)
	return 1
}

// hangUp closes every connection as soon as it is there.
func hangUp(l net.Listener, how string) int {
	for {
		conn, err := l.Accept()
		if err != nil {
			return 1
		}
		switch how {
		case "reset":
			_ = conn.(*net.TCPConn).SetLinger(0)
		case "late":
			time.Sleep(50 * time.Millisecond)
		}
		conn.Close()
	}
}

// below runs the rest in a child.
func below(c serverConfig, files ...*os.File) int {
	b, _ := json.Marshal(c)
	cmd := exec.Command(os.Args[0], "serve", string(b))
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdin, os.Stdout, os.Stderr, files
	if cmd.Run() != nil {
		return 1
	}
	return 0
}

func listenAs(c serverConfig) (net.Listener, error) {
	if f := os.NewFile(3, "inherited"); f != nil {
		if l, err := net.FileListener(f); err == nil {
			return l, nil
		}
	}
	lc := net.ListenConfig{Control: func(_, _ string, rc syscall.RawConn) error {
		return rc.Control(func(fd uintptr) {
			if c.ReusePort {
				_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
			}
			if c.Defer {
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 5)
			}
		})
	}}
	network := "tcp"
	if strings.HasPrefix(c.Addr, "0.0.0.0") {
		network = "tcp4" // Go would listen on [::] too
	}
	return lc.Listen(context.Background(), network, c.Addr)
}

func (c serverConfig) handler() http.Handler {
	var asked atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(c.Delay)
		if c.Close {
			w.Header().Set("Connection", "close")
		}
		if n := int(asked.Add(1)); len(c.Statuses) > 0 {
			w.WriteHeader(c.Statuses[min(n, len(c.Statuses))-1])
		}
		fmt.Fprint(w, c.Body)
	})
	for path, body := range c.Routes {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Authorization"); c.Key != "" && got != "Bearer "+c.Key {
				w.WriteHeader(http.StatusUnauthorized)
				body = "wrong: " + got
			}
			if name, want, ok := strings.Cut(c.Header, ": "); ok && r.Header.Get(name) != want {
				w.WriteHeader(http.StatusForbidden)
				body = strings.Repeat("it is ", 13) + "wrong: " + r.Host
				for _, name := range []string{"X-Token", "Authorization", "Cookie"} {
					body += fmt.Sprintf(" %q", r.Header.Get(name))
				}
			}
			fmt.Fprint(w, body)
		})
	}
	return mux
}

// server is a running one.
type server struct {
	pid  int
	port int
	stop func()
}

// start runs a server as a child of the test and waits until it listens.
func start(t *testing.T, c serverConfig, attr *syscall.SysProcAttr) server {
	t.Helper()
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "serve", string(b))
	cmd.SysProcAttr = attr
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0") // else each takes a second to end
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	stop := func() {
		if !ended {
			ended = true
			in.Close()
			_, _ = io.Copy(io.Discard, out) // ends when the last process below has
			_ = cmd.Wait()
		}
	}
	t.Cleanup(stop)
	line, err := bufio.NewReader(out).ReadString('\n')
	port, ok := strings.CutPrefix(strings.TrimSpace(line), "PORT ")
	n, convErr := strconv.Atoi(port)
	if err != nil || !ok || convErr != nil {
		t.Fatalf("the test's server said %q, %v", line, err)
	}
	return server{pid: cmd.Process.Pid, port: n, stop: stop}
}

func (s server) subject(t *testing.T) Subject {
	t.Helper()
	return Subject{Command: s.pid, Tree: tree(t, s.pid)}
}

// tree is the process and all below it.
func tree(t *testing.T, pid int) []int {
	t.Helper()
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		children, err := local(t).Children(all[i])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, children...)
	}
	slices.Sort(all)
	return all
}

func local(t *testing.T) identity.Host {
	t.Helper()
	h, err := identity.Local()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// bystander is a task that listens on nothing.
func bystander(t *testing.T) Subject {
	t.Helper()
	s := start(t, serverConfig{Deaf: true}, nil)
	return Subject{Command: s.pid, Tree: []int{s.pid}}
}

func once(t *testing.T, c Check, s Subject, log string) Result {
	t.Helper()
	return Once(t.Context(), local(t), c, s, []byte(log))
}

func ready(t *testing.T, r Result) {
	t.Helper()
	if !r.Ready || r.Reason != "" || r.Stranger != 0 {
		t.Errorf("not ready: %+v", r)
	}
}

func notReady(t *testing.T, r Result, words ...string) {
	t.Helper()
	if r.Ready {
		t.Errorf("ready: %+v", r)
	}
	for _, w := range words {
		if !strings.Contains(r.Reason, w) {
			t.Errorf("%q lacks %q", r.Reason, w)
		}
	}
}
