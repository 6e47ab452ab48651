package recipes

import (
	"errors"
	"strings"
	"testing"
)

// What is no YAML comes with what is usually meant there, and without what a value
// of an environment holds.
func TestSyntaxHints(t *testing.T) {
	const columns = "begin in one column"
	for text, want := range map[string]string{
		"a: [--key, ${x}, b]\n": `needs quotes: "${x}"`, "a: {b: http://h:${p}/v1, c: 1}\n": `needs quotes: "http://h:${p}/v1"`,
		"a: [\n  x${y},\n]\n": `needs quotes: "x${y}"`, "a: [x\nb: c\n": "close the bracket",
		"a:\n  b: c\n   d: e\n": columns, "a:\n  b: c\n d: e\n": columns, "a:\n  b: say: x\n": `a text with ": "`, "a: b: c\n": `a text with ": "`,
		"a: 'it's'\n": "single quote is written twice", "a: \"x\nb: c\n": "a quote is not closed",
		"a: %x\n": "@, ` or %", "a: *x\n": "* or &", "a: [*.gguf]\n": "* or &", "a: - b\n": "begins on the next line", "a: b\nc\n": "a colon and a space",
	} {
		_, err := Load(write(t, text), testOptions)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\nlacks %s", text, err, want)
		}
	}
	for _, text := range []string{
		"servers:\n  a:\n    env: {A: s3cret, B: x${s3cret}}\n", "servers:\n  a:\n    env:\n      # first\n\n      A: s3cret\n      B: 's3cret'x\n",
		"servers:\n  a:\n    environment:\n      - A=s3cret\n      - B: s3cret: x\n", "servers: {a: {ready: {token: s3cret, http: ${x}}}}\n", "servers: {a: {\"env\": {A: s3cret: x}}}\n",
		"servers: {a: {env: {A: *s3cret}}}\n", "servers:\n  a:\n    env:\n\tA: s3cret\n",
	} {
		_, err := Load(write(t, text), testOptions)
		var errs Errors
		if !errors.As(err, &errs) || len(errs) != 1 || errs[0].Text != "" || errs[0].Hint == "" || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", text, err)
		}
	}
	_, err := Load(write(t, "servers:\n  a:\n    env: {A: b}\n    args: [${x}]\n"), testOptions)
	if errs := (Errors)(nil); !errors.As(err, &errs) || errs[0].Text != "    args: [${x}]" {
		t.Errorf("the line is not shown: %v", err)
	}
}
