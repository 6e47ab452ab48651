package pilot

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// get is the status of a GET; 0 when nobody answers.
func (r *running) get(path string) int {
	response, err := http.Get(r.url + path)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

// post is the status and body of a POST.
func (r *running) post(path, body string) (int, string) {
	r.t.Helper()
	response, err := http.Post(r.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func (r *running) untilHealthy() {
	r.t.Helper()
	r.until("health 200", func() bool { return r.get("/health") == http.StatusOK })
}

// untilAnswers waits for a real completion.
func (r *running) untilAnswers() {
	r.t.Helper()
	r.until("a completion", func() bool {
		var out bytes.Buffer
		err := question{url: r.url, model: "pilot", timeout: patience}.ask(&out, "Count to five")
		return err == nil && out.String() == "One, two, three, four, five.\n"
	})
}

func TestEveryShapeAnswersAndEndsWhenAsked(t *testing.T) {
	for _, name := range shapeNames() {
		t.Run(name, func(t *testing.T) {
			r := startPilot(t, "--shape", name, "--", name, "-tp", "2")
			r.untilAnswers()
			r.untilHealthy()
			below := tree(t, r.cmd.Process.Pid)
			if want := strings.ReplaceAll(first(shapes[name]["worker"]), "%d", "1"); want != "" && !has(below, want) {
				t.Errorf("%q is not in the tree: %v", want, below)
			}
			if _, mute := shapes[name]["mute-launcher"]; mute {
				r.termBelow(below[0])
			} else if code := r.term(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			r.until("the whole tree to end", func() bool { return !slices.ContainsFunc(below, alive) })
		})
	}
}

func TestShapesAreFlags(t *testing.T) {
	for name, s := range shapes {
		var o options
		f := pflag.NewFlagSet(name, pflag.ContinueOnError)
		o.add(f)
		if err := s.apply(f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGivenFlagsWinOverTheShape(t *testing.T) {
	var o options
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.add(f)
	if err := f.Parse([]string{"--shape", "vllm", "--worker", "w", "--late-listen=false"}); err != nil {
		t.Fatal(err)
	}
	if err := o.settle(f, []string{"vllm", "serve", "--tensor-parallel-size=4"}); err != nil {
		t.Fatal(err)
	}
	if o.Worker != "w" || o.LateListen || !o.Retitle || o.Workers != 4 {
		t.Errorf("%+v", o)
	}
}

// On one GPU there are other processes than on several.
func TestALoneWorker(t *testing.T) {
	for _, c := range []struct{ shape, args, worker string }{
		{"vllm", "--shape vllm", ""},
		{"vllm", "--shape vllm --workers 2", "VLLM::Worker_TP%d"},
		{"vllm", "--shape vllm --worker w", "w"},
		{"sglang", "--shape sglang", "sglang::scheduler"},
		{"sglang", "--shape sglang --workers 2", "sglang::scheduler_TP%d"},
		{"ollama", "--shape ollama", "ollama runner"},
	} {
		var o options
		f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		o.add(f)
		if err := f.Parse(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		if err := o.settle(f, nil); err != nil {
			t.Fatal(err)
		}
		if o.Worker != c.worker {
			t.Errorf("%s: worker %q, want %q", c.args, o.Worker, c.worker)
		}
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"--shape", "nonesuch"}, {"--workers", "0"}, {"stray"}, {"--port", "x"}, {"--route", "/{"}} {
		r := startPilot(t, args...)
		if code := r.exit(); code != 2 {
			t.Errorf("%v: exit code %d", args, code)
		}
		r.untilLog("hob: pilot: ")
	}
}

func TestLoading(t *testing.T) {
	const slow = "--load-time=1h"
	for _, c := range []struct {
		name   string
		args   []string
		health int
	}{
		{"answers 503", []string{slow}, http.StatusServiceUnavailable},
		{"is healthy early", []string{slow, "--early-health"}, http.StatusOK},
		{"listens late", []string{slow, "--late-listen"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := startPilot(t, c.args...)
			r.until("the health of loading", func() bool { return r.get("/health") == c.health })
			if c.health != 0 {
				if status, _ := r.post("/v1/completions", `{"prompt":"A"}`); status != http.StatusServiceUnavailable {
					t.Errorf("a completion while loading: %d", status)
				}
			}
			r.until("core and worker", func() bool { return len(tree(t, r.cmd.Process.Pid)) == 2 })
			below := tree(t, r.cmd.Process.Pid)
			if code := r.term(); code != 143 {
				t.Errorf("TERM while loading: exit code %d", code)
			}
			r.until("the whole tree to end", func() bool { return !slices.ContainsFunc(below, alive) })
		})
	}
}

func TestFailureWhileLoading(t *testing.T) {
	for _, shape := range []string{"pilot", "vllm", "llama-server", "tgi"} {
		r := startPilot(t, "--shape", shape, "--fail", "CUDA out of memory. Tried to allocate 2.00 GiB", "--fail-code", "7")
		if code := r.exit(); code != 7 {
			t.Errorf("%s: exit code %d", shape, code)
		}
		r.untilLog("CUDA out of memory. Tried to allocate 2.00 GiB")
	}
}

func TestModelFromFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "model.txt")
	for _, shape := range []string{"vllm", "llama-server"} {
		missing := startPilot(t, "--shape", shape, "--text", file+"-")
		if code := missing.exit(); code != 1 {
			t.Errorf("%s without its file: exit code %d", shape, code)
		}
		missing.untilLog("load the model: open " + file)
	}
	if err := os.WriteFile(file, []byte("Who?\tNobody but me.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := startPilot(t, "--text", file, "--workers", "2")
	r.untilHealthy()
	if _, body := r.post("/v1/chat/completions", `{"messages":[{"role":"user","content":"Who?"}]}`); !strings.Contains(body, "Nobody but me.") {
		t.Error(body)
	}
}

func TestPortTaken(t *testing.T) {
	r := startPilot(t)
	r.untilHealthy()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(r.url, "http://"))
	second := startPilot(t, "--port", port)
	if code := second.exit(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	second.untilLog("couldn't bind HTTP server socket")
	second.untilLog("address already in use")
}

func TestSharedPort(t *testing.T) {
	r := startPilot(t, "--reuse-port")
	r.untilHealthy()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(r.url, "http://"))
	second := startPilot(t, "--port", port, "--reuse-port")
	second.untilLog("ready")
}

func TestSilentPort(t *testing.T) {
	r := startPilot(t, "--silent-port")
	r.untilLog("ready")
	if status := r.get("/health"); status != 0 {
		t.Errorf("health %d", status)
	}
}

func TestBlockedCompletions(t *testing.T) {
	r := startPilot(t, "--block-completions")
	r.untilHealthy()
	answered := make(chan error, 1)
	go func() {
		answered <- question{url: r.url, model: "pilot", timeout: patience}.ask(io.Discard, "Hello")
	}()
	r.untilLog("/v1/chat/completions: ")
	if status := r.get("/health"); status != http.StatusOK {
		t.Errorf("health beside a blocked completion: %d", status)
	}
	r.term()
	if err := <-answered; err == nil {
		t.Error("the blocked completion was answered")
	}
}

func TestRetitleWipesTheEnvironmentAsSetproctitleDoes(t *testing.T) {
	for _, noenv := range []string{"", "1"} {
		t.Setenv("SPT_NOENV", noenv)
		t.Setenv("PILOT_MARKER", "here")
		r := startPilot(t, "--shape", "vllm")
		r.untilAnswers()
		for _, p := range tree(t, r.cmd.Process.Pid) {
			environ, err := os.ReadFile("/proc/" + itoa(p.pid) + "/environ")
			if err != nil {
				t.Fatal(err)
			}
			if kept := bytes.Contains(environ, []byte("PILOT_MARKER=here")); kept != (noenv != "") {
				t.Errorf("SPT_NOENV=%q: %s keeps its environment: %v", noenv, p.title, kept)
			}
			comm, _ := os.ReadFile("/proc/" + itoa(p.pid) + "/comm")
			if want := p.title[:15] + "\n"; string(comm) != want {
				t.Errorf("%s: comm is %q, want %q", p.title, comm, want)
			}
		}
		r.term()
	}
}
