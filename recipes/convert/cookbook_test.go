package convert_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hob/recipes"
	"hob/recipes/convert"
)

const planted = "hf_PlantedToken0123456789"

// TestCookbook: a state file with one of each, held against what is written down
// here, loaded by the recipes' own reader, and searched for the planted token.
func TestCookbook(t *testing.T) {
	text, err := os.ReadFile("testdata/cookbook/cookbook_state.json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := convert.ReadCookbook("cookbook_state.json", text)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(shown), planted) {
		t.Errorf("the token is shown:\n%s", shown)
	}
	got := map[string]string{}
	for _, e := range s.Entries {
		if e.Recipe == nil {
			continue
		}
		if strings.Contains(e.Recipe.Text, planted) {
			t.Errorf("the token stands in the recipe %s:\n%s", e.Recipe.Name, e.Recipe.Text)
		}
		if (e.Recipe.Secrets != "") != (e.Recipe.Moved > 0) {
			t.Errorf("%s: %+v", e.Name, e.Recipe)
		}
		got[e.Recipe.Name] = e.Recipe.Text
		check(t, e.Recipe)
	}
	golden := filepath.Join("testdata", "cookbook")
	for name, text := range got {
		file := filepath.Join(golden, name+".yaml")
		if os.Getenv("HOB_GOLDEN") == "-u" {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(want) != text {
			t.Errorf("%s: %v\n%s", file, err, text)
		}
	}
	files, _ := filepath.Glob(filepath.Join(golden, "*.yaml"))
	if len(files) != len(got) || len(got) < 5 {
		t.Errorf("%d recipes, and %d are written down", len(got), len(files))
	}
	dropped := map[string]bool{}
	for _, n := range s.Dropped {
		dropped[n.What] = true
	}
	for _, what := range []string{"serveState", "scheduler", "env.hfToken", "env.servers", "tasks[0].payload._fields", "tasks[0]._scheduledStopAtMs",
		"tasks[4]", "tasks[5]", "tasks[6]", "tasks[7].mystery", "tasks", "presets[1]"} {
		if !dropped[what] {
			t.Errorf("%s is not named as dropped: %v", what, s.Dropped)
		}
	}
}

// check loads a recipe as hob check does, with its secrets beside it.
func check(t *testing.T, m *convert.Made) {
	t.Helper()
	dir := t.TempDir()
	if m.Secrets != "" {
		if err := os.WriteFile(filepath.Join(dir, convert.SecretsFile), []byte(m.Secrets), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := recipes.LoadText(filepath.Join(dir, "hob.yaml"), []byte(m.Text), recipes.Options{Getenv: func(name string) string {
		return map[string]string{"HOME": "/home/u", "PATH": "/bin"}[name]
	}})
	if err != nil {
		t.Errorf("%s: %v\n%s", m.Name, err, m.Text)
		return
	}
	if r.Name != m.Name || len(r.Tasks) != 1 {
		t.Errorf("%s: %+v", m.Name, r)
	}
	found := slices.ContainsFunc(r.Tasks[0].Env, func(v recipes.EnvVar) bool { return strings.Contains(v.Value, planted) })
	if found != (m.Secrets != "") {
		t.Errorf("%s: the token is in its environment: %t", m.Name, found)
	}
}

// A file that is not whole, not one, or newer is none, at every byte cut.
func TestCookbookRefuses(t *testing.T) {
	for text, want := range map[string]error{
		"": convert.ErrTorn, "{": convert.ErrTorn, "[]": convert.ErrNotOne, "{}": convert.ErrNotOne, `{"tasks": 3}`: convert.ErrNotOne, `"x"`: convert.ErrNotOne,
		`{"tasks": [], "version": 2}`: convert.ErrNewState, `{"tasks": [], "schema": 9}`: convert.ErrNewState, `{"tasks": []} {}`: convert.ErrTorn, "null": convert.ErrNotOne,
		`{"tasks": []}`: nil, "\ufeff{\"presets\": []}": nil, `{"tasks": [], "version": 1}`: nil,
	} {
		if _, err := convert.ReadCookbook("f", []byte(text)); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	whole, err := os.ReadFile("testdata/cookbook/cookbook_state.json")
	if err != nil {
		t.Fatal(err)
	}
	whole = []byte(strings.TrimSpace(string(whole)))
	for i := range whole {
		if _, err := convert.ReadCookbook("f", whole[:i]); !errors.Is(err, convert.ErrTorn) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}

// A download of nothing but white space has no model, and so no recipe.
func TestCookbookModelOfSpace(t *testing.T) {
	s, err := convert.ReadCookbook("f", []byte(`{"tasks": [{"sessionId": "x", "type": "download", "modelId": "\u2028", "payload": {"_cmd": ""}}]}`))
	if err != nil || len(s.Entries) != 1 || s.Entries[0].Recipe != nil || len(s.Dropped) == 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestHide(t *testing.T) {
	for line, want := range map[string]string{
		"vllm serve m --api-key x --max-tokens 5":  "vllm serve m --api-key … --max-tokens 5",
		"vllm serve m --api-key=x --tokenizer=y":   "vllm serve m --api-key=… --tokenizer=y",
		"env HF_TOKEN=x vllm":                      "env HF_TOKEN=… vllm",
		"curl " + planted:                          "curl …",
		"serve --hf-token " + planted + " --x":     "serve --hf-token … --x",
		"git clone https://u:p@host/x":             "git clone …",
		"llama-server --keyframes 3 --token-limit": "llama-server --keyframes 3 --token-limit",
	} {
		if got := strings.Join(convert.Hide(strings.Fields(line)), " "); got != want {
			t.Errorf("%q: %q", line, got)
		}
	}
	for _, words := range [][]string{
		{"--cookie", "S"}, {"--jwt", "S"}, {"--master-key", "S"}, {"-u", "me:S"}, {"--user", "me:S"}, {"--proxy-user", "me:S"},
		{"-H", "X-Auth-Token: S"}, {"-HCookie: S"}, {"--header", "Authorization: Basic S"}, {"--config", `{"model": "m", "api_key": "S"}`},
	} {
		if got := strings.Join(convert.Hide(append([]string{"curl"}, words...)), " "); strings.Contains(got, "S") {
			t.Errorf("%q: %q", words, got)
		}
	}
	for _, words := range [][]string{{"-u", "1000:1000"}, {"-H", "Accept: text/plain"}, {"--config", `{"model": "m", "max_tokens": "5"}`}, {"--key-cache", "q8"}} {
		if got := convert.Hide(words); got[1] != words[1] {
			t.Errorf("%q: %q", words, got)
		}
	}
	if got := convert.Hide([]string{"sh", "-c", "HF_TOKEN=x vllm serve m"}); got[2] != "…" {
		t.Errorf("%q", got)
	}
	if got := convert.Hide([]string{"sh", "-c", "vllm serve m --port 1"}); got[2] == "…" {
		t.Errorf("%q", got)
	}
}
