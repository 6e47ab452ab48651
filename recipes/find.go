package recipes

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed gallery/*.yaml
var gallery embed.FS

// galleryPrefix marks the file name of a gallery recipe, which has no file.
const galleryPrefix = "gallery:"

// ErrNoRecipe is a recipe that is nowhere to be found.
var ErrNoRecipe = errors.New("no such recipe")

// standard is the recipe of a folder.
const standard = "hob.yaml"

// Find turns RECIPE of the command line into a file for Load: a path, the name of
// a recipe in dirs, or one of the gallery; "" is ./hob.yaml.
func Find(arg string, dirs []string) (file string, err error) {
	if arg == "" {
		return inFolder(".", fmt.Errorf("%w: there is no %s here; name a recipe, or write one", ErrNoRecipe, standard))
	}
	if info, err := os.Stat(arg); err == nil {
		if !info.IsDir() {
			return arg, nil
		}
		if isPath(arg) || !known(arg, dirs) {
			return inFolder(arg, fmt.Errorf("%w: the folder %s has no %s", ErrNoRecipe, arg, standard))
		}
	}
	if isPath(arg) {
		return "", fmt.Errorf("%w: there is no file %s", ErrNoRecipe, arg)
	}
	for _, dir := range dirs {
		if f := filepath.Join(dir, arg+".yaml"); isFile(f) {
			return f, nil
		}
	}
	if _, err := fs.Stat(gallery, "gallery/"+arg+".yaml"); err == nil {
		return galleryPrefix + arg, nil
	}
	return "", noRecipe(arg, dirs)
}

func inFolder(dir string, otherwise error) (string, error) {
	for _, name := range []string{standard, "hob.yml"} {
		if f := filepath.Join(dir, name); isFile(f) {
			return f, nil
		}
	}
	return "", otherwise
}

func isFile(f string) bool {
	info, err := os.Stat(f)
	return err == nil && !info.IsDir()
}

func isPath(arg string) bool {
	return strings.ContainsRune(arg, filepath.Separator) || strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml") || arg == "." || arg == ".."
}

func known(name string, dirs []string) bool { return slices.Contains(Names(dirs), name) }

func noRecipe(arg string, dirs []string) error {
	if near := nearest(arg, Names(dirs)); near != "" {
		return fmt.Errorf("%w: %s; did you mean %s?", ErrNoRecipe, arg, near)
	}
	return fmt.Errorf("%w: %s is neither a file nor the name of a recipe", ErrNoRecipe, arg)
}

// Names are the recipes that Find knows by name: those in dirs, then the gallery.
func Names(dirs []string) []string {
	all := yamlFiles(gallery, "gallery")
	for _, dir := range dirs {
		all = append(all, yamlFiles(os.DirFS(dir), ".")...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Show is the text of a recipe that Find found.
func Show(file string) (string, error) {
	if name, ok := strings.CutPrefix(file, galleryPrefix); ok {
		text, err := gallery.ReadFile("gallery/" + name + ".yaml")
		return string(text), err
	}
	_, text, err := readSource(file)
	return string(text), err
}
