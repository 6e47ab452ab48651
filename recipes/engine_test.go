package recipes

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every built-in engine is whole: each fact with its source, and nothing wrong.
func TestEnginesAreWhole(t *testing.T) {
	for _, name := range engineNames() {
		t.Run(name, func(t *testing.T) {
			e, err := builtinEngine(name)
			if err != nil || e == nil {
				t.Fatalf("engine: %v", err)
			}
			for _, fact := range []string{"name", "about", "command", "tree"} {
				if !e.tree.has(fact) {
					t.Errorf("no %s", fact)
				}
			}
			if name != pilotEngine {
				checkFacts(t, e)
			}
		})
	}
}

// The table of engines in language.md has each of them, with what its file says.
func TestLanguageHasEveryEngine(t *testing.T) {
	for _, name := range engineNames() {
		e, err := builtinEngine(name)
		if err != nil {
			t.Fatal(err)
		}
		about, model, port := e.text("about", ""), e.text("model", "required"), e.text("port", "")
		if row := "| `" + name + "` | " + about + " | " + model + " | " + port + " |"; !strings.Contains(Language(), row) {
			t.Errorf("there is no row that begins with %s", row)
		}
	}
}

// sourced are the facts that are only true of an engine because somebody says so.
var sourced = []string{"command", "model_flag", "port", "env", "ready", "stop", "gpus", "cache", "drain", "progress", "tree", "api_key", "says", "expects"}

// page is a source that was opened: where it is, and what it says. An example of
// ours that is run by a test is one too.
var page = regexp.MustCompile(`^(https://\S+|examples/\S+) \(.+\)$`)

// checkFacts wants of each fact where it comes from: a page and what it says, or,
// where nobody has held it against its source yet, that this is said.
func checkFacts(t *testing.T, e *engine) {
	unverified := e.tree.get("unverified").words()
	for _, fact := range sourced {
		if e.tree.has(fact) && len(e.tree.get("sources").get(fact).words()) == 0 {
			t.Errorf("no source of %s", fact)
		}
	}
	for _, fact := range unverified {
		if !e.tree.has(fact) {
			t.Errorf("%s is unverified, and not there", fact)
		}
	}
	for _, p := range e.tree.get("sources").pairs {
		if !slices.Contains(sourced, p.key.raw) || !e.tree.has(p.key.raw) {
			t.Errorf("a source of %s, which is no fact here", p.key.raw)
		}
		for _, source := range p.value.words() {
			if slices.Contains(unverified, p.key.raw) != !page.MatchString(source) {
				t.Errorf("the source of %s does not say what it says, or it does and %[1]s counts as unverified: %s", p.key.raw, source)
			}
		}
	}
	if !e.tree.has("rehearse") {
		t.Error("it cannot be rehearsed")
	}
}

// Each rule of diagnosis explains the real line that it was learnt from, and no
// rule of the same engine before it does.
func TestDiagnosisOfRealLines(t *testing.T) {
	for _, name := range append([]string{""}, engineNames()...) {
		rules := generalRules()
		if name != "" {
			rules = engineRules("", name)
		}
		for _, r := range rules {
			t.Run(name+"/"+r.cause, func(t *testing.T) { checkDiagnosis(t, name, r) })
		}
	}
}

var leftOver = regexp.MustCompile(`\$[0-9]`)

func checkDiagnosis(t *testing.T, engine string, r *diagnosis) {
	if r.example == "" || r.cause == "" || r.fix == "" || !strings.HasPrefix(r.source, "https://") {
		t.Fatalf("not whole: %+v", r)
	}
	lines := []string{"INFO all is well", "\x1b[31m" + r.example + "\x1b[0m\r", "Traceback (most recent call last):"}
	found := DiagnoseIn("", engine, lines)
	if len(found) == 0 || found[0] != r.finding(r.example) {
		t.Errorf("found %+v\nwant  %+v", found, r.finding(r.example))
	}
	if leftOver.MatchString(found[0].Cause + found[0].Fix) {
		t.Errorf("a group is left over: %s / %s", found[0].Cause, found[0].Fix)
	}
}

func TestDiagnosisSaysNothingOfGoodLogs(t *testing.T) {
	good := []string{
		"INFO:     Application startup complete.", "main: server is listening on http://127.0.0.1:8080",
		`time=2024 level=INFO msg="Listening on 127.0.0.1:11434 (version 0.6.5)"`,
		"Loading safetensors checkpoint shards: 100% Completed | 4/4 [00:02<00:00]",
	}
	for _, name := range append([]string{"", "no-such-engine"}, engineNames()...) {
		if found := DiagnoseIn("", name, good); len(found) != 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestDiagnosisNamesTheCauseOnce(t *testing.T) {
	line := "Error: listen tcp 127.0.0.1:11434: bind: address already in use"
	found := DiagnoseIn("", "ollama", []string{line, "x", line})
	if len(found) != 1 || found[0].Engine != "ollama" || !strings.HasPrefix(found[0].Cause, "127.0.0.1:11434 is taken") {
		t.Errorf("found %+v", found)
	}
}

// A person's own engines take precedence, and what is wrong with them is said at
// their own place.
func TestPersonalEngines(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"vllm":  "name: vllm\ncommand: [my-vllm, \"${model}\", \"${port}\"]\nport: 1234\n",
		"mine":  "name: mine\nmodel: none\ncommand: [mine]\ndiagnose:\n  - {line: 'no (.*) left', cause: 'no $1', fix: buy more}\n",
		"other": "name: another\nmodel: none\ncommand: [x]\n",
		"wrong": "name: wrong\ncomand: [x]\nport: many\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := testOptions
	o.EngineDir = dir
	r, err := Load(write(t, "servers: {a: {engine: vllm, model: m}, b: {engine: mine}}"), o)
	if err != nil || !slices.Equal(r.Tasks[0].Command, []string{"my-vllm", "m", "1234"}) || r.Tasks[1].Command[0] != "mine" {
		t.Errorf("tasks %+v: %v", r, err)
	}
	_, err = Load(write(t, "servers: {a: {engine: wrong}, b: {engine: wrong}, c: {engine: other}, d: {engine: min}}"), o)
	want := []string{"hob.yaml:1:83: there is no engine \"min\" (did you mean mine?)", "wrong.yaml:2:1: unknown key \"comand\" (did you mean \"command\"?)",
		"wrong.yaml:3:7: port must be", "other.yaml:1:7: the engine in this file is called \"another\""}
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v\nlacks %s", err, w)
		}
	}
	var errs Errors
	if !errors.As(err, &errs) || len(errs) != len(want) {
		t.Errorf("want %d errors:\n%v", len(want), err)
	}
	if found := DiagnoseIn(dir, "mine", []string{"no beer left"}); len(found) != 1 || found[0].Cause != "no beer" {
		t.Errorf("found %+v", found)
	}
}
