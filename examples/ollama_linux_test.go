package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// installOllama puts a real Ollama first in the kitchen's PATH. It is built once
// and kept between runs.
func (k *kitchen) installOllama() {
	k.t.Helper()
	cmd := exec.Command("ollama/install.sh")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		k.t.Fatalf("ollama/install.sh: %v", err)
	}
	k.env = append(k.env, "PATH="+strings.TrimSpace(string(out))+":"+bin+":"+os.Getenv("PATH"))
}

// ollama is the example while it serves.
type ollama struct {
	server, runner int
}

// serveOllama starts the example and gets a completion, so that the model is loaded.
func (k *kitchen) serveOllama() ollama {
	k.t.Helper()
	k.hob("up", "ollama/hob.yaml")
	k.untilJobsEnd()
	server := k.task("ollama")
	if server.State != "ready" || server.PID == nil || server.URL == nil {
		k.t.Fatalf("after up: %+v", server)
	}
	if got := k.complete(*server.URL, "tiny", "Who are you?"); got != "Hello from a tiny model that runs for real." {
		k.t.Errorf("the model answers %q", got)
	}
	runners := children(*server.PID)
	if len(runners) != 1 || !strings.Contains(cmdline(runners[0]), "runner") {
		k.t.Fatalf("children of ollama serve: %v", runners)
	}
	return ollama{*server.PID, runners[0]}
}

// survived fails the test if there is nothing to sweep.
func (o ollama) survived(t *testing.T) {
	t.Helper()
	if cmdline(o.runner) == "" {
		t.Fatal("the runner did not survive its server")
	}
}

// seeRunnerEnded checks the report of the server: why it was made, and the runner's end.
func (k *kitchen) seeRunnerEnded(o ollama, reason string) report {
	k.t.Helper()
	list := k.reports("ollama/ollama")
	if len(list) != 1 {
		k.t.Fatalf("%d reports of ollama/ollama", len(list))
	}
	r := list[0]
	if r.Reason != reason || r.Verdict != "clean" {
		k.t.Errorf("reason %s, verdict %s; want %s, clean", r.Reason, r.Verdict, reason)
	}
	for _, m := range r.Members {
		if m.PID == o.runner {
			if m.Fate != "terminated" && m.Fate != "killed" || len(m.Signals) == 0 {
				k.t.Errorf("the runner: %+v", m)
			}
			return r
		}
	}
	k.t.Errorf("the report does not name the runner %d: %+v", o.runner, r.Members)
	return r
}

// serveByHand starts an Ollama outside hob, as a user would in another terminal.
func (k *kitchen) serveByHand() *exec.Cmd {
	k.t.Helper()
	port, home := freePort(k.t), k.root+"/by-hand"
	var env []string
	path := ""
	for _, v := range k.env {
		if name, value, _ := strings.Cut(v, "="); name == "PATH" {
			path = value
		} else if !strings.HasPrefix(name, "HOB_") {
			env = append(env, v)
		}
	}
	binary := filepath.Join(strings.Split(path, ":")[0], "ollama")
	cmd := &exec.Cmd{Path: binary, Args: []string{"ollama", "serve"}}
	cmd.Env = append(env, "PATH="+path, "HOME="+home, "OLLAMA_MODELS="+home+"/models", "OLLAMA_HOST=127.0.0.1:"+port)
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	k.until("the Ollama started by hand to answer", func() bool { return k.answers("http://127.0.0.1:" + port) })
	return cmd
}

func TestOllama(t *testing.T) {
	k := newKitchen(t)
	k.installOllama()
	k.env = append(k.env, "OLLAMA_KITCHEN="+k.root+"/kitchen")
	base := k.env

	k.env = append(slices.Clip(base), "OLLAMA_GRACE=5s")
	first := k.serveOllama()
	k.kill("ollama", first.server)
	first.survived(t)
	k.until("the keeper to end the runner", func() bool { return cmdline(first.runner) == "" })
	k.until("the report", func() bool { return len(k.reports("ollama/ollama")) == 1 })
	if got := k.task("ollama").State; got != "failed" {
		t.Errorf("after its server was killed the task is %s", got)
	}
	k.seeRunnerEnded(first, "exited")

	byHand := k.serveByHand()
	k.env = append(slices.Clip(base), "OLLAMA_GRACE=10m")
	second := k.serveOllama()
	k.kill("ollama", second.server)
	second.survived(t)
	k.hob("down", "ollama")
	if cmdline(second.runner) != "" {
		t.Error("the runner is alive after hob down")
	}
	r := k.seeRunnerEnded(second, "down")
	if cmdline(byHand.Process.Pid) != "ollama serve" {
		t.Fatal("the Ollama that was started by hand has ended")
	}
	k.seeNamed(r, byHand.Process.Pid)
}
