package recipes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Schema is the JSON Schema of recipes, for editors. It comes from the tables that
// Load checks by; what needs the whole recipe (names, cycles, ports) only Load sees.
func Schema() []byte { return schemaOf("A recipe of hob", topRule) }

// EngineSchema is the JSON Schema of engine files.
func EngineSchema() []byte { return schemaOf("An engine of hob", engineRule) }

func schemaOf(title string, r *rule) []byte {
	s := schema{defs: map[string]any{}, names: map[*rule]string{}}
	root := s.forms(r)
	root["$schema"], root["title"] = "https://json-schema.org/draft/2020-12/schema", title
	root["$defs"] = s.defs
	if r == topRule {
		root["patternProperties"] = map[string]any{"^x-": true}
	}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil { // there is nothing in it that JSON cannot say
		return nil
	}
	return append(text, '\n')
}

// schema collects definitions: rules that are used in several places are written once.
type schema struct {
	defs  map[string]any
	names map[*rule]string
}

// key is what may stand at a key.
func (s *schema) key(k key) map[string]any {
	v := s.value(k.name, k.rule)
	doc := k.doc
	if k.standard != "" {
		doc = fmt.Sprintf("%s. Without it: %s.", k.doc, k.standard)
	}
	return map[string]any{"description": doc, "$ref": v}
}

// value is a reference to a rule's definition, which is made when first used.
func (s *schema) value(name string, r *rule) string {
	if got, ok := s.names[r]; ok {
		return got
	}
	unique := name
	for i := 2; s.defs[unique] != nil; i++ {
		unique = fmt.Sprintf("%s-%d", name, i)
	}
	s.names[r] = "#/$defs/" + unique
	s.defs[unique] = true // taken: a rule may hold itself
	s.defs[unique] = s.forms(r)
	return s.names[r]
}

func (s *schema) ref(name string, r *rule) map[string]any {
	return map[string]any{"$ref": s.value(name, r)}
}

// forms are the forms that a rule takes, one or more.
func (s *schema) forms(r *rule) map[string]any {
	var any_ []any
	if r.forms&scalars != 0 {
		any_ = append(any_, s.scalars(r)...)
	}
	if r.forms&null != 0 {
		any_ = append(any_, map[string]any{"type": "null"})
	}
	if r.forms&sequence != 0 {
		any_ = append(any_, map[string]any{"type": "array", "items": s.ref("item", r.item)})
	}
	if r.forms&mapping != 0 {
		any_ = append(any_, s.mapping(r))
	}
	if len(any_) == 1 {
		if one, ok := any_[0].(map[string]any); ok {
			return one
		}
	}
	return map[string]any{"anyOf": any_}
}

// scalars are what a text, number or boolean may be. What names a variable may
// turn out to be anything.
func (s *schema) scalars(r *rule) []any {
	var all []any
	if r == engineRef {
		all = append(all, knownEngines()...)
	}
	if len(r.words) > 0 {
		all = append(all, map[string]any{"enum": r.words})
	}
	if r.forms&text != 0 && len(r.words) == 0 {
		t := map[string]any{"type": "string"}
		if r.pattern != "" {
			t["pattern"] = r.pattern
		}
		all = append(all, t)
	}
	if r.forms&float != 0 {
		all = append(all, map[string]any{"type": "number"})
	} else if r.forms&integer != 0 {
		all = append(all, whole(r))
	}
	if r.forms&boolean != 0 {
		all = append(all, map[string]any{"type": "boolean"})
	}
	if r.forms&text == 0 || r.pattern != "" || len(r.words) > 0 {
		all = append(all, map[string]any{"type": "string", "pattern": `\$\{`})
	}
	return all
}

// knownEngines are those built in, each with what a person must know who names it.
// There may be others, in the person's folder.
func knownEngines() []any {
	var all []any
	for _, name := range engineNames() {
		e, err := builtinEngine(name)
		if err != nil || e == nil || e.tree == nil {
			continue
		}
		all = append(all, map[string]any{"const": name, "description": e.described()})
	}
	return all
}

// described is what an editor shows of an engine.
func (e *engine) described() string {
	says := []string{e.text("about", "")}
	if e.text("kind", "server") == "job" {
		says = append(says, "For jobs.")
	}
	switch e.text("model", "required") {
	case "required":
		says = append(says, "It needs a model.")
	case "none":
		says = append(says, "It takes no model.")
	}
	if port := e.text("port", ""); port != "" {
		says = append(says, "It listens on port "+port+" unless told otherwise.")
	}
	for _, trap := range e.tree.get("traps").words() {
		says = append(says, "Mind: "+strings.TrimSuffix(trap, ".")+".")
	}
	return strings.Join(says, " ")
}

func whole(r *rule) map[string]any {
	i := map[string]any{"type": "integer", "minimum": r.min}
	if r.max > 0 {
		i["maximum"] = r.max
	}
	return i
}

func (s *schema) mapping(r *rule) map[string]any {
	m := map[string]any{"type": "object"}
	if r.each != nil {
		m["additionalProperties"] = s.ref("each", r.each)
		m["propertyNames"] = map[string]any{"pattern": r.named().String()}
		return m
	}
	keys := map[string]any{}
	for _, k := range r.keys {
		keys[k.name] = s.key(k)
	}
	m["properties"], m["additionalProperties"] = keys, false
	if len(r.oneOf) > 0 {
		m["allOf"] = exclusions(r)
	}
	return m
}

// exclusions say that of the keys which exclude each other at most one is there. A key
// that is false (tcp: false) counts as absent.
func exclusions(r *rule) []any {
	var all []any
	off := map[string]any{"not": map[string]any{"const": false}}
	for i, a := range r.oneOf {
		for _, b := range slices.Backward(r.oneOf[i+1:]) {
			all = append(all, map[string]any{"not": map[string]any{
				"required": []string{a, b}, "properties": map[string]any{a: off, b: off},
			}})
		}
	}
	return all
}
