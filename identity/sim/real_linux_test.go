//go:build unix

package sim

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// The same script is played in the world and on the real kernel, and after each
// step both tables are compared: who is whose child, in which group and session,
// alive, a zombie, or gone.
//
// Each real process is this test binary again, as an agent: it connects to the
// test's socket, does what it is told, and ends when the socket closes, so that
// nothing is left when the test ends in whatever way.

const agentSocket, agentName = "HOB_SIM_AGENT_SOCKET", "HOB_SIM_AGENT_NAME"

func TestMain(m *testing.M) {
	if path := os.Getenv(agentSocket); path != "" {
		agent(path, os.Getenv(agentName))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func agent(path, name string) {
	c, err := net.Dial("unix", path)
	if err != nil {
		os.Exit(3)
	}
	fmt.Fprintf(c, "%s %d\n", name, os.Getpid())
	for in := bufio.NewScanner(c); in.Scan(); {
		verb, arg, _ := strings.Cut(in.Text(), " ")
		fmt.Fprintln(c, agentDoes(verb, arg))
	}
}

func agentDoes(verb, arg string) string {
	var err error
	switch verb {
	case "fork":
		_, err = os.StartProcess("/proc/self/exe", []string{"agent"}, &os.ProcAttr{
			Env: []string{agentSocket + "=" + os.Getenv(agentSocket), agentName + "=" + arg, "GORACE=" + os.Getenv("GORACE")},
		})
	case "setsid":
		_, err = syscall.Setsid()
	case "setpgid":
		err = syscall.Setpgid(0, 0)
	case "subreaper":
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	case "reap":
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	case "exit":
		os.Exit(0)
	}
	return fmt.Sprint(err == nil)
}

// stage is the real side of a play.
type stage struct {
	t     failer
	ln    *net.UnixListener
	pids  map[string]int
	conns map[string]*bufio.ReadWriter
	raw   []net.Conn
	path  string
}

type failer interface {
	Helper()
	Fatalf(string, ...any)
}

func newStage(t failer, dir string) *stage {
	path := filepath.Join(dir, "s")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	return &stage{t: t, ln: ln, path: path, pids: map[string]int{}, conns: map[string]*bufio.ReadWriter{}}
}

// join waits for a new agent.
func (s *stage) join() {
	_ = s.ln.SetDeadline(time.Now().Add(30 * time.Second))
	c, err := s.ln.Accept()
	if err != nil {
		s.t.Fatalf("no agent came: %v", err)
	}
	rw := bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c))
	hello, err := rw.ReadString('\n')
	name, pid, _ := strings.Cut(strings.TrimSpace(hello), " ")
	s.pids[name], _ = strconv.Atoi(pid)
	if err != nil || s.pids[name] == 0 {
		s.t.Fatalf("agent said %q: %v", hello, err)
	}
	s.conns[name], s.raw = rw, append(s.raw, c)
}

func (s *stage) tell(name, verb, arg string) (ok bool) {
	rw := s.conns[name]
	fmt.Fprintln(rw, verb, arg)
	_ = rw.Flush()
	answer, err := rw.ReadString('\n')
	if verb == "exit" {
		s.awaitEnd(name) // the socket closes a little before the process is a zombie
		return true
	}
	if err != nil {
		s.t.Fatalf("agent %s on %s: %v", name, verb, err)
	}
	if verb == "fork" {
		s.join()
	}
	return strings.TrimSpace(answer) == "true"
}

func (s *stage) awaitEnd(name string) {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if l := s.line(name); !strings.Contains(l, "alive") {
			return
		}
	}
	s.t.Fatalf("agent %s does not end", name)
}

// line says where a process stands, by names.
func (s *stage) line(name string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pids[name]))
	if err != nil {
		return name + " gone"
	}
	f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+2:])
	how := "alive"
	if string(f[0]) == "Z" && string(f[17]) <= "1" { // until then another thread is still ending
		how = "zombie"
	}
	nameOf := func(field []byte) string {
		for n, pid := range s.pids {
			if strconv.Itoa(pid) == string(field) {
				return n
			}
		}
		return "outside"
	}
	return fmt.Sprintf("%s %s parent %s group %s session %s", name, how, nameOf(f[1]), nameOf(f[2]), nameOf(f[3]))
}

func (s *stage) close() {
	for _, c := range s.raw {
		c.Close()
	}
	s.ln.Close()
}

// cast is the simulated side of it.
type cast struct {
	w     *World
	procs map[string]*Process
}

func (c *cast) tell(name, verb, arg string) (ok bool) {
	p := c.procs[name]
	switch verb {
	case "fork":
		c.procs[arg] = p.Fork(Proc{NeverReap: true})
	case "setsid":
		return p.Setsid()
	case "setpgid":
		if p.sid == p.pid {
			return false
		}
		p.setpgid(p.pid)
	case "subreaper":
		p.reaper = true
	case "reap":
		for _, k := range p.Children() {
			c.w.reap(k)
		}
	case "exit":
		p.Exit()
	}
	return true
}

func (c *cast) line(name string) string {
	p := c.procs[name]
	how := "alive"
	switch {
	case p.state == reaped:
		return name + " gone"
	case p.Zombie():
		how = "zombie"
	}
	nameOf := func(pid int) string {
		for n, q := range c.procs {
			if q.pid == pid {
				return n
			}
		}
		return "outside"
	}
	return fmt.Sprintf("%s %s parent %s group %s session %s", name, how, nameOf(p.parent.pid), nameOf(p.pgid), nameOf(p.sid))
}

func TestTheRealKernelAgrees(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some hundred real processes")
	}
	old := flag.Lookup("rapid.checks").Value.String()
	defer func() { _ = flag.Set("rapid.checks", old) }()
	_ = flag.Set("rapid.checks", "30")
	rapid.Check(t, func(rt *rapid.T) { play(rt) })
}

func play(t *rapid.T) {
	dir, err := os.MkdirTemp("", "hobsim")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	real := newStage(t, dir)
	root := exec.Command("/proc/self/exe")
	root.Env = []string{agentSocket + "=" + real.path, agentName + "=a", "GORACE=atexit_sleep_ms=0"}
	root.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := root.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Wait() }()
	defer real.close()
	real.join()

	w := New(Quiet, Options{PIDs: 200})
	sim := &cast{w: w, procs: map[string]*Process{"a": w.Spawn(w.Init(), Proc{Setsid: true, NeverReap: true})}}
	names := []string{"a"}
	do := func(name, verb, arg string) {
		a, b := real.tell(name, verb, arg), sim.tell(name, verb, arg)
		if a != b {
			t.Fatalf("%s %s %s: the kernel says %v, the world %v", name, verb, arg, a, b)
		}
		for _, n := range names {
			if a, b := real.line(n), sim.line(n); a != b {
				t.Fatalf("after %s %s %s:\nthe kernel: %s\nthe world:  %s", name, verb, arg, a, b)
			}
		}
	}
	do("a", "subreaper", "") // so that no orphan leaves the play
	for range 14 {
		name := rapid.SampledFrom(names).Draw(t, "who")
		if !sim.procs[name].Alive() {
			continue
		}
		verbs := []string{"fork", "fork", "fork", "setsid", "setpgid", "subreaper", "reap", "exit"}
		if name == "a" {
			verbs = []string{"fork", "reap"}
		}
		verb, arg := rapid.SampledFrom(verbs).Draw(t, "what"), ""
		if verb == "fork" {
			arg = string(rune('a' + len(names)))
			real.tell(name, verb, arg)
			sim.tell(name, verb, arg)
			names = append(names, arg)
			verb, arg = "look", ""
		}
		do(name, verb, arg)
	}
	for _, n := range names[1:] {
		if sim.procs[n].Alive() {
			do(n, "exit", "")
		}
	}
	do("a", "reap", "")
}
