package recipes

import (
	"os"
	"strings"
	"testing"
)

func TestGalleryIsRight(t *testing.T) {
	names := Names(nil)
	if len(names) < 20 {
		t.Errorf("the gallery has %d recipes", len(names))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			file, err := Find(name, nil)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Load(file, testOptions)
			if err != nil {
				t.Fatal(err)
			}
			text, err := Show(file)
			if err != nil || !strings.HasPrefix(text, "# ") || r.Name != name {
				t.Errorf("it is called %s and does not begin with a sentence about it: %v", r.Name, err)
			}
			if len(r.Notes) > 0 {
				t.Errorf("it is told of %q", r.Notes)
			}
		})
	}
}

// The table of keys in language.md is the one that Load checks by.
func TestLanguageHasEveryKey(t *testing.T) {
	const file = "language.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), "| Key |")
	_, after, ok := strings.Cut(rest, "\n\n")
	want := before + Reference() + "\n" + after
	if !ok || want == string(text) {
		return
	}
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Error("the table of keys is not Reference(): go test -update writes it")
}
