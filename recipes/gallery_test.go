package recipes

import (
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
		})
	}
}
