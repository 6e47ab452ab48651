package recipes

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every built-in engine is whole: each fact with its source, and nothing wrong.
func TestEnginesAreWhole(t *testing.T) {
	for _, name := range EngineNames("") {
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

// sourced are the facts that are only true of an engine because somebody says so.
var sourced = []string{"command", "model_flag", "port", "env", "ready", "stop", "gpus", "drain", "progress", "tree"}

func checkFacts(t *testing.T, e *engine) {
	for _, fact := range sourced {
		if e.tree.has(fact) && len(e.tree.get("sources").get(fact).words()) == 0 {
			t.Errorf("no source of %s", fact)
		}
	}
	for _, p := range e.tree.get("sources").pairs {
		if !slices.Contains(sourced, p.key.raw) {
			t.Errorf("a source of %s, which is no fact", p.key.raw)
		}
		for _, page := range p.value.words() {
			if !strings.HasPrefix(page, "https://") {
				t.Errorf("the source of %s is no page: %s", p.key.raw, page)
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
	for _, name := range append([]string{""}, EngineNames("")...) {
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
	found := Diagnose(engine, lines)
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
	for _, name := range append([]string{"", "no-such-engine"}, EngineNames("")...) {
		if found := Diagnose(name, good); len(found) != 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestDiagnosisNamesTheCauseOnce(t *testing.T) {
	line := "Error: listen tcp 127.0.0.1:11434: bind: address already in use"
	found := Diagnose("ollama", []string{line, "x", line})
	if len(found) != 1 || found[0].Engine != "ollama" || !strings.HasPrefix(found[0].Cause, "127.0.0.1:11434 is taken") {
		t.Errorf("found %+v", found)
	}
}
