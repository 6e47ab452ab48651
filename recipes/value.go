package recipes

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// Value is one value of a YAML (or JSON) file that is another tool's: read within
// the bounds that hold for recipes, aliases and merges written out.
type Value struct {
	Line, Column int
	Form         ValueForm
	Text         string // of a scalar, as written
	Items        []*Value
	Pairs        []ValuePair
}

// ValuePair is a key of a mapping and what it holds.
type ValuePair struct{ Key, Value *Value }

// ValueForm is what a Value looks like.
type ValueForm string

// The forms; also the words for them in errors.
const (
	FormText    ValueForm = "text"
	FormNumber  ValueForm = "a number"
	FormBool    ValueForm = "true or false"
	FormNull    ValueForm = "nothing"
	FormList    ValueForm = "a list"
	FormMapping ValueForm = "a mapping"
)

var valueForms = map[form]ValueForm{
	text: FormText, integer: FormNumber, float: FormNumber, boolean: FormBool, null: FormNull, sequence: FormList, mapping: FormMapping,
}

// Get is what a key of a mapping holds; nil if it is not there.
func (v *Value) Get(key string) *Value {
	if v == nil {
		return nil
	}
	for _, p := range v.Pairs {
		if p.Key.Text == key {
			return p.Value
		}
	}
	return nil
}

// Scalar reports whether the value is text, a number, or true or false.
func (v *Value) Scalar() bool {
	return v != nil && (v.Form == FormText || v.Form == FormNumber || v.Form == FormBool)
}

// ReadValue reads a file that is no recipe. What is wrong with it comes as Errors,
// each at its place: text that is not UTF-8, no YAML, a key twice, aliases that
// multiply.
func ReadValue(file string, text []byte) (*Value, error) {
	var errs list
	root := newSource(file, "", text).parse(text, &errs)
	for _, e := range errs.errs {
		if root == nil && e.Line == 1 && e.Column == 1 {
			e.Hint = "" // they speak of recipes
		}
	}
	if err := errs.err(); err != nil {
		return nil, err
	}
	return root.value(), nil
}

func (n *node) value() *Value {
	v := &Value{Line: n.line, Column: n.col, Form: valueForms[n.form], Text: n.raw}
	for _, item := range n.items {
		v.Items = append(v.Items, item.value())
	}
	for _, p := range n.pairs {
		key := &Value{Line: p.key.line, Column: p.key.col, Form: FormText, Text: p.key.raw}
		v.Pairs = append(v.Pairs, ValuePair{key, p.value.value()})
	}
	return v
}

// CheckText says, as Errors, what keeps a text from being read at all: that it is
// too large, or not UTF-8.
func CheckText(file string, text []byte) error {
	var errs list
	newSource(file, "", text).readable(text, &errs)
	for _, e := range errs.errs {
		if len(text) > maxBytes {
			e.Hint = ""
		}
	}
	return errs.err()
}

// LoadText is Load for a text that is not in its file yet.
func LoadText(file string, text []byte, o Options) (*Recipe, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("folder of recipe %s: %w", file, err)
	}
	return load(newSource(file, filepath.Dir(abs), text), text, file, o)
}

// EnginePort is where a built-in engine listens unless it is told otherwise; 0 for
// none.
func EnginePort(name string) int {
	e, err := builtinEngine(name)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(e.text("port", ""))
	if err != nil {
		return 0
	}
	return n
}
