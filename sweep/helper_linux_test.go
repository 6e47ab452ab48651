package sweep_test

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hob/identity/child"
)

// helperEnv makes this test binary act as one of the processes of a task.
const helperEnv = "SWEEP_TEST_HELPER"

func TestMain(m *testing.M) {
	if role := os.Getenv(helperEnv); role != "" {
		os.Exit(helper(role, os.Args[1:]))
	}
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", "16") // stops wait for their graces and need no processor
	}
	os.Exit(m.Run())
}

// helper is one process of a test's tree. All of them write their pid to a file
// of their name in the folder $D, so that the test knows the truth.
func helper(role string, args []string) int {
	switch role {
	case "keeper":
		return keeperHelper(args)
	case "decoy":
		return idle("decoy-" + args[0])
	case "thread":
		return threadHelper(args[0])
	case "threads":
		return threadsHelper(args[0])
	case "zombie":
		return zombieHelper(args[0])
	case "listen":
		return listenHelper(args[0], args[1])
	case "burst":
		return burstHelper()
	case "wide":
		return wideHelper(args[0])
	case "idle":
		return idle(args[0])
	case "deaf":
		signal.Ignore(syscall.SIGTERM) // which its children inherit
		return wideHelper(args[0])
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		return idle(args[0])
	}
	fmt.Fprintln(os.Stderr, "unknown helper", role)
	return 2
}

// keeperHelper is the smallest keeper there can be: a subreaper that starts the
// command in a kernel session of its own and reaps until wait says ECHILD.
func keeperHelper(args []string) int {
	stamp, _ := strconv.ParseUint(os.Getenv("STAMP"), 10, 64)
	_, err := child.Stamp(stamp)
	if err != nil || child.Subreap() != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
		return 2
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGTERM)
	note("keeper", os.Getpid())
	null, _ := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	path, err := exec.LookPath(args[0])
	if err != nil {
		return 2
	}
	fd := null.Fd()
	env := append(os.Environ(), "HOB_RUN=r", "HOB_TASK=t", "HOB_RUN_ID="+os.Getenv("MARKER"))
	pid, err := syscall.ForkExec(path, args, &syscall.ProcAttr{Env: env, Files: []uintptr{fd, fd, 2},
		Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	note("command", pid)
	for {
		if _, err := syscall.Wait4(-1, nil, 0, nil); err == syscall.ECHILD {
			note("empty", 1)
			return 0
		}
	}
}

// note writes a pid to the file of its name, by rename so that a reader never
// sees half of it.
func note(name string, pid int) {
	if alias := os.Getenv("ALIAS"); alias != "" {
		name = alias
	}
	path := filepath.Join(os.Getenv("D"), name)
	tmp := fmt.Sprintf("%s.%d", path, os.Getpid())
	_ = os.WriteFile(tmp, []byte(strconv.Itoa(pid)), 0o600)
	_ = os.Rename(tmp, path)
}

func idle(name string) int {
	note(name, os.Getpid())
	time.Sleep(5 * time.Minute) // longer than any test, short enough to leave nothing behind
	return 0
}

// self starts this binary again in another role.
func self(role string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), helperEnv+"="+role)
	return cmd
}

// threadHelper's child belongs to a thread other than the main one, and that
// thread stays: its children file alone names the child.
func threadHelper(name string) int {
	go forkOffMain(name)
	return idle(name + "-parent")
}

func forkOffMain(name string) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		go forkOffMain(name) // on another thread: this one stays taken
	} else {
		_ = self("stubborn", name).Start()
	}
	select {}
}

// threadsHelper is threadHelper with very many threads.
func threadsHelper(name string) int {
	var up sync.WaitGroup
	for range 2000 {
		up.Add(1)
		go func() {
			runtime.LockOSThread()
			up.Done()
			select {}
		}()
	}
	up.Wait()
	return threadHelper(name)
}

// zombieHelper never reaps its child.
func zombieHelper(name string) int {
	cmd := self("idle", name)
	if cmd.Start() != nil {
		return 2
	}
	signal.Ignore(syscall.SIGTERM)
	return idle(name + "-parent")
}

func listenHelper(name, port string) int {
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer l.Close()
	return idle(name)
}

// burstHelper forks stubborn children as fast as it can, a bounded number.
func burstHelper() int {
	signal.Ignore(syscall.SIGTERM)
	note("burst", os.Getpid())
	for i := range 60 {
		cmd := self("stubborn", fmt.Sprintf("burst-%d", i))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: i%2 == 0}
		if cmd.Start() != nil {
			break
		}
	}
	return idle("burst-done")
}

// wideHelper has n sleeping children.
func wideHelper(n string) int {
	count, _ := strconv.Atoi(n)
	for range count {
		_ = exec.Command("sleep", "300").Start()
	}
	return idle("wide")
}
