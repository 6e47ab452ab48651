package convert_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hob/recipes"
	"hob/recipes/convert"
)

// Parts of commands in which a token may stand.
var secretive = []string{"HF_TOKEN=" + planted, "--api-key " + planted, "--hf-token=" + planted, "'" + planted + "'", "\"Bearer " + planted + "\"",
	"https://u:" + planted + "@h/x", "OPENAI_API_KEY='" + planted + "'", "env HF_TOKEN=" + planted + " vllm", "export HF_TOKEN=" + planted + "; vllm serve x", "$(echo " + planted + ")"}

// TestAnyCookbook: whatever stands in a state file, each recipe that is made of it
// loads, no token is shown or stands in a recipe, and each entry without a recipe is
// named as dropped.
func TestAnyCookbook(t *testing.T) {
	part := rapid.OneOf(rapid.SampledFrom(texts), rapid.SampledFrom(secretive), rapid.SampledFrom([]string{"vllm serve m", "--port 8001", "|", "&&", "tee log", "ollama serve"}))
	keys := []string{"sessionId", "id", "name", "modelId", "repoId", "type", "status", "platform", "remoteHost", "ts", "port", "_gpus", "_env", "_envPath", "gpus", "x", "_x", "pid", "host"}
	rapid.Check(t, func(t *rapid.T) {
		task := map[string]any{}
		for range rapid.IntRange(0, 6).Draw(t, "keys") {
			task[rapid.SampledFrom(keys).Draw(t, "key")] = rapid.OneOf(rapid.Map(rapid.SampledFrom(texts), func(s string) any { return s }),
				rapid.SampledFrom([]any{nil, true, 7, "download", "serve", "venv", "~/v", "conda", "0,1", []any{1}, map[string]any{"a": 1}})).Draw(t, "value")
		}
		task["payload"] = map[string]any{"_cmd": strings.Join(rapid.SliceOfN(part, 0, 5).Draw(t, "command"), " ")}
		text, err := json.Marshal(map[string]any{"tasks": []any{task}, "presets": []any{task}})
		if err != nil {
			t.Fatal(err)
		}
		s, err := convert.ReadCookbook("f", text)
		if err != nil {
			t.Fatal(err)
		}
		if said, err := json.Marshal(s.Dropped); err != nil || strings.Contains(string(said), planted) {
			t.Fatalf("%v: said: %s", err, said)
		}
		for _, e := range s.Entries {
			judge(t, s, e)
		}
	})
}

func judge(t *rapid.T, s *convert.State, e convert.Entry) {
	shown, err := json.Marshal(e)
	if err != nil || strings.Contains(string(shown), planted) {
		t.Fatalf("%v: shown: %s", err, shown)
	}
	if hidden := strings.Join(convert.Hide(e.Args), " "); strings.Contains(hidden, planted) {
		t.Fatalf("shown: %s", hidden)
	}
	if e.Recipe == nil {
		if !slices.ContainsFunc(s.Dropped, func(n convert.Note) bool { return n.What == e.What }) {
			t.Fatalf("%s has no recipe, and nobody says why: %v", e.What, s.Dropped)
		}
		return
	}
	if strings.Contains(e.Recipe.Text, planted) {
		t.Fatalf("the token stands in\n%s", e.Recipe.Text)
	}
	load := strings.ReplaceAll(e.Recipe.Text, "env_file: "+convert.SecretsFile, "env: {}") // it is not there
	if strings.Contains(e.Recipe.Text, "\n    env:") {
		load = strings.ReplaceAll(e.Recipe.Text, "    env_file: "+convert.SecretsFile+"\n", "")
	}
	if _, err := recipes.LoadText(filepath.Join("/x", "hob.yaml"), []byte(load), recipes.Options{Getenv: func(string) string { return "v" }}); err != nil {
		t.Fatalf("%v\n%s", err, e.Recipe.Text)
	}
}
