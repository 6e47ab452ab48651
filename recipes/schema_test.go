package recipes

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

func compiled(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("hob.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("hob.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func decoded(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// What Load takes, the schema takes: else an editor would mark what is right.
func TestSchemaTakesWhatIsRight(t *testing.T) {
	for pattern, s := range map[string]*jsonschema.Schema{
		"testdata/right/*.yaml": compiled(t, Schema()), "gallery/*.yaml": compiled(t, Schema()),
		"testdata/right/parts/*.yaml": compiled(t, Schema()), "../examples/*/hob.yaml": compiled(t, Schema()),
		"engines/*.yaml": compiled(t, EngineSchema()),
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 && !strings.HasPrefix(pattern, "..") {
			t.Fatalf("no files in %s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(decoded(t, text)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// samples are a value of each form, as YAML.
var samples = map[form]string{
	text: "Not-A-Word", integer: "-77", float: "1.5", boolean: "true", null: "~", sequence: "[[]]", mapping: "{A b: {}}",
}

// fits are keys whose rule takes such a text.
func fits(r *rule, f form, value string) bool {
	if r.forms&f == 0 {
		return false
	}
	if f == sequence || f == mapping {
		return false // the samples are wrong within
	}
	if len(r.words) > 0 && r.check == nil {
		return false
	}
	return r.check == nil || r.check(value) == nil
}

// At every key of the language every wrong type is refused: by Load at the value,
// and by the schema.
func TestWrongTypesAtEveryKey(t *testing.T) {
	s := compiled(t, Schema())
	tasks := map[string]*rule{"servers": serverRule, "jobs": jobRule, "shells": shellRule}
	for section, r := range tasks {
		for _, k := range r.keys {
			wrongTypes(t, s, k, fmt.Sprintf("%s: {a: {%s: %%s}}", section, k.name))
			for _, sub := range k.rule.keys {
				wrongTypes(t, s, sub, fmt.Sprintf("%s: {a: {%s: {%s: %%s}}}", section, k.name, sub.name))
			}
		}
	}
	for _, k := range topRule.keys {
		wrongTypes(t, s, k, k.name+": %s")
	}
	for _, k := range layoutRule.item.keys {
		wrongTypes(t, s, k, fmt.Sprintf("layout: [{%s: %%s}]", k.name))
	}
}

func wrongTypes(t *testing.T, s *jsonschema.Schema, k key, format string) {
	t.Helper()
	for f, value := range samples {
		if fits(k.rule, f, value) {
			continue
		}
		text := fmt.Sprintf(format, value)
		column := strings.Index(format, "%s") + 1
		if !reportedAt(t, text, column, f, k.rule) {
			t.Errorf("%s: nothing reported at column %d", text, column)
		}
		if err := s.Validate(decoded(t, []byte(text))); err == nil {
			t.Errorf("%s: the schema takes it", text)
		}
	}
}

// reportedAt reports whether an error points at the value or, where the value has
// a right form, into it.
func reportedAt(t *testing.T, text string, column int, f form, r *rule) bool {
	_, err := load(newSource("x", "/", []byte(text)), []byte(text), "x", testOptions)
	var errs Errors
	if !errors.As(err, &errs) {
		t.Errorf("%s: %v", text, err)
	}
	for _, e := range errs {
		inside := (f == sequence || f == mapping) && r.forms&f != 0 && e.Column > column
		if e.Line == 1 && (e.Column == column || inside) {
			return true
		}
	}
	return false
}

// unseen are wrong recipes that no schema sees: what is wrong is no YAML, or between
// the values (names, cycles, ports, variables, other files).
var unseen = []string{"alias", "anchors", "at", "bracket", "colon", "documents", "duplicates", "empty-sections", "envfile", "many", "notask",
	"quote", "syntax", "tab"}

// What is wrong by its structure, the schema refuses too, and it takes all else.
func TestSchemaRefusesWhatIsWrong(t *testing.T) {
	s := compiled(t, Schema())
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no wrong recipes: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		var v any
		refused := yaml.Unmarshal(text, &v) == nil && s.Validate(v) != nil
		if refused == slices.Contains(unseen, name) {
			t.Errorf("%s: the schema refuses it: %v", name, refused)
		}
	}
}

// What init writes for an editor is found by it, and takes the recipe.
func TestEditorHeader(t *testing.T) {
	dir := t.TempDir()
	for _, name := range Names(nil) {
		file := filepath.Join(dir, name+".yaml")
		from, err := Find(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := Init(from, file, "hob.schema.json"); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		header, _, _ := strings.Cut(string(text), "\n")
		path, ok := strings.CutPrefix(header, "# yaml-language-server: $schema=")
		schema, err := os.ReadFile(filepath.Join(dir, path))
		if !ok || err != nil {
			t.Fatalf("%q names no schema: %v", header, err)
		}
		if err := compiled(t, schema).Validate(decoded(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An editor that knows the schema offers the engines, and says what each is.
func TestSchemaNamesTheEngines(t *testing.T) {
	text := string(Schema())
	for _, name := range engineNames() {
		if !strings.Contains(text, fmt.Sprintf(`"const": %q`, name)) {
			t.Errorf("the engine %s is not offered", name)
		}
	}
	for _, want := range []string{
		"vLLM's OpenAI-compatible server. It needs a model. It listens on port 8000 unless told otherwise.",
		"done when it is there. For jobs. It needs a model.", "It listens on port 11434 unless told otherwise. Mind: A runner outlives",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no engine is described by %q", want)
		}
	}
}
