package convert_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hob/recipes"
	"hob/recipes/convert"
)

var update = flag.Bool("update", false, "write what comes out into testdata")

// samples are the files of testdata: of each kind one that has all that the
// format knows.
func samples(t testing.TB) []string {
	t.Helper()
	dirs, err := filepath.Glob("testdata/*/hob.yaml") // what convert makes of the sample beside it
	if err != nil || len(dirs) < len(convert.Kinds()) {
		t.Fatalf("samples %v: %v", dirs, err)
	}
	var files []string
	for _, dir := range dirs {
		dir = filepath.Dir(dir)
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if name := e.Name(); !strings.HasPrefix(name, ".") && name != "hob.yaml" && name != "notes.json" {
				files = append(files, filepath.Join(dir, name))
			}
		}
	}
	return files
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func beside(file string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(filepath.Dir(file), name)) }
}

func environment(name string) string {
	return map[string]string{"HOME": "/home/u", "SHELL": "/bin/bash"}[name]
}

// Each sample is told by its content, comes out as the recipe beside it, which is
// right, and has what became of each construct beside it too.
func TestSamples(t *testing.T) {
	for _, file := range samples(t) {
		t.Run(filepath.Dir(file), func(t *testing.T) {
			res, err := convert.Convert(convert.Source{File: file, Folder: "shop", Text: read(t, file), Beside: beside(file)})
			if err != nil {
				t.Fatal(err)
			}
			if kind, _, _ := strings.Cut(filepath.Base(filepath.Dir(file)), "-json"); kind != string(res.Kind) {
				t.Errorf("taken for a file of %s", res.Kind)
			}
			out := filepath.Join(filepath.Dir(file), "hob.yaml")
			golden(t, out, res.Recipe)
			list, err := json.MarshalIndent(map[string]any{"kept": res.Kept, "dropped": res.Dropped}, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join(filepath.Dir(file), "notes.json"), string(list)+"\n")
			r, err := recipes.LoadText(out, []byte(res.Recipe), recipes.Options{Getenv: environment})
			if err != nil {
				t.Fatalf("the recipe is wrong: %v", err)
			}
			if r.Name != res.Name || len(r.Tasks) == 0 {
				t.Errorf("the run is %q, want %q", r.Name, res.Name)
			}
			if strings.Contains(res.Recipe+string(list), "hunter2") {
				t.Error("a secret came along")
			}
		})
	}
}

// What looks like a secret in a command of a Procfile is asked for by the recipe, and not
// copied; in the text of a shell it cannot be moved, and that is said.
func TestProcfileSecrets(t *testing.T) {
	const said = "looks like a secret"
	for line, c := range map[string]struct {
		want   string
		copied bool
	}{
		"web: vllm serve m --api-key hunter2":       {want: `exec vllm serve m --api-key "$CONVERTED_API_KEY"`},
		"web: HF_TOKEN=hunter2 vllm serve m":        {want: "HF_TOKEN: ${HF_TOKEN:?"},
		"web: worker --user me:hunter2 --port 80":   {want: "CONVERTED_USER: ${CONVERTED_USER:?"},
		"web: vllm serve m --api-key hunter2 | tee": {want: said, copied: true},
	} {
		res, err := convert.Convert(convert.Source{File: "Procfile", Folder: "shop", Text: []byte(line + "\n")})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(res.Recipe, c.want) || !strings.Contains(res.Recipe, said) || strings.Contains(res.Recipe, "hunter2") != c.copied {
			t.Errorf("%q:\n%s", line, res.Recipe)
		}
		set := func(name string) string {
			return map[string]string{"HF_TOKEN": "v", "CONVERTED_API_KEY": "v", "CONVERTED_USER": "v"}[name]
		}
		if _, err := recipes.LoadText("hob.yaml", []byte(res.Recipe), recipes.Options{Getenv: set}); err != nil {
			t.Errorf("%q: with the secret set: %v", line, err)
		}
		if _, err := recipes.LoadText("hob.yaml", []byte(res.Recipe), recipes.Options{Getenv: environment}); (err == nil) != c.copied {
			t.Errorf("%q: without it: %v", line, err)
		}
	}
	res, err := convert.Convert(convert.Source{File: "Procfile", Text: []byte("web: vllm serve m --max-model-len 4096\n")})
	if err != nil || strings.Contains(res.Recipe, said) {
		t.Errorf("%v %+v", err, res)
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := string(read(t, file)); got != want {
		t.Errorf("%s:\n%s\nwant:\n%s", file, got, want)
	}
}

// Nothing is lost without a word: every key and every entry of a sample is in a
// note, or below something that is, or all that is below it is.
func TestEveryConstructIsAccountedFor(t *testing.T) {
	for _, file := range samples(t) {
		if filepath.Base(file) == "Procfile" {
			continue // see below
		}
		t.Run(filepath.Dir(file), func(t *testing.T) {
			res, err := convert.Convert(convert.Source{File: file, Text: read(t, file)})
			if err != nil {
				t.Fatal(err)
			}
			root := tree(t, file)
			noted := map[string]bool{}
			for _, n := range slices.Concat(res.Kept, res.Dropped) {
				noted[n.What] = true
			}
			for _, p := range root.Pairs {
				account(t, noted, p.Key.Text, p.Value)
			}
		})
	}
}

// tree is the sample with its Ruby taken out, which has notes of its own.
func tree(t *testing.T, file string) *recipes.Value {
	t.Helper()
	var lines []string
	for line := range strings.Lines(string(read(t, file))) {
		if strings.HasPrefix(line, "<%") {
			line = "\n"
		}
		lines = append(lines, line)
	}
	root, err := recipes.ReadValue(file, []byte(strings.Join(lines, "")))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func account(t *testing.T, noted map[string]bool, path string, v *recipes.Value) {
	t.Helper()
	path = strings.ReplaceAll(path, ".~", ".") // a window without a name
	if noted[path] {
		return
	}
	if len(v.Pairs) == 0 && len(v.Items) == 0 {
		if v.Form != recipes.FormList && v.Form != recipes.FormMapping {
			t.Errorf("line %d: %s is neither kept nor dropped", v.Line, path)
		}
		return
	}
	for _, p := range v.Pairs {
		account(t, noted, path+"."+p.Key.Text, p.Value)
	}
	for i, item := range v.Items {
		account(t, noted, fmt.Sprintf("%s[%d]", path, i), item)
	}
}

// Of a Procfile every line is.
func TestEveryLineOfAProcfileIsAccountedFor(t *testing.T) {
	text := read(t, "testdata/procfile/Procfile")
	res, err := convert.Convert(convert.Source{File: "Procfile", Text: text})
	if err != nil {
		t.Fatal(err)
	}
	noted := map[int]bool{}
	for _, n := range slices.Concat(res.Kept, res.Dropped) {
		noted[n.Line] = true
	}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if !strings.HasPrefix(line, "#") && !noted[i+1] {
			t.Errorf("line %d is neither kept nor dropped: %s", i+1, line)
		}
	}
}

// A key that nobody knows is named, wherever a mapping stands.
func TestUnknownKeysAreNamed(t *testing.T) {
	for file, at := range map[string][]string{
		"testdata/tmuxinator/stove.yml": {"name: My Stove", "      layout: main-vertical"},
		"testdata/tmuxp/stove.yaml":     {"session_name: stove work", "    layout: main-horizontal", "        focus: true"},
		"testdata/llama-swap/config.yaml": {
			"logLevel: info", "    ttl: 60", "    swap: false", "    preload: [quick]",
		},
		"testdata/vllm-recipe/tiny.yaml": {
			`  slug: "tiny-7b"`, `  parameter_count: "7B"`, "    description: Tools", "    precision: fp8", "    default_mode: eagle3", "    extra_args: []",
		},
	} {
		for _, line := range at {
			text := string(read(t, file))
			indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
			broken := strings.Replace(text, line+"\n", line+"\n"+indent+"strange-key: 5\n", 1)
			if broken == text {
				t.Fatalf("%s has no line %q", file, line)
			}
			number := 1 + strings.Count(broken[:strings.Index(broken, "strange-key")], "\n")
			res, err := convert.Convert(convert.Source{File: file, Text: []byte(broken)})
			if err != nil {
				t.Errorf("%s, after %q: %v", file, line, err)
				continue
			}
			if !slices.ContainsFunc(res.Dropped, func(n convert.Note) bool {
				return n.Line == number && strings.HasSuffix(n.What, "strange-key")
			}) {
				t.Errorf("%s:%d: the key after %q is not named: %v", file, number, line, res.Dropped)
			}
		}
	}
}

// What is no such file is an error at its place.
func TestWrongFiles(t *testing.T) {
	for _, c := range []struct {
		name, text string
		from       convert.Kind
		want       string
	}{
		{"latin1", "name: caf\xe9\nwindows: [{a: b}]\n", "", "f:1:10: the text is not UTF-8"},
		{"empty", "", "", "f:1:1: the file is empty"},
		{"large", "a: " + strings.Repeat("x", 1<<20), "", "f:1:1: the file is larger than"},
		{"bomb", bomb(), "tmuxp", "values"},
		{"itself", "session_name: x\nwindows: &w [*w]\n", "", "contains itself"},
		{"twice", "name: x\nname: y\nwindows: [{a: b}]\n", "", `f:2:1: the key "name" is there twice`},
		{"tag", "name: !ruby/object:Gem x\nwindows: [{a: b}]\n", "", "f:1:7: the tag !ruby/object:Gem means nothing here"},
		{"no yaml", "windows: [\n", "tmuxinator", "f:1:10: not YAML"},
		{"mark", "name: \ufdd0\n", "tmuxinator", "f:1:7: a noncharacter"},
		{"nothing", "name: x\nwindows: []\n", "tmuxinator", "f:1:1: there is nothing in it that could run"},
		{"a list", "[1, 2]\n", "tmuxp", "f:1:1: the file must be a mapping, not a list"},
		{"windows", "windows: 5\n", "tmuxinator", "f:1:10: windows must be a list, not a number"},
		{"window", "windows: [[a]]\n", "tmuxinator", "f:1:11: windows[0] must be a name"},
		{"panes", "windows: [{a: {panes: x}}]\n", "tmuxinator", "f:1:23: windows[0].a.panes must be a list, not text"},
		{"pane", "windows: [{a: {panes: [[{x: y}]]}}]\n", "tmuxinator", "f:1:25: windows[0].a.panes[0] must be a list of texts"},
		{"root", "root: [x]\nwindows: [a]\n", "tmuxinator", "f:1:7: root must be text, not a list"},
		{"tmuxp window", "windows: [a]\n", "tmuxp", "f:1:11: windows[0] must be a mapping, not text"},
		{"tmuxp env", "session_name: x\nenvironment: [A]\nwindows: [{panes: [a]}]\n", "tmuxp", "f:2:14: environment must be a mapping"},
		{"tmuxp command", "session_name: x\nwindows: [{panes: [{shell_command: [[a]]}]}]\n", "tmuxp", "f:2:37: windows[0].panes[0].shell_command[0] must be a command"},
		{"models", "models: [a]\n", "llama-swap", "f:1:9: models must be a mapping, not a list"},
		{"no cmd", "models: {a: {cmd: x --port 1}, b: {ttl: 5}}\n", "", "f:1:35: models.b.cmd must say what to run"},
		{"cmd", "models: {a: {cmd: [x]}}\n", "", "f:1:13: models.a.cmd must"},
		{"quote", "models: {a: {cmd: \"x 'y\"}}\n", "", "f:1:19: models.a.cmd cannot be taken apart"},
		{"port", "startPort: many\nmodels: {a: {cmd: x}}\n", "", "f:1:12: startPort must be a whole number"},
		{"macros", growing(), "", "written out it is longer"},
		{"proxy", "models: {a: {cmd: x, proxy: nonsense}}\n", "", "f:1:29: models.a.proxy must be an address"},
		{"recipe", "model: {model_id: [x]}\n", "vllm-recipe", "f:1:19: model.model_id must be text"},
		{"vram", "model: {model_id: x}\nvariants: {default: {vram_minimum_gb: lots}}\n", "", "f:2:39: variants.default.vram_minimum_gb must be a whole number"},
		{"option", "model: m\nmax-model-len: 5\n\"a b\": x\n", "", `f:3:1: "a b" is no option`},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := convert.Convert(convert.Source{File: "f", Text: []byte(c.text), From: c.from})
			var errs recipes.Errors
			if !errors.As(err, &errs) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %+v\nwant %s", err, res, c.want)
			}
		})
	}
}

// bomb is a text whose aliases multiply.
func bomb() string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 9; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return text + "windows: *a8\nsession_name: x\n"
}

// growing are macros that multiply.
func growing() string {
	text := "macros:\n  m0: 0123456789\n"
	for i := 1; i < 9; i++ {
		text += fmt.Sprintf("  m%d: '%s'\n", i, strings.Repeat(fmt.Sprintf("${m%d}", i-1), 10))
	}
	return text + "models: {a: {cmd: 'x ${m8}'}}\n"
}

// Whose a file is is told, or said to be unknown: never guessed.
func TestDetect(t *testing.T) {
	for _, c := range []struct {
		file, text string
		want       convert.Kind
	}{
		{"Procfile", "anything", convert.Procfile},
		{"Procfile.dev", "web: x", convert.Procfile},
		{"procs", "web: rails s\nworker: sidekiq -c 5\n", convert.Procfile},
		{"procs", "web: rails s\nother:\n  - x\n", ""},
		{"procs.yaml", "web: rails s\n", ""},
		{"x.yml", "name: a\nwindows: [{editor: vim}]\n", convert.Tmuxinator},
		{"x.yml", "project_name: a\ntabs: [editor: vim]\n", convert.Tmuxinator},
		{"x.yml", "root: <%= ENV['X'] %>\nwindows:\n<% 3.times do %>\n  - a: b\n<% end %>\n", convert.Tmuxinator},
		{"x.yml", "windows: [{window_name: a, panes: [vim]}]\n", convert.Tmuxp},
		{"x.json", `{"session_name": "a", "windows": [{"panes": ["vim"]}]}`, convert.Tmuxp},
		{"c.yaml", "models: {a: {cmd: x}}\n", convert.LlamaSwap},
		{"c.yaml", "models: {a: {b: x}}\n", ""},
		{"m.yaml", "meta: {}\nmodel: {model_id: a/b}\n", convert.VLLMRecipe},
		{"m.yaml", "model: a/b\nport: 8000\n", convert.VLLMConfig},
		{"m.yaml", "kv-cache-dtype: fp8\n", convert.VLLMConfig},
		{"m.yaml", "model: a/b\n", ""},
		{"hob.yaml", "servers: {a: {engine: pilot}}\n", ""},
		{"compose.yaml", "services: {a: {image: x}}\n", ""},
		{"both.yaml", "models: {a: {cmd: x}}\nwindows: [{a: b}]\n", ""},
		{"x", "just text, of two\nlines\n", ""},
	} {
		got, err := convert.Detect(c.file, []byte(c.text))
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s %q is %q: %v; want %q", c.file, c.text, got, err, c.want)
		}
	}
}

// What stands in another folder than the recipe will is named from there.
func TestAway(t *testing.T) {
	for file, want := range map[string][]string{
		"testdata/procfile/Procfile":     {"dir: /far", "env_file: [/far/.env]"},
		"testdata/tmuxp-json/stove.json": {"dir: /far"},
		"testdata/tmuxinator/stove.yml":  {"dir: ${STOVE:-}/kitchen", "dir: ~/models"},
	} {
		res, err := convert.Convert(convert.Source{File: file, Text: read(t, file), Beside: beside(file), Away: "/far"})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(res.Recipe, w) {
				t.Errorf("%s: no %q in\n%s", file, w, res.Recipe)
			}
		}
	}
}

// Every engine that a command is recognised for is there.
func TestEnginesAreThere(t *testing.T) {
	for _, name := range convert.Engines() {
		if _, err := os.Stat(filepath.Join("..", "engines", name+".yaml")); err != nil {
			t.Errorf("there is no engine %s: %v", name, err)
		}
	}
}

// Whatever a file holds: an error, or a recipe that is right and says so.
func FuzzConvert(f *testing.F) {
	for _, file := range samples(f) {
		for _, kind := range append(convert.Kinds(), "") {
			f.Add(kind, read(f, file))
		}
	}
	f.Fuzz(func(t *testing.T, kind string, text []byte) {
		if kind != "" && !slices.Contains(convert.Kinds(), kind) {
			return
		}
		res, err := convert.Convert(convert.Source{File: "x", Text: text, From: convert.Kind(kind)})
		if err != nil {
			return
		}
		getenv := func(string) string { return "x" }
		if _, err := recipes.LoadText("hob.yaml", []byte(res.Recipe), recipes.Options{Getenv: getenv}); err != nil {
			t.Errorf("%q became a wrong recipe: %v\n%s", text, err, res.Recipe)
		}
	})
}

// A file beside a Procfile that is there and cannot be read is named, not passed over.
func TestBesideUnread(t *testing.T) {
	unread := func(name string) ([]byte, error) {
		if name == ".env" {
			return nil, fs.ErrPermission
		}
		return nil, fs.ErrNotExist
	}
	res, err := convert.Convert(convert.Source{File: "Procfile", Folder: "shop", Text: []byte("web: serve\n"), Beside: unread})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(res.Dropped, func(n convert.Note) bool { return n.What == ".env" }) {
		t.Errorf("%+v", res.Dropped)
	}
}
