// Package examples_test runs every example with the real hob: real tmux, real
// processes, real completions.
package examples_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const patience = 60 * time.Second

// bin is the folder with the hob under test.
var bin string

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", "6") // servers that load and stops are waited for, and need no processor
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	var err error
	if bin, err = os.MkdirTemp("", "hob-bin"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(bin)
	build := exec.Command("go", "build", "-trimpath", "-o", bin, "../cmd/hob")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build hob: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// kitchen is a hob with a state folder and a tmux server of its own.
type kitchen struct {
	t    *testing.T
	root string // everything is in here; short, since a socket is
	env  []string
}

func newKitchen(t *testing.T, env ...string) *kitchen {
	t.Helper()
	root, err := os.MkdirTemp("/tmp", "hob-ex")
	if err != nil {
		t.Fatal(err)
	}
	k := &kitchen{t: t, root: root}
	for _, dir := range []string{"run", "home", "tmp"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	k.env = append(os.Environ(),
		"HOB_HOME="+root+"/state", "XDG_RUNTIME_DIR="+root+"/run", "TMPDIR="+root+"/tmp",
		"SHELL=/bin/sh", "PATH="+bin+":"+os.Getenv("PATH"))
	k.env = append(k.env, env...)
	t.Cleanup(k.cleanUp)
	return k
}

// cleanUp stops what still runs, and fails the test for what outlives that.
func (k *kitchen) cleanUp() {
	if out, code := k.try("down", "--all", "--quiet"); code != 0 && k.leftovers() != nil {
		k.t.Errorf("hob down --all: exit code %d\n%s", code, out)
	}
	if !k.within(func() bool { return k.leftovers() == nil }) {
		k.t.Errorf("left behind: %v", k.leftovers())
		return
	}
	if err := os.RemoveAll(k.root); err != nil {
		k.t.Error(err)
	}
}

// leftovers are the processes that have this kitchen in their environment.
func (k *kitchen) leftovers() (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environ, _ := os.ReadFile(file) // those that end meanwhile are no leftovers
		if bytes.Contains(environ, []byte("HOB_HOME="+k.root)) {
			args, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			found = append(found, filepath.Base(filepath.Dir(file))+" "+string(bytes.ReplaceAll(args, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// within waits for a condition, and reports whether it came.
func (k *kitchen) within(ok func() bool) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return ok()
}

func (k *kitchen) until(what string, ok func() bool) {
	k.t.Helper()
	if !k.within(ok) {
		out, _ := k.try("ps")
		k.t.Fatalf("waited in vain for %s\n%s", what, out)
	}
}

// try runs hob and returns all its output and its exit code.
func (k *kitchen) try(args ...string) (string, int) {
	cmd := exec.Command(filepath.Join(bin, "hob"), args...)
	cmd.Env = k.env
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		k.t.Errorf("hob %v: %v", args, err)
		return "", -1
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// hob runs hob, which must succeed, and returns its standard output.
func (k *kitchen) hob(args ...string) string {
	k.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "hob"), args...)
	cmd.Env = k.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		k.t.Fatalf("hob %s: %v\n%s%s%s", strings.Join(args, " "), err, out, &stderr, k.logs())
	}
	return string(out)
}

// logs are the ends of all logs, to say more of a failure.
func (k *kitchen) logs() string {
	var all strings.Builder
	files, _ := filepath.Glob(k.root + "/state/runs/*/tasks/*/log")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		fmt.Fprintf(&all, "--- %s\n%s", strings.TrimPrefix(file, k.root), text[max(0, len(text)-2000):])
	}
	return all.String()
}

// task is what these tests read of `hob ps --json`.
type task struct {
	Run   string  `json:"run"`
	Task  string  `json:"task"`
	Kind  string  `json:"kind"`
	State string  `json:"state"`
	PID   *int    `json:"pid"`
	URL   *string `json:"url"`
}

func (k *kitchen) ps() (list []task) {
	k.t.Helper()
	if out := k.hob("ps", "--json"); json.Unmarshal([]byte(out), &list) != nil {
		k.t.Fatalf("hob ps --json: %s", out)
	}
	return list
}

// task is one task; it must be there.
func (k *kitchen) task(name string) task {
	k.t.Helper()
	for _, t := range k.ps() {
		if t.Task == name {
			return t
		}
	}
	k.t.Fatalf("hob ps does not know %s", name)
	return task{}
}

// report is what these tests read of `hob report --json`.
type report struct {
	Task    string `json:"task"`
	Reason  string `json:"reason"`
	Verdict string `json:"verdict"`
	Members []struct {
		PID      int      `json:"pid"`
		Args     []string `json:"args"`
		Evidence []string `json:"evidence"`
		Signals  []string `json:"signals"`
		Fate     string   `json:"fate"`
	} `json:"members"`
	Lookalikes []struct {
		PID int      `json:"pid"`
		Why []string `json:"why"`
	} `json:"lookalikes"`
}

func (k *kitchen) reports(args ...string) (list []report) {
	k.t.Helper()
	out := k.hob(append([]string{"report", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		k.t.Fatalf("hob report --json: %v\n%s", err, out)
	}
	return list
}

// complete gets a chat completion from a server.
func (k *kitchen) complete(url, model, prompt string) string {
	k.t.Helper()
	body, err := json.Marshal(map[string]any{"model": model, "messages": []any{map[string]any{"role": "user", "content": prompt}}})
	if err != nil {
		k.t.Fatal(err)
	}
	client := http.Client{Timeout: patience}
	response, err := client.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		k.t.Fatalf("%v\n%s", err, k.logs())
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if json.Unmarshal(text, &answer) != nil || len(answer.Choices) != 1 {
		k.t.Fatalf("%s: %s", response.Status, text)
	}
	return strings.TrimSpace(answer.Choices[0].Message.Content)
}

// answers reports whether something answers at url.
func (k *kitchen) answers(url string) bool {
	response, err := http.Get(url)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// example is how a folder's recipe is run, and what must be seen.
type example struct {
	rehearse bool
	env      string               // NAME=FOLDER, a folder within the test's own
	asks     map[string][2]string // server: model, what it answers to "What is a recipe?"
	logs     map[string]string    // task: what its log has
	after    map[string]string    // the same, once it is stopped
}

const recipeAnswer = "A recipe is a YAML file that names the servers, jobs and shells of a piece of work."

var examples = map[string]example{
	"pilot": {
		asks: map[string][2]string{"chat": {"pilot", recipeAnswer}},
		logs: map[string]string{"pantry": "enough of everything", "chat": "loading shards: 100% (3/3)"},
	},
	"two-servers": {
		asks: map[string][2]string{"chat": {"chat", recipeAnswer}, "rerank": {"rerank", recipeAnswer}},
		logs: map[string]string{"ask": "rerank says: " + recipeAnswer},
	},
	"hooks": {
		asks:  map[string][2]string{"llm": {"warm", recipeAnswer}},
		logs:  map[string]string{"llm": recipeAnswer},
		after: map[string]string{"llm": "llm of hooks is stopped"},
	},
	"download-then-serve": {
		env:  "MODELS=models",
		asks: map[string][2]string{"chat": {"proverbs", "A watched pot is in somebody's way."}},
		logs: map[string]string{"fetch": "downloaded "},
	},
	"vllm": {
		rehearse: true,
		asks:     map[string][2]string{"llm": {"Qwen/Qwen3-8B", recipeAnswer}},
		logs:     map[string]string{"llm": "Application startup complete."},
	},
	"llama-server": {
		rehearse: true,
		asks:     map[string][2]string{"llm": {"ggml-org/gemma-3-4b-it-GGUF", recipeAnswer}},
		logs:     map[string]string{"llm": "listening on http://127.0.0.1:"},
	},
}

// elsewhere are the examples with a test of their own.
var elsewhere = []string{"ollama"}

func TestEveryExampleIsRunAndExplained(t *testing.T) {
	files, err := filepath.Glob("*/hob.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		name := filepath.Dir(file)
		if _, ok := examples[name]; !ok && !slices.Contains(elsewhere, name) {
			t.Errorf("%s is run by no test", name)
		}
		if readme, _ := os.ReadFile(name + "/README.md"); len(readme) < 200 {
			t.Errorf("%s/README.md does not say what one sees", name)
		}
	}
}

func TestExamples(t *testing.T) {
	for name, e := range examples {
		t.Run(name, func(t *testing.T) {
			k := newKitchen(t)
			if name, folder, ok := strings.Cut(e.env, "="); ok {
				k.env = append(k.env, name+"="+k.root+"/"+folder)
			}
			recipe := name + "/hob.yaml"
			k.hob("check", recipe)
			up := []string{"up", recipe}
			if e.rehearse {
				up = append(up, "--rehearse")
			}
			k.hob(up...)
			k.seeTasks(e)
			k.hob("down")
			k.seeReports()
			for task, line := range e.after {
				if log := k.hob("logs", name+"/"+task); !strings.Contains(log, line) {
					t.Errorf("the log of %s lacks %q:\n%s", task, line, log)
				}
			}
		})
	}
}

// seeTasks checks that every task is what it should be once up has returned.
func (k *kitchen) seeTasks(e example) {
	k.t.Helper()
	k.untilJobsEnd()
	want := map[string]string{"server": "ready", "job": "completed", "shell": "ready"}
	for _, t := range k.ps() {
		if t.State != want[t.Kind] {
			k.t.Errorf("%s %s is %s, want %s\n%s", t.Kind, t.Task, t.State, want[t.Kind], k.logs())
		}
		if ask, ok := e.asks[t.Task]; ok && t.URL != nil {
			if got := k.complete(*t.URL, ask[0], question(ask[1])); got != ask[1] {
				k.t.Errorf("%s answers %q, want %q", t.Task, got, ask[1])
			}
		} else if ok {
			k.t.Errorf("%s has no URL", t.Task)
		}
		if line := e.logs[t.Task]; line != "" {
			k.until(fmt.Sprintf("%q in the log of %s", line, t.Task), func() bool {
				return strings.Contains(k.hob("logs", t.Run+"/"+t.Task), line)
			})
		}
	}
}

// untilJobsEnd waits for the jobs that nothing depends on, for which up does not wait.
func (k *kitchen) untilJobsEnd() {
	k.t.Helper()
	k.until("the jobs to end", func() bool {
		return !slices.ContainsFunc(k.ps(), func(t task) bool {
			return t.Kind == "job" && t.State != "completed" && t.State != "failed"
		})
	})
}

func question(answer string) string {
	if answer == recipeAnswer {
		return "What is a recipe?"
	}
	return "What do cooks say?"
}

// seeReports checks that the stop left nothing.
func (k *kitchen) seeReports() {
	k.t.Helper()
	list := k.reports()
	if len(list) == 0 {
		k.t.Error("there is no report")
	}
	for _, r := range list {
		if r.Verdict != "clean" {
			k.t.Errorf("%s: %+v", r.Task, r)
		}
	}
	k.until("everything to be gone", func() bool { return k.leftovers() == nil })
}
