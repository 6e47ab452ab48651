package recipes

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each file of testdata/right has a file beside it that says what it means, with
// the environment (values too, which JSON never shows) and the home of the tests
// taken out.
func TestRightRecipes(t *testing.T) {
	files, err := filepath.Glob("testdata/right/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no right recipes: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { checkRight(t, file, testOptions) })
	}
	t.Run("profile", func(t *testing.T) {
		o := testOptions
		o.Profiles, o.Set = []string{"laptop"}, map[string]string{"model": "set"}
		checkMeaning(t, "testdata/right/composed.yaml", "testdata/right/composed-laptop.json", o)
	})
	t.Run("hooks are not rehearsed", func(t *testing.T) {
		o := testOptions
		o.Rehearse = true
		r, err := Load("testdata/right/hooks.yaml", o)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range r.Tasks {
			hooks := task.Before != nil || task.AfterReady != nil || task.AfterStop != nil
			if hooks != (task.Name == "near" || task.Name == "fetch" || task.Name == "work") {
				t.Errorf("%s has hooks: %v", task.Name, hooks)
			}
		}
	})
	t.Run("rehearsed", func(t *testing.T) {
		o := testOptions
		o.Rehearse = true
		checkMeaning(t, "testdata/right/kinds.yaml", "testdata/right/kinds-rehearsed.json", o)
	})
}

func checkRight(t *testing.T, file string, o Options) {
	checkMeaning(t, file, strings.TrimSuffix(file, ".yaml")+".json", o)
}

func checkMeaning(t *testing.T, file, golden string, o Options) {
	r, err := Load(file, o)
	if err != nil {
		t.Fatal(err)
	}
	got := meaning(t, r)
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s means\n%s\nwant\n%s", file, got, want)
	}
}

// meaning is the recipe in JSON, and under each task its environment.
func meaning(t *testing.T, r *Recipe) []byte {
	t.Helper()
	type task struct {
		Task
		Env []EnvVar `json:"test_env"`
	}
	var all struct {
		Recipe
		Tasks []task `json:"tasks"`
	}
	all.Recipe = *r
	for _, one := range r.Tasks {
		all.Tasks = append(all.Tasks, task{one, one.Env})
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	home, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.ReplaceAll(text, []byte(home), []byte("@")), '\n')
}

// Values of the environment stand in neither JSON nor errors.
func TestSecretsStayOut(t *testing.T) {
	r, err := Load("testdata/right/words.yaml", testOptions)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("hf_s3cret")) {
		t.Errorf("JSON holds the value of a variable: %s", text)
	}
	files, _ := filepath.Glob("testdata/wrong/*.yaml")
	for _, file := range files {
		_, err := Load(file, testOptions)
		if err == nil || strings.Contains(err.Error(), "hf_s3cret") {
			t.Errorf("%s: %v", file, err)
		}
	}
}
