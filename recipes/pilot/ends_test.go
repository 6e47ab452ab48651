package pilot

import (
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"hob/identity"
)

// termBelow ends a server whose launcher passes nothing on: TERM ends the launcher
// alone, and the server answers until it has its own.
func (r *running) termBelow(server process) {
	r.t.Helper()
	if code := r.term(); code != -1 {
		r.t.Errorf("exit code %d of a launcher that TERM ends", code)
	}
	r.untilAnswers()
	signalStray(r.t, server, syscall.SIGTERM)
}

func first(values []string) string { return strings.Join(values, "") }

// has reports whether a process of that title, or one that says it is so titled, is among them.
func has(all []process, title string) bool {
	return slices.ContainsFunc(all, func(p process) bool {
		return p.title == title || strings.HasSuffix(p.title, "--title "+title)
	})
}

func TestWorkersOutliveAServerThatIsKilled(t *testing.T) {
	for _, c := range []struct {
		name, worker string
		args         []string
		stays        bool
	}{
		{"vllm", "VLLM::Worker_TP0", []string{"--shape", "vllm", "--workers", "2"}, true},
		{"vllm on one GPU", "VLLM::EngineCore", []string{"--shape", "vllm"}, true},
		{"ollama", "ollama runner", []string{"--shape", "ollama"}, true},
		{"while loading", "VLLM::EngineCore", []string{"--shape", "vllm", "--load-time", "1h"}, true},
		{"not asked to", "a worker", []string{"--worker", "a worker", "--retitle"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := startPilot(t, c.args...)
			if c.name != "while loading" {
				r.untilAnswers()
			}
			var worker process
			var below []process
			r.until("the worker", func() bool {
				below = tree(t, r.cmd.Process.Pid)
				i := slices.IndexFunc(below, func(p process) bool { return p.title == c.worker })
				if i >= 0 {
					worker = below[i]
				}
				return i >= 0
			})
			if err := r.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			r.exit()
			r.until("the worker to be an orphan or to end", func() bool {
				p, ok := look(worker.pid)
				return !ok || c.stays && p.parent != worker.parent
			})
			if alive(worker) != c.stays {
				t.Errorf("the worker lives: %v, want %v", !c.stays, c.stays)
			}
			if c.stays {
				endStray(t, worker)
				endRest(t, below, worker)
			}
		})
	}
}

// endRest ends what else of a tree outlives its server.
func endRest(t *testing.T, below []process, but process) {
	t.Helper()
	for _, p := range below {
		if now, ok := look(p.pid); ok && p.pid != but.pid && strings.HasPrefix(p.title, "VLLM::Worker") && now.title == p.title {
			endStray(t, p)
		}
	}
}

// endStray ends a process that this test's pilot left.
func endStray(t *testing.T, p process) {
	t.Helper()
	signalStray(t, p, syscall.SIGKILL)
}

// signalStray signals a process of this test's pilot: pinned, and looked at once
// more under the pin.
func signalStray(t *testing.T, p process, sig syscall.Signal) {
	t.Helper()
	host, err := identity.Local()
	if err != nil {
		t.Fatal(err)
	}
	stray, err := host.Open(p.pid)
	if err != nil {
		t.Fatal(err)
	}
	defer stray.Close()
	if now, ok := look(p.pid); !ok || now.title != p.title {
		t.Fatalf("%s has ended; pid %d is %q now", p.title, p.pid, now.title)
	}
	if err := stray.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

func TestSecondTermLeaksWorkers(t *testing.T) {
	r := startPilot(t, "--shape", "vllm", "--workers", "2", "--shutdown-time", "1h")
	r.untilAnswers()
	below := tree(t, r.cmd.Process.Pid)
	worker := below[len(below)-1]
	_ = r.cmd.Process.Signal(os.Interrupt)
	r.untilLog("shutting down")
	if code := r.term(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	r.until("the core to end", func() bool { return !alive(below[0]) })
	if !alive(worker) {
		t.Error("the worker was not leaked")
	}
	endStray(t, worker)
	endRest(t, below, worker)
}

func TestDrain(t *testing.T) {
	for _, c := range []struct {
		drain    string
		finishes bool
	}{{"30s", true}, {"0s", false}} {
		r := startPilot(t, "--drain", c.drain, "--answer-time", "1s")
		r.untilHealthy()
		answered := make(chan error, 1)
		go func() {
			answered <- question{url: r.url, model: "pilot", timeout: patience}.ask(io.Discard, "Hello")
		}()
		r.untilLog("/v1/chat/completions: ")
		if code := r.term(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if err := <-answered; (err == nil) != c.finishes {
			t.Errorf("drain %s: the request in hand came to: %v", c.drain, err)
		}
	}
}

func TestWorkersOfTheirOwn(t *testing.T) {
	r := startPilot(t, "--workers", "3", "--detach-workers", "--ignore-hup", "--ignore-term", "--memory", "20000000")
	r.untilAnswers()
	below := tree(t, r.cmd.Process.Pid)
	if len(below) != 4 {
		t.Fatalf("the tree: %v", below)
	}
	for _, p := range below[1:] {
		if p.session != p.pid {
			t.Errorf("%s is in session %d", p.title, p.session)
		}
		status, _ := os.ReadFile("/proc/" + itoa(p.pid) + "/status")
		if ignored := field(string(status), "SigIgn"); !ignores(ignored, 1) || !ignores(ignored, 15) {
			t.Errorf("%s ignores signals %s", p.title, ignored)
		}
		if rss := field(string(status), "VmRSS"); len(strings.Fields(rss)[0]) < 5 {
			t.Errorf("%s holds %s", p.title, rss)
		}
	}
}

func TestServerEndsWhenAWorkerDoes(t *testing.T) {
	r := startPilot(t, "--workers", "2")
	r.untilAnswers()
	below := tree(t, r.cmd.Process.Pid)
	endStray(t, below[len(below)-1])
	if code := r.exit(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	r.until("the whole tree to end", func() bool { return !slices.ContainsFunc(below, alive) })
}
