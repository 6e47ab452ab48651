package recipes

import _ "embed"

//go:embed language.md
var language string

// Language is the reference of the recipe language, in Markdown: its rules, the
// built-in engines, and all keys. A test holds the keys to the tables that Load
// checks by, and the engines to their files.
func Language() string { return language }
