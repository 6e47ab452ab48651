package recipes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadValue(t *testing.T) {
	v, err := ReadValue("f", []byte("a: &x {b: [1, yes, ~, 2.5]}\nc: {<<: *x, d: e}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Get("a").Get("b"); got == nil || got.Line != 1 || got.Column != 11 || len(got.Items) != 4 {
		t.Fatalf("a.b is %+v", got)
	}
	var forms []string
	for _, item := range v.Get("a").Get("b").Items {
		forms = append(forms, string(item.Form))
	}
	if got := strings.Join(forms, ", "); got != "a number, text, nothing, a number" {
		t.Errorf("the forms are %s", got)
	}
	if c := v.Get("c"); c.Get("d").Text != "e" || c.Get("b") == nil || c.Get("x") != nil || !c.Get("d").Scalar() || c.Scalar() {
		t.Errorf("c is %+v", c)
	}
	var none *Value
	if none.Get("a") != nil || none.Scalar() {
		t.Error("nothing has something in it")
	}
}

// What is wrong comes as errors at their place, without advice about recipes.
func TestReadValueOfWrongText(t *testing.T) {
	for text, want := range map[string]string{
		"":             "f:1:1: the file is empty",
		"a: 1\na: 2\n": `f:2:1: the key "a" is there twice, first on line 1 (keep one of them)`,
		"a: \xff":      "f:1:4: the text is not UTF-8 (save the file as UTF-8)",
	} {
		_, err := ReadValue("f", []byte(text))
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if err := CheckText("f", make([]byte, maxBytes+1)); err == nil || !strings.HasSuffix(err.Error(), "bytes") {
		t.Errorf("a large text: %v", err)
	}
	if err := CheckText("f", []byte("a")); err != nil {
		t.Errorf("a good text: %v", err)
	}
}

// A file that is there is left as it is, or replaced whole; a link stays a link.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "hob.yaml"), filepath.Join(dir, "link.yaml")
	if err := Write(file, []byte("one"), false); err != nil {
		t.Fatal(err)
	}
	if err := Write(file, []byte("two"), false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another: %v", err)
	}
	if err := errors.Join(os.Chmod(file, 0o640), os.Symlink("hob.yaml", link), Write(link, []byte("three"), true)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	info, statErr := os.Lstat(link)
	mode, modeErr := os.Stat(file)
	if err := errors.Join(err, statErr, modeErr); err != nil {
		t.Fatal(err)
	}
	if string(text) != "three" || info.Mode()&fs.ModeSymlink == 0 || mode.Mode().Perm() != 0o640 {
		t.Errorf("%q, %v, %v", text, info.Mode(), mode.Mode())
	}
	if err := Write(dir, []byte("x"), true); err == nil {
		t.Error("a folder was replaced")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
	if err := Write(filepath.Join(dir, "new.yaml"), []byte("x"), true); err != nil {
		t.Errorf("a new one: %v", err)
	}
}

func TestEnginePort(t *testing.T) {
	if vllm, none := EnginePort("vllm"), EnginePort("no-such-engine"); vllm != 8000 || none != 0 {
		t.Errorf("vllm: %d, no engine: %d", vllm, none)
	}
}
