// Package convert makes recipes of what other tools were told: session files of
// tmuxinator and tmuxp, Procfiles, llama-swap's configuration, vLLM's recipes and
// its configuration files; and of what runs in a tmux session right now.
//
// Best effort, and said: each construct of a file is kept or named as dropped,
// with its line. A key that nobody asked for is found by that (see section), so
// that nothing is lost without a word. Nothing here reads a file or looks at a
// process: text goes in, text comes out.
package convert

import (
	"fmt"
	"strings"

	"hob/recipes"
)

// Kind is whose file it is.
type Kind string

// The kinds that can be converted.
const (
	Tmuxinator Kind = "tmuxinator"
	Tmuxp      Kind = "tmuxp"
	Procfile   Kind = "procfile"
	LlamaSwap  Kind = "llama-swap"
	VLLMRecipe Kind = "vllm-recipe"
	VLLMConfig Kind = "vllm-config"
)

// Live is the kind of a session that was frozen, which is no file.
const Live Kind = "tmux"

// Kinds are the names of all kinds of file, for --from.
func Kinds() []string {
	return []string{string(Tmuxinator), string(Tmuxp), string(Procfile), string(LlamaSwap), string(VLLMRecipe), string(VLLMConfig)}
}

// Source is a file to be converted.
type Source struct {
	File string // as errors name it
	// Folder is the name of the folder that it stands in: a Procfile has no other.
	Folder string
	Text   []byte
	From   Kind // "": by name and content
	// Away is the file's folder where the recipe will stand in another one: what
	// is relative in the file is written from there. "" means beside the file.
	Away string
	// Beside reads a file that stands in the same folder; fs.ErrNotExist if there is
	// none. nil means that there is nothing beside it.
	Beside func(name string) ([]byte, error)
}

// Result is a recipe, and what became of each construct of its source.
type Result struct {
	Kind    Kind   `json:"kind"`
	File    string `json:"file"`    // of the source; of a frozen session its name
	Name    string `json:"name"`    // of the run
	Recipe  string `json:"recipe"`  // the text
	Kept    []Note `json:"kept"`    // what was taken over, and as what
	Dropped []Note `json:"dropped"` // what was not, and why
}

// Note says what became of one construct.
type Note struct {
	Line int    `json:"line,omitempty"` // of the source, from 1; 0 where there are no lines
	What string `json:"what"`           // "windows[0].layout"
	Says string `json:"says"`           // what it is now, or why it is not taken over
}

// String is the note as a compiler would write it, without the file.
func (n Note) String() string {
	if n.Line == 0 {
		return n.What + ": " + n.Says
	}
	return fmt.Sprintf("line %d: %s: %s", n.Line, n.What, n.Says)
}

// Convert makes a recipe of a file. What is wrong with the file comes as
// recipes.Errors; that it cannot be told whose it is as ErrUnsure.
func Convert(src Source) (*Result, error) {
	if err := recipes.CheckText(src.File, src.Text); err != nil {
		return nil, err
	}
	r := &reader{file: src.File, away: src.Away, beside: src.Beside, text: string(src.Text)}
	if err := r.reserved(); err != nil {
		return nil, err
	}
	kind := src.From
	if kind == "" {
		var err error
		if kind, err = detect(src.File, src.Text); err != nil {
			return nil, err
		}
	}
	d := &draft{kind: kind, names: map[string]bool{}}
	if err := r.read(kind, d); err != nil {
		return nil, err
	}
	if len(r.errs) > 0 {
		return nil, r.errs
	}
	if len(d.tasks) == 0 {
		return nil, recipes.Errors{{File: src.File, Line: 1, Column: 1, Msg: "there is nothing in it that could run"}}
	}
	if d.name == "" {
		d.name = slug(baseName(src.File))
	}
	if d.name == "config" {
		d.name = string(kind)
	}
	if folder := slug(src.Folder); kind == Procfile && folder != "" {
		d.name = folder
	}
	if d.name == "" {
		d.name = "converted"
	}
	d.title(fmt.Sprintf("Converted from %s (%s) by hob convert.", base(src.File), kind))
	return d.result(src.File, r)
}

// read dispatches by kind.
func (r *reader) read(kind Kind, d *draft) error {
	if kind == Procfile {
		r.procfile(d)
		return nil
	}
	text := r.text
	if kind == Tmuxinator {
		text = r.erb(text)
	}
	root, err := recipes.ReadValue(r.file, []byte(text))
	if err != nil {
		return err
	}
	top := r.section("", root)
	if top == nil {
		return nil
	}
	switch kind {
	case Tmuxinator:
		r.tmuxinator(top, d)
	case Tmuxp:
		r.tmuxp(top, d)
	case LlamaSwap:
		r.llamaSwap(top, d)
	case VLLMRecipe:
		r.vllmRecipe(top, d)
	case VLLMConfig:
		r.vllmConfig(top, d)
	default:
		return fmt.Errorf("%w: no kind %q", ErrUnsure, kind)
	}
	top.end()
	return nil
}

// base is the last part of a path, on every system.
func base(file string) string {
	if i := strings.LastIndexAny(file, `/\`); i >= 0 {
		file = file[i+1:]
	}
	return file
}

// baseName is base without what the kind of file added to it.
func baseName(file string) string {
	b := strings.TrimLeft(base(file), ".")
	for _, ext := range []string{".yaml", ".yml", ".json", ".erb", ".conf"} {
		b = strings.TrimSuffix(b, ext)
	}
	return b
}
