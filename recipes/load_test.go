package recipes

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is reported into the files of testdata/wrong")

const wantMark = "# want "

// environment is what recipes of testdata see.
func environment(name string) string {
	return map[string]string{"HOME": "/home/cook", "SHELL": "/bin/zsh", "MODEL": "from-env", "HF_TOKEN": "hf_s3cret", "EMPTY": ""}[name]
}

var testOptions = Options{Getenv: environment, Self: "/usr/bin/hob"}

// Each file of testdata/wrong ends in comments that say what must be reported
// about it, where, and with which hint: all of it, and nothing else.
func TestWrongRecipes(t *testing.T) {
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no wrong recipes: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { checkWrong(t, file) })
	}
}

func checkWrong(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	body, want, _ := strings.Cut(string(text), wantMark)
	want = wantMark + want
	_, err = Load(file, testOptions)
	got := reported(t, file, err)
	if *update {
		if err := os.WriteFile(file, []byte(body+got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("reported:\n%s\nwant:\n%s", got, want)
	}
}

func reported(t *testing.T, file string, err error) string {
	t.Helper()
	var errs Errors
	if !errors.As(err, &errs) {
		t.Fatalf("not Errors: %v", err)
	}
	var b strings.Builder
	for _, e := range errs {
		b.WriteString(wantMark)
		if name := filepath.Base(e.File); name != filepath.Base(file) {
			b.WriteString(name + ":") // of a file that it includes
		}
		fmt.Fprintf(&b, "%d:%d: %s", e.Line, e.Column, e.Msg)
		if e.Hint != "" {
			fmt.Fprintf(&b, " | %s", e.Hint)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
