package recipes

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// doc is a JSON Schema as anybody else would read it.
type doc = map[string]any

// place is where a value may stand: the keys on the way there, "-" for an item of
// a list, and what the schema says of it.
type place struct {
	path  []string
	takes doc
}

// places are all of a schema, each once: below a definition that was seen on the
// way there is nothing new.
func places(t *testing.T, schema doc) []place {
	t.Helper()
	defs := schema["$defs"].(doc)
	var all []place
	var walk func(path []string, s doc, open []string)
	walk = func(path []string, s doc, open []string) {
		if ref, ok := s["$ref"].(string); ok {
			if slices.Contains(open, ref) {
				return
			}
			open, s = append(slices.Clone(open), ref), defs[strings.TrimPrefix(ref, "#/$defs/")].(doc)
		}
		all = append(all, place{path, s})
		for _, one := range forms(s) {
			down := func(key string, sub any) { walk(append(slices.Clone(path), key), sub.(doc), open) }
			if keys, ok := one["properties"].(doc); ok {
				for _, key := range slices.Sorted(maps.Keys(keys)) {
					down(key, keys[key])
				}
			}
			if each, ok := one["additionalProperties"].(doc); ok {
				down("some", each)
			}
			if item, ok := one["items"].(doc); ok {
				down("-", item)
			}
		}
	}
	walk(nil, schema, nil)
	return all
}

// forms are the alternatives of a schema.
func forms(s doc) []doc {
	anyOf, ok := s["anyOf"].([]any)
	if !ok {
		return []doc{s}
	}
	var all []doc
	for _, one := range anyOf {
		all = append(all, one.(doc))
	}
	return all
}

// wrongFor are values of the forms that the schema does not take, as YAML.
func wrongFor(s doc) []string {
	takes := map[string]bool{}
	for _, one := range forms(s) {
		if _, ok := one["enum"]; ok {
			takes["string"] = true
		}
		if kind, ok := one["type"].(string); ok {
			takes[kind] = true
		}
	}
	var wrong []string
	for kind, text := range map[string]string{"array": "[]", "object": "{}", "null": "~", "boolean": "true", "string": "text", "integer": "7", "number": "1.5"} {
		if !takes[kind] && !(kind == "integer" && takes["number"]) {
			wrong = append(wrong, text)
		}
	}
	slices.Sort(wrong)
	return wrong
}

// document is a recipe in which the value stands at the path, each key on a line of
// its own, and the line that it stands on.
func document(path []string, value string) (text string, line int) {
	var b strings.Builder
	indent, item := 0, false
	for i, key := range path {
		if key == "-" {
			fmt.Fprintf(&b, "%s-", strings.Repeat("  ", indent))
			item = true
		} else {
			if item {
				b.WriteString(" ")
			} else {
				b.WriteString(strings.Repeat("  ", indent))
			}
			b.WriteString(key + ":")
			item = false
		}
		indent++
		if i < len(path)-1 && !(key == "-" && path[i+1] != "-") {
			b.WriteString("\n")
			line++
		}
	}
	return b.String() + " " + value + "\n", line + 1
}

// At every place that the schema knows a value of a form which it does not take is
// reported on that value's line, whatever is wrong besides.
func TestWrongTypesAtEveryPlaceOfTheSchema(t *testing.T) {
	var schema doc
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	all := places(t, schema)
	tried := 0
	for _, p := range all {
		if len(p.path) == 0 || p.path[0] == "profiles" || p.path[0] == "templates" {
			continue // what these say is checked where it is used
		}
		for _, value := range wrongFor(p.takes) {
			tried++
			text, line := document(p.path, value)
			if !reportsLine(t, text, line) {
				t.Errorf("%v: nothing on line %d of\n%s", p.path, line, text)
			}
		}
	}
	if len(all) < 100 || tried < 300 {
		t.Errorf("only %d places and %d values were tried", len(all), tried)
	}
}

func reportsLine(t *testing.T, text string, line int) bool {
	t.Helper()
	_, err := load(newSource("x", "/", []byte(text)), []byte(text), "x", testOptions)
	var errs Errors
	if !errors.As(err, &errs) {
		t.Errorf("%s: %v", text, err)
	}
	return slices.ContainsFunc(errs, func(e *Error) bool { return e.Line == line })
}
