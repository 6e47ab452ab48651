package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"hob/identity"
)

// kill ends a task's command hard, and waits until it is gone.
func (k *kitchen) kill(task string, pid int) {
	k.t.Helper()
	host, err := identity.Local()
	if err != nil {
		k.t.Fatal(err)
	}
	command, err := host.Open(pid)
	if err != nil {
		k.t.Fatal(err)
	}
	defer command.Close()
	if got := k.task(task); got.PID == nil || *got.PID != pid { // looked at under the pin
		k.t.Fatalf("%s is not pid %d any more: %+v", task, pid, got)
	}
	if err := command.Signal(syscall.SIGKILL); err != nil {
		k.t.Fatal(err)
	}
	k.until(task+" to be gone", func() bool { return cmdline(pid) == "" })
}

// seeNamed checks that a report names a process as one with the same command line.
func (k *kitchen) seeNamed(r report, pid int) {
	k.t.Helper()
	for _, l := range r.Lookalikes {
		if l.PID == pid && slices.Contains(l.Why, "command") {
			return
		}
	}
	k.t.Errorf("%s: pid %d is not named: %+v", r.Task, pid, r.Lookalikes)
}

func children(pid int) (pids []int) {
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, file := range files {
		list, _ := os.ReadFile(file) // a thread that has ended has none
		for field := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// cmdline is "" for what is gone, and for zombies.
func cmdline(pid int) string {
	args, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	return strings.TrimSpace(strings.ReplaceAll(string(args), "\x00", " "))
}

// below are all processes below pid.
func below(pid int) (pids []int) {
	for _, child := range children(pid) {
		pids = append(append(pids, child), below(child)...)
	}
	return pids
}

// TestStranger: a process whose command line reads as the server's, but which
// hob did not start, is named and lives on.
func TestStranger(t *testing.T) {
	k := newKitchen(t)
	k.hob("up", "pilot/hob.yaml")
	server := k.task("chat")
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(*server.PID) + "/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	argv := strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
	dir := t.TempDir() // with a script named as the server's first argument, which the shell runs
	if err := os.WriteFile(filepath.Join(dir, argv[1]), []byte("read -r _\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stranger := &exec.Cmd{Path: "/bin/sh", Args: argv, Dir: dir}
	hold, err := stranger.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- stranger.Wait() }()
	t.Cleanup(func() {
		hold.Close()
		<-ended
	})
	want := strings.Join(argv, " ")
	k.until("the stranger to look like the server", func() bool { return cmdline(stranger.Process.Pid) == want })

	k.hob("down")
	select {
	case err := <-ended:
		ended <- err
		t.Fatalf("the stranger has ended: %v", err)
	default:
	}
	for _, r := range k.reports("pilot/chat") {
		k.seeNamed(r, stranger.Process.Pid)
	}
}

// TestRehearsedWorkersOutliveTheirServer: what vLLM's workers do when their
// server is killed, its stand-in's do too, and a stop finds them.
func TestRehearsedWorkersOutliveTheirServer(t *testing.T) {
	k := newKitchen(t)
	k.hob("up", "--rehearse", "vllm/hob.yaml")
	server := *k.task("llm").PID
	var workers []int
	for _, pid := range below(server) {
		if strings.HasPrefix(cmdline(pid), "VLLM::Worker_TP") {
			workers = append(workers, pid)
		}
	}
	if len(workers) != 2 {
		t.Fatalf("%d workers, the recipe has a tensor-parallel size of 2", len(workers))
	}
	k.kill("llm", server)
	for _, pid := range workers {
		if cmdline(pid) == "" {
			t.Fatal("a worker did not survive its server")
		}
	}
	k.hob("down")
	fates, titles := map[int]string{}, map[int][]string{}
	for _, r := range k.reports("vllm/llm") {
		for _, m := range r.Members {
			fates[m.PID], titles[m.PID] = m.Fate, m.Args
		}
	}
	for rank, pid := range workers {
		if want := "VLLM::Worker_TP" + strconv.Itoa(rank); len(titles[pid]) != 1 || titles[pid][0] != want {
			t.Errorf("worker %d is reported as %q, want %q alone", pid, titles[pid], want)
		}
		if cmdline(pid) != "" {
			t.Errorf("worker %d is alive after down", pid)
		}
		if fates[pid] != "terminated" && fates[pid] != "killed" {
			t.Errorf("worker %d: fate %q", pid, fates[pid])
		}
	}
}
