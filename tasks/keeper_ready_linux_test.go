package tasks

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/identity/porttest"
	"hob/sweep"
)

func init() {
	roles["listen"] = listenRole
}

// listenRole listens on a port, as a worker of the command would, once a file
// named "listen" is there, and stops listening when one named "deaf" is.
func listenRole(args []string) int {
	exists := func(name string) bool { _, err := os.Stat(name); return err == nil }
	for !exists("listen") {
		time.Sleep(10 * time.Millisecond)
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+args[0])
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("listening")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	}()
	for !exists("deaf") {
		time.Sleep(10 * time.Millisecond)
	}
	l.Close()
	for {
		time.Sleep(time.Hour)
	}
}

// freePort is a port that nobody has now.
func freePort(t *testing.T) int {
	t.Helper()
	port, err := porttest.Free()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// listener is a task whose worker listens, below a shell.
func listener(t *testing.T) *rig {
	g := newRig(t, sweep.Server)
	g.spec.Port = freePort(t)
	g.sh(fmt.Sprintf(`%s=listen %s %d; exit $?`, roleEnv, os.Args[0], g.spec.Port))
	g.spec.Ready = &Readiness{TCP: true, Interval: 20 * time.Millisecond}
	return g
}

func (g *rig) touch(name string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.spec.Dir, name), nil, 0o600); err != nil {
		g.t.Fatal(err)
	}
}

func TestReadyWhenItsOwnWorkerListens(t *testing.T) {
	g := listener(t).start().up()
	g.until("it says why it is not ready", func() bool { return strings.Contains(g.keeper().ReadyNote, "port") })
	if k := g.keeper(); k.Ready || k.WasReady || k.ReadyAt != nil {
		t.Errorf("keeper.json %+v", k)
	}
	g.touch("listen")
	g.until("ready", func() bool { k := g.keeper(); return k.Ready && k.WasReady && k.ReadyAt != nil && k.ReadyNote == "" })
}

// TestUnreadyAgain: a server that stops answering is not ready any more.
func TestUnreadyAgain(t *testing.T) {
	t.Parallel()
	g := listener(t).start().up()
	g.touch("listen")
	g.until("ready", func() bool { return g.keeper().Ready })
	g.touch("deaf")
	g.until("unready", func() bool { k := g.keeper(); return !k.Ready && k.WasReady && k.ReadyNote != "" })
}

// TestStrangerOnThePort: an answer of somebody else is none.
func TestStrangerOnThePort(t *testing.T) {
	g := listener(t)
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", g.spec.Port))
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
	g.start().up()
	g.until("the stranger is named", func() bool { return strings.Contains(g.keeper().ReadyNote, fmt.Sprint(os.Getpid())) })
	if k := g.keeper(); k.Ready || k.WasReady {
		t.Errorf("keeper.json %+v", k)
	}
}

func TestReadyByTheLog(t *testing.T) {
	g := newRig(t, sweep.Server).sh(`echo almost ready; while [ ! -e go ]; do sleep 0.02; done; echo now ready to serve; while :; do sleep 0.05; done`)
	g.spec.Ready = &Readiness{Log: `^now ready`, Interval: 20 * time.Millisecond}
	g.start().up()
	g.untilLog("almost")
	g.until("it says why it is not ready", func() bool { return strings.Contains(g.keeper().ReadyNote, "^now ready") })
	g.touch("go")
	g.until("ready", func() bool { return g.keeper().Ready })
}

// TestReadyByAProgram: the probe's exit code is the one that counts, and no
// probe is taken for the command or left behind.
func TestReadyByAProgram(t *testing.T) {
	g := newRig(t, sweep.Server).sh(`while [ ! -e stop ]; do sleep 0.05; done; exit 6`)
	g.spec.Ready = &Readiness{Exec: []string{"test", "-e", "go"}, Interval: 20 * time.Millisecond}
	g.start().up()
	g.until("the code is told", func() bool { return strings.Contains(g.keeper().ReadyNote, "exit code 1") })
	g.touch("go")
	g.until("ready", func() bool { return g.keeper().Ready })
	g.touch("stop")
	if code := g.code(); code != 6 {
		t.Errorf("exit code %d", code)
	}
}

// TestHangingProbe is ended with the command.
func TestHangingProbe(t *testing.T) {
	g := newRig(t, sweep.Job).sh(`while [ ! -s probe ]; do sleep 0.02; done; exit 0`)
	g.spec.Ready = &Readiness{Exec: []string{"sh", "-c", "echo $$ >probe; exec sleep 300"}, Interval: 20 * time.Millisecond}
	g.start().up()
	pid := g.pidIn("probe")
	if code := g.code(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	g.allEnded([]int{pid})
}

func TestDeadlineForReady(t *testing.T) {
	g := listener(t)
	g.spec.Ready.Timeout = 50 * time.Millisecond
	g.start().up()
	g.until("the deadline has passed", func() bool { return g.keeper().DeadlineHit })
	g.touch("listen") // late, and welcome
	g.until("ready", func() bool { k := g.keeper(); return k.Ready && !k.DeadlineHit })
}

// A log that goes on moving extends the deadline.
func TestDeadlineOfATaskThatMoves(t *testing.T) {
	g := listener(t)
	g.sh(fmt.Sprintf(`while [ ! -e listen ]; do echo "loading"; sleep 0.05; done & %s=listen %s %d; exit $?`, roleEnv, os.Args[0], g.spec.Port))
	g.spec.Ready.Timeout = 3 * time.Second
	g.start().up()
	began := time.Now()
	g.until("more than the timeout to be over", func() bool { return time.Since(began) > g.spec.Ready.Timeout+500*time.Millisecond })
	if k := g.keeper(); k.DeadlineHit || k.Ready {
		t.Errorf("the deadline was hit while it moved: %+v", k)
	}
	g.touch("listen")
	g.until("ready", func() bool { return g.keeper().Ready })
	if text, err := os.ReadFile(filepath.Join(g.run.Path, "events.jsonl")); err != nil || strings.Contains(string(text), "not ready after") {
		t.Errorf("events %s: %v", text, err)
	}
}

func TestWithoutAPortUpIsReady(t *testing.T) {
	g := newRig(t, sweep.Job, "sleep", "300").start().up()
	g.until("ready", func() bool { k := g.keeper(); return k.Ready && k.ReadyAt != nil })
}

// TestRestartWaitsForThePort: what ends with the port still held by somebody is
// started again only when the port is free.
func TestRestartWaitsForThePort(t *testing.T) {
	g := newRig(t, sweep.Server)
	g.spec.Port = freePort(t)
	g.sh(`echo x >>starts; [ -e go ] || exit 1; echo again; while :; do sleep 0.05; done`)
	g.spec.Restart = Restart{Policy: "always", Max: 3, Backoff: time.Millisecond}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", g.spec.Port))
	if err != nil {
		t.Fatal(err)
	}
	g.start().up()
	g.until("it waits for the port", func() bool { return strings.Contains(g.keeper().ReadyNote, "is still held") })
	g.touch("go")
	if data, _ := os.ReadFile(filepath.Join(g.spec.Dir, "starts")); len(data) != 2 {
		t.Errorf("starts: %q", data)
	}
	l.Close()
	g.untilLog("again")
	g.signal(syscall.SIGTERM)
	g.code()
}

// TestDiskThatFillsUp: the command is not stopped by a log that cannot be
// written, and the log says what is missing.
func TestDiskThatFillsUp(t *testing.T) {
	home := filepath.Join(mountTmpfs(t, "size=2m"), "hob")
	s, err := OpenStore(home)
	if err != nil {
		t.Fatal(err)
	}
	g := newRig(t, sweep.Job).sh(`head -c 4000000 /dev/zero | tr '\0' x; echo; echo full >full; while [ ! -e go ]; do sleep 0.02; done; echo the end; exit 3`)
	g.run = s.Run("chat")
	g.dir = g.run.Task("llm")
	if err := errors.Join(g.run.Create(), g.run.Write(Run{Name: "chat", ID: "feedface"}), g.dir.Create()); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(home, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 256<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	g.start().up()
	g.until("the command wrote it all", func() bool { _, err := os.Stat(filepath.Join(g.spec.Dir, "full")); return err == nil })
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	g.touch("go")
	if code := g.code(); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if e := g.exit(); e.Code == nil || *e.Code != 3 {
		t.Errorf("exit.json %+v", e)
	}
	if log := g.log(); !strings.Contains(log, "bytes of output are missing here") || !strings.HasSuffix(log, "the end\r\n") {
		t.Errorf("the end of the log: %q", log[max(0, len(log)-200):])
	}
}

// TestReadyByTheVeryFirstLine: nothing is written before the pattern is looked for.
func TestReadyByTheVeryFirstLine(t *testing.T) {
	for range 10 {
		g := newRig(t, sweep.Server).sh(`echo now ready to serve; exec sleep 300`)
		g.spec.Ready = &Readiness{Log: `^now ready`, Interval: 20 * time.Millisecond}
		g.start().up()
		g.until("ready", func() bool { return g.keeper().Ready })
	}
}
