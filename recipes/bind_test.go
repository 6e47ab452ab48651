package recipes

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestBind(t *testing.T) {
	r, err := Load("testdata/right/words.yaml", testOptions)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]*Task{}
	for i := range r.Tasks {
		by[r.Tasks[i].Name] = &r.Tasks[i]
	}
	argv, _ := by["split"].BindLate(Late{Port: 4711})
	if got := argv[len(argv)-2:]; !slices.Equal(got, []string{"${port}", "x4711y"}) {
		t.Errorf("late words %q", got)
	}
	_, env := by["env"].BindLate(Late{Port: 1})
	if i := slices.IndexFunc(env, func(v EnvVar) bool { return v.Name == "TOKEN" }); env[i].Value != "hf_s3cret ${port}" {
		t.Errorf("what an env_file says is text: %q", env[i].Value)
	}
	argv, _ = by["ports"].BindLate(Late{Ports: map[string]int{"split": 12}})
	if !slices.Equal(argv, []string{"proxy", "8000", "12"}) {
		t.Errorf("ports of others: %q", argv)
	}
	if got := by["ports"].BindReadyLate(Late{Ports: map[string]int{"split": 12}}).Exec[1]; got != "127.0.0.1:12" {
		t.Errorf("port in exec: %q", got)
	}
	if by["shell"].BindReadyLate(Late{Port: 1}) != nil {
		t.Error("ready without a probe")
	}
}

// Headers of readiness are filled in like the environment, by the task's own port
// and by others', and a task that extends another has its own.
func TestBindHeaders(t *testing.T) {
	o := testOptions
	o.Getenv = func(name string) string { return map[string]string{"TOKEN": "s3cret ${port}"}[name] }
	r, err := Load(write(t, `
servers:
  a: {command: x, port: auto, ready: {http: /, headers: {x-token: "${TOKEN}", X-Port: "${port}", X-Dollar: "$${port}"}}}
  b: {command: x, port: 81, depends_on: [a, c], ready: {completion: true, headers: {X-Others: "${a.port} ${c.port}"}}}
  c: {extends: a, port: 82}`), o)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]Header{
		"a": {{"X-Token", "s3cret ${port}"}, {"X-Port", "80"}, {"X-Dollar", "${port}"}},
		"b": {{"X-Others", "80 82"}},
		"c": {{"X-Token", "s3cret ${port}"}, {"X-Port", "82"}, {"X-Dollar", "${port}"}},
	}
	for _, task := range r.Tasks {
		got := task.BindReadyLate(Late{Port: map[string]int{"a": 80, "b": 81, "c": 82}[task.Name], Ports: map[string]int{"a": 80}})
		if !slices.Equal(got.Headers, want[task.Name]) {
			t.Errorf("%s: %q", task.Name, got.Headers)
		}
	}
	text, err := json.Marshal(r)
	if err != nil || strings.Contains(string(text), "s3cret") || !strings.Contains(string(text), `"headers":["X-Token","X-Port","X-Dollar"]`) {
		t.Errorf("%v: %s", err, text)
	}
}

// What a variable holds is text, even if it looks like a reference.
func TestReferencesInVariables(t *testing.T) {
	o := testOptions
	o.Getenv = func(name string) string { return map[string]string{"LOOKS": "${port} $${port} ${a.port}"}[name] }
	r, err := Load(write(t, `servers: {a: {command: ["${LOOKS}", "${port}"], port: auto, env: {E: "${LOOKS}"}}}`), o)
	if err != nil {
		t.Fatal(err)
	}
	argv, env := r.Tasks[0].BindLate(Late{Port: 80})
	if want := o.Getenv("LOOKS"); argv[0] != want || argv[1] != "80" || env[0].Value != want {
		t.Errorf("argv %q, env %q", argv, env)
	}
}

// Tasks that extend one template are filled in each for itself.
func TestTemplatesAreCopied(t *testing.T) {
	r, err := Load(write(t, `
templates: {t: {command: x, args: ["${port}"], env: {P: "${port}"}}}
servers: {a: {extends: t, port: 1}, b: {extends: t, port: 2}}`), testOptions)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"1", "2"} {
		if task := r.Tasks[i]; task.Command[1] != want || task.Env[0].Value != want {
			t.Errorf("%s: %q %q", task.Name, task.Command, task.Env)
		}
	}
}

// Without chosen GPUs the variable is not there, rather than empty: empty hides all.
func TestBindGPUs(t *testing.T) {
	r, err := Load(write(t, "servers: {a: {command: x, gpus: auto}}"), testOptions)
	if err != nil {
		t.Fatal(err)
	}
	for gpus, want := range map[string]int{"": 1, "1,3": 3} {
		_, env := r.Tasks[0].BindLate(Late{GPUs: gpus})
		if len(env) != want || want == 3 && env[1].Value != gpus {
			t.Errorf("GPUs %q: %v", gpus, env)
		}
	}
}

// What a person writes with every dollar doubled is what the program gets,
// whatever else stands there, and whether the port is known or not.
func TestDollarsSurvive(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.StringMatching(`[a-z ${}.:'"\\]{0,12}(\$\{port\})?[a-z${}]{0,5}`).Draw(t, "text")
		port := rapid.SampledFrom([]string{"auto", "80"}).Draw(t, "port")
		quoted := "'" + strings.ReplaceAll(strings.ReplaceAll(want, "$", "$$"), "'", "''") + "'"
		text := "servers: {a: {command: [x, " + quoted + "], port: " + port + ", env: {E: " + quoted + "}}}"
		r, err := load(newSource("x", dir, []byte(text)), []byte(text), "x", testOptions)
		if err != nil {
			t.Fatal(err)
		}
		argv, env := r.Tasks[0].BindLate(Late{Port: 80})
		if argv[1] != want || env[0].Value != want {
			t.Fatalf("%s became %q and %q", text, argv[1], env[0].Value)
		}
	})
}

func TestSelect(t *testing.T) {
	r, err := Load("testdata/right/composed.yaml", testOptions)
	if err != nil {
		t.Fatal(err)
	}
	for names, want := range map[string]string{
		"":           "base llm-1 llm-2 merged front",
		"merged":     "merged",
		"llm-2":      "base llm-2",
		"llm":        "base llm-1 llm-2",
		"web":        "base llm-1 llm-2 front",
		"chat":       "base llm-1 llm-2 front",
		"merged llm": "base llm-1 llm-2 merged",
	} {
		tasks, err := r.Select(strings.Fields(names)...)
		var got []string
		for _, task := range tasks {
			got = append(got, task.Name)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %v, %v; want %s", names, got, err, want)
		}
	}
	if _, err := r.Select("mergd"); !errors.Is(err, ErrNoTask) || !strings.HasSuffix(err.Error(), "did you mean merged?") {
		t.Error(err)
	}
}

func TestFind(t *testing.T) {
	dir, mine := t.TempDir(), t.TempDir()
	t.Chdir(dir)
	for _, f := range []string{filepath.Join(mine, "mine.yaml"), filepath.Join(mine, "pilot.yaml"), "here.yaml", "sub/hob.yml"} {
		writeFile(t, f)
	}
	for arg, want := range map[string]string{
		"here.yaml": "here.yaml", "sub": "sub/hob.yml", "sub/": "sub/hob.yml", "mine": filepath.Join(mine, "mine.yaml"),
		"pilot": filepath.Join(mine, "pilot.yaml"), "./here.yaml": "./here.yaml", "here.yml": "", "": "", "nothing": "",
		"../nothing": "", ".": "",
	} {
		got, err := Find(arg, []string{mine})
		if got != want || (err != nil) != (want == "") || err != nil && !errors.Is(err, ErrNoRecipe) {
			t.Errorf("%q: %q, %v; want %q", arg, got, err, want)
		}
	}
	writeFile(t, "hob.yaml")
	for _, arg := range []string{"", "."} {
		if got, err := Find(arg, nil); got != "hob.yaml" || err != nil {
			t.Errorf("%q: %q, %v", arg, got, err)
		}
	}
	got, err := Find("pilot", nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Load(got, testOptions)
	if err != nil || r.File != "gallery:pilot" || r.Name != "pilot" || r.Dir == "" {
		t.Errorf("gallery: %+v, %v", r, err)
	}
	if _, err := Find("pilott", nil); err == nil || !strings.Contains(err.Error(), "did you mean pilot?") {
		t.Error(err)
	}
}

func TestDefaultName(t *testing.T) {
	for file, want := range map[string]string{
		"/x/chat.yaml": "chat", "/home/My Models/hob.yaml": "my-models", "/x/-.yaml": "recipe",
		"/x/" + strings.Repeat("a", 60) + ".yml": strings.Repeat("a", 41), "/hob.yaml": "recipe",
	} {
		if got := defaultName(file); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}
