package recipes

import (
	"path/filepath"
	"strings"
)

// Entry is a recipe that Find knows by its name.
type Entry struct {
	Name  string `json:"name"`
	About string `json:"about"` // the comment that the file begins with, as one line
	File  string `json:"file"`  // "" for one of the gallery
}

// List are the recipes in dirs and those of the gallery, by name. One of a
// person's own hides the gallery's of the same name, as Find has it.
func List(dirs []string) []Entry {
	list := []Entry{}
	for _, name := range Names(dirs) {
		e := Entry{Name: name}
		for _, dir := range dirs {
			if f := filepath.Join(dir, name+".yaml"); e.File == "" && isFile(f) {
				e.File = f
			}
		}
		e.About = about(e.file())
		list = append(list, e)
	}
	return list
}

// file is the entry's name for Show and Load.
func (e Entry) file() string {
	if e.File == "" {
		return galleryPrefix + e.Name
	}
	return e.File
}

// about is the comment at the top of a recipe; "" when there is none, or the
// file cannot be read, which whoever uses it will be told.
func about(file string) string {
	text, err := Show(file)
	if err != nil {
		return ""
	}
	var words []string
	for line := range strings.Lines(text) {
		comment, ok := strings.CutPrefix(line, "#")
		if !ok {
			break
		}
		if comment = strings.TrimSpace(comment); !strings.HasPrefix(comment, editorKey) {
			words = append(words, comment)
		}
	}
	return strings.Join(words, " ")
}

// editorKey is how the YAML language server that most editors use is told of a
// schema (https://github.com/redhat-developer/yaml-language-server).
const editorKey = "yaml-language-server:"

// editorHeader is the line at the top of a recipe that tells an editor where the
// schema is.
func editorHeader(schema string) string { return "# " + editorKey + " $schema=" + schema + "\n" }

// Init writes a recipe that Find found into a new file; with a schema, its name
// beside the file, that is written too and named in the recipe. What is there
// already is left as it is, and is an error.
func Init(from, file, schema string) error {
	text, err := Show(from)
	if err != nil {
		return err
	}
	if schema != "" {
		if err := writeNew(filepath.Join(filepath.Dir(file), schema), Schema(), true); err != nil {
			return err
		}
		text = editorHeader("./"+schema) + text
	}
	return writeNew(file, []byte(text), false)
}
