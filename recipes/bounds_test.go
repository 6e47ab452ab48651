package recipes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write puts a recipe into a folder of its own.
func write(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hob.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func writeFile(t testing.TB, file string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("servers: {a: {command: x}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// first is the first error of a recipe, without the file's name.
func first(t testing.TB, text string) string {
	t.Helper()
	_, err := Load(write(t, text), testOptions)
	var errs Errors
	if !errors.As(err, &errs) {
		return fmt.Sprint(err)
	}
	return fmt.Sprintf("%d:%d: %s", errs[0].Line, errs[0].Column, errs[0].Msg)
}

// laughs is the YAML bomb: each anchor names the one before nine times.
func laughs() string {
	var b strings.Builder
	b.WriteString("x-0: &a0 [l, l, l, l, l, l, l, l, l]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&b, "x-%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 8), i-1)
	}
	return b.String() + "servers: {a: {command: *a9}}\n"
}

// double is the bomb by variables: each names the one before twice.
func double() string {
	var b strings.Builder
	b.WriteString("vars:\n  v0: xxxxxxxxxxxxxxxx\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&b, "  v%d: ${v%d}${v%d}\n", i, i-1, i-1)
	}
	return b.String() + "servers: {a: {command: \"${v39}\"}}\n"
}

// many has one large variable and many values that name it.
func many() string {
	var b strings.Builder
	fmt.Fprintf(&b, "vars: {big: %s}\nservers:\n  a:\n    command:\n", strings.Repeat("x", 60<<10))
	for range 2000 {
		b.WriteString("      - ${big}\n")
	}
	return b.String()
}

func TestHostileFiles(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":        {"", "1:1: the file is empty"},
		"only comments":  {"# a\n\n# b\n", "1:1: the file is empty"},
		"only a marker":  {"---\n", "1:1: the file is empty"},
		"null":           {"null\n", "1:1: a recipe is empty; it must be a mapping with servers, jobs or shells"},
		"too large":      {"# " + strings.Repeat("x", maxBytes), fmt.Sprintf("1:1: the file is larger than %d bytes", maxBytes)},
		"Latin-1":        {"name: a\n# caf\xe9\n", "2:6: the text is not UTF-8"},
		"UTF-16":         {"\xff\xfen\x00a\x00", "1:1: the text is not UTF-8"},
		"NUL":            {"name: a\x00b\n", "1:8: not YAML: control characters are not allowed"},
		"aliases":        {laughs(), "6:11: the file has more than 100000 values"},
		"depth":          {"x-: " + strings.Repeat("[", 200) + strings.Repeat("]", 200), "1:69: nested more than 64 deep"},
		"deeper":         {"x: " + strings.Repeat("[", 20000), "1:10004: not YAML: exceeded max depth of 10000"},
		"itself":         {"servers: &s {a: {command: x, env: *s}}\n", `1:35: the anchor "s" contains itself`},
		"variables":      {double(), "15:8: the value is too large with its variables filled in"},
		"many variables": {many(), "278:9: the value is too large with its variables filled in"},
		"open reference": {"servers: {a: {command: \"" + strings.Repeat("${a:-", 5000) + "\"}}", `1:25: "${" without "}"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := first(t, c.text); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A byte order mark and Windows line ends are no errors.
func TestWindowsFiles(t *testing.T) {
	r, err := Load(write(t, "\xef\xbb\xbfname: win\r\nservers:\r\n  a: {command: x}\r\n"), testOptions)
	if err != nil || r.Name != "win" {
		t.Errorf("recipe %+v: %v", r, err)
	}
	if got := first(t, "servers:\r\n  a: {comand: x}\r\n"); got != `2:7: unknown key "comand"` {
		t.Error(got)
	}
}

// A file that is wrong at every line makes a report that ends.
func TestErrorsEnd(t *testing.T) {
	_, err := Load(write(t, "servers:\n"+strings.Repeat("  ?: {}\n  A: {}\n", 5000)), testOptions)
	var errs Errors
	if !errors.As(err, &errs) || len(errs) != maxErrors {
		t.Fatalf("%d errors, want %d", len(errs), maxErrors)
	}
	if last := errs[len(errs)-1].Msg; !strings.HasSuffix(last, "more errors from here on") {
		t.Error(last)
	}
}

// Large files that are wrong everywhere end soon too: nothing is searched for each
// of their errors. (With the searches each of these takes minutes, and the test
// binary runs into its own timeout.)
func TestWrongEverywhere(t *testing.T) {
	var names, depends, vars, engines strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&names, "  task-with-a-name-%d: {command: x}\n", i)
		fmt.Fprintf(&depends, "tusk-with-a-nome-%d, ", i)
		fmt.Fprintf(&vars, "  variable_with_a_name_%d: x\n", i)
		fmt.Fprintf(&engines, "  e%d: {engine: vllm-%d, args: [\"${varioble_with_a_nome_%d}\"]}\n", i, i, i)
	}
	for _, text := range []string{
		"servers:\n" + names.String() + "  last: {command: x, depends_on: [" + depends.String() + "]}\n",
		"vars:\n" + vars.String() + "servers:\n" + engines.String(),
	} {
		if _, err := Load(write(t, text), testOptions); err == nil {
			t.Error("no error")
		}
	}
}

// The line itself goes with an error, but not where it may hold a secret.
func TestErrorText(t *testing.T) {
	_, err := Load(write(t, "servers:\n  a:\n    comand: x\n    env: {TOKEN: [s3cret]}\n"), testOptions)
	var errs Errors
	if !errors.As(err, &errs) || len(errs) != 2 {
		t.Fatal(err)
	}
	if errs[0].Text != "    comand: x" || errs[1].Text != "" {
		t.Errorf("lines %q and %q", errs[0].Text, errs[1].Text)
	}
	if strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
}

// Another value's error does not show a secret that stands on its line.
func TestErrorTextBesideSecret(t *testing.T) {
	for name, text := range map[string]string{
		"a key behind env":         "servers:\n  a: {env: {TOKEN: s3cret}, bogus: 1}\n",
		"a key":                    "servers:\n  a: {command: x, port: 1, ready: {http: /, api_key: s3cret, bogus: 1}}\n",
		"headers":                  "servers:\n  a: {command: x, port: 1, ready: {http: /, headers: {X-A: s3cret}, bogus: 1}}\n",
		"a header, wrong":          "servers:\n  a: {command: x, port: 1, ready: {http: /, headers: {X-A: \"s3cret\\n\", \"b c\": s3cret}}}\n",
		"headers by another word":  "servers:\n  a: {command: x, port: 1, ready: {http: /, header: {X-A: s3cret}}}\n",
		"a key by another word":    "servers:\n  a: {command: x, port: 1, ready: {http: /, token: s3cret}}\n",
		"a name in env":            "servers:\n  a: {command: x, env: {\"A=B\": 1, TOKEN: s3cret}}\n",
		"env by another word":      "servers:\n  a: {command: x, environment: {TOKEN: s3cret}}\n",
		"env in capitals":          "servers:\n  a: {command: x, Env: {TOKEN: s3cret}}\n",
		"headers in capitals":      "servers:\n  a: {command: x, port: 1, ready: {http: /, Headers: {X-A: s3cret}}}\n",
		"env in env_file":          "servers:\n  a: {command: x, env_file: {TOKEN: s3cret}}\n",
		"what YAML takes as a tag": "servers:\n  a: {command: x, env: {TOKEN: !s3cret x}}\n",
		"env by a template":        "templates: {t: {env: {TOKEN: s3cret}, bogus: 1}}\nservers: {a: {extends: t, command: x}}\n",
		"what an alias stands for": "x-env: {e: &e {TOKEN: s3cret}, c: &c {bogus: 1}}\nservers: {a: {command: x, env: *e}, b: *c}\n",
	} {
		_, err := Load(write(t, text), testOptions)
		var errs Errors
		if !errors.As(err, &errs) {
			t.Errorf("%s: %v", name, err)
		}
		for _, e := range errs {
			if strings.Contains(e.Text, "s3cret") || strings.Contains(e.Error(), "s3cret") {
				t.Errorf("%s: %v shows %q", name, e, e.Text)
			}
		}
	}
}

// What a variable holds may be a secret: a hint does not spell it either.
func TestHintDoesNotSpellValue(t *testing.T) {
	o := testOptions
	o.Getenv = func(string) string { return "s3cret X" }
	for key, text := range map[string]string{
		"name":       "name: ${V}\nservers: {a: {command: x}}\n",
		"depends_on": "servers: {a: {command: x, depends_on: \"${V}\"}}\n",
		"groups":     "servers: {a: {command: x, groups: [\"${V}\"]}}\n",
		"engine":     "servers: {a: {engine: \"${V}\"}}\n",
	} {
		_, err := Load(write(t, text), o)
		var errs Errors
		if !errors.As(err, &errs) {
			t.Errorf("%s: %v", key, err)
		}
		for _, e := range errs {
			if strings.Contains(e.Error()+e.Hint+e.Text, "s3cret") {
				t.Errorf("%s: %v, hint %q", key, e, e.Hint)
			}
		}
	}
}

// FuzzLoad: whatever the file, Load ends, never panics, and points into the file.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/right/*.yaml", "testdata/wrong/*.yaml", "engines/*.yaml", "gallery/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("no seeds in %s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Add([]byte(laughs()))
	f.Add([]byte(double()))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		src := newSource("hob.yaml", dir, text)
		r, err := load(src, text, "hob.yaml", testOptions)
		checkPlaces(t, src, r, err)
	})
}

func checkPlaces(t *testing.T, src *source, r *Recipe, err error) {
	var errs Errors
	switch {
	case err == nil && (r == nil || len(r.Tasks) == 0):
		t.Error("neither recipe nor error")
	case err == nil:
		for i := range r.Tasks {
			r.Tasks[i].BindLate(Late{Port: 1})
		}
	case !errors.As(err, &errs):
		t.Errorf("not Errors: %v", err)
	}
	for _, e := range errs {
		if e.Line < 1 || e.Line > len(src.lines)+1 || e.Column < 1 || e.Msg == "" {
			t.Errorf("no place in the file: %+v", e)
		}
	}
}
