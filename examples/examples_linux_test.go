// Package examples_test runs every example with the real hob: real tmux, real
// processes, real completions.
package examples_test

import (
	"flag"
	"fmt"
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
