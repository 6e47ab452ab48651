package recipes

import (
	"slices"
	"strings"
	"testing"
)

// What a shell would have filled in, and a second say about an address, are noted;
// what a shell does fill in, and what is escaped, is not.
func TestSlips(t *testing.T) {
	const as, home = " stays as it is, for no shell sees it: write ", `${HOME}/… (unless the program knows what ~ is)`
	for text, want := range map[string][]string{
		`vars: {m: x/y}
servers: {a: {engine: vllm, model: $m, args: [--x, "$MODEL-1"]}}`: {"a: model: $m" + as + "${m} (line 2)", "a: args: $MODEL" + as + "${MODEL} (line 2)"},
		`servers: {a: {command: "serve $HOME/$port $NONE $$HOME ${MODEL:-$HOME}", port: 9000, replicas: 2}}`:          {"a-1: command: $HOME" + as + "${HOME} (line 1)", "a-1: command: $port" + as + "${port} (line 1)"},
		`servers: {a: {command: [x, $KEY], env: {KEY: k, TOKEN: $HF_TOKEN, PW: "a$HOME", HF_HOME: ~/h, CACHE: ~/c}}}`: {"a: command: $KEY" + as + "${KEY} (line 1)", "a: env TOKEN: $HF_TOKEN" + as + "${HF_TOKEN} (line 1)", "a: env CACHE: the ~" + as + home},
		`servers: {a: {engine: pilot, ready: {http: /, headers: {X-A: "Bearer $HF_TOKEN", X-B: "$nope"}}}, b: {engine: pilot, port: 1, ready: {http: /, api_key: $HF_TOKEN}}}`: {
			"a: ready's header X-A: $HF_TOKEN" + as + "${HF_TOKEN} (line 1)", "b: ready's api_key: $HF_TOKEN" + as + "${HF_TOKEN} (line 1)"},
		`vars: {v: 1}
servers: {a: {command: "echo $v $HOME", shell: true}, b: {command: "v=2; for w in 1; do echo $v $w; done", shell: true}, c: {command: [sh, -c, 'echo $HOME ~/x $v'], args: [$HOME]},
  d: {command: [python, -c, 'print("$HOME")']}, e: {command: x, before: 'fetch $v', ready: {exec: [ask, $v]}, port: 1}, f: {command: x, before: {command: [bash, -c, $HOME]}}}`: {
			"a: command: $v" + as + "${v} (line 2)", "c: command: $v" + as + "${v} (line 2)", "e: before: $v" + as + "${v} (line 3)", "e: ready's exec: $v" + as + "${v} (line 3)"},
		`vars: {m: ~/models}
servers: {a: {engine: llama-server, model: ~/m.gguf, args: [--models-dir, "${m}", --x=~/y, "~/${HF_TOKEN}"], dir: ~/d}, b: {command: "x ~/y", port: 1}}`: {
			`a: args: the ~ of "${m}"` + as + home, `a: args: the ~ of "--x=~/y"` + as + home, `a: args: the ~ of "~/${HF_TOKEN}"` + as + home, `b: command: the ~` + as + home},
		`servers: {a: {engine: ollama, env: {OLLAMA_HOST: 0.0.0.0}}, b: {engine: ollama, port: 2, env: {OLLAMA_HOST: "0.0.0.0:${port}", OTHER: x}}}`: {
			"a: env OLLAMA_HOST replaces what hob tells ollama with host: and port:, and hob asks where those say: use them instead"},
		`servers: {a: {engine: vllm, model: m, args: [--port, "${P:-9000}", --host=0.0.0.0]}, b: {engine: vllm, model: m, port: 1, args: [--port=1, --host]}, c: {engine: vllm, model: m, port: 2, command: x, args: [--port, 9000]}}`: {
			"a: args: hob gives vllm its --host already, and asks where that says: write host: 0.0.0.0 instead", "a: args: hob gives vllm its --port already, and asks where that says: write port: ${P:-9000} instead"},
		`servers: {a: {engine: vllm, model: m, args: ["--max-model-len 8192", "--x=1 2", "--x a b", "-e x", "--say ${HF_TOKEN}"]}, b: {command: [sh, "--x y"], port: 1}}`: {
			`a: args: "--max-model-len 8192" is one word to the program: write --max-model-len, 8192 (line 1)`, `a: args: "--say ${HF_TOKEN}" is one word to the program: write --say, "${HF_TOKEN}" (line 1)`},
		`jobs:
  a: {command: "get x && list"}
  b: {command: [get, x, "&&", list]}
  c: {command: 'get x > log.txt 2>&1'}
  d: {command: "TOKEN=hf_s3cret get x"}
  e: {command: 'cut -d "|" x ''a && b'' \; ${MODEL:-a && b} -exec a;b x>y --n=<1> k&r'}
  f: {command: 'get $(which x)'}
  g: {command: get x | tee log, shell: true}
  h: {command: [find, ., -exec, x, ;]}
  i: {command: sh -c 'a && b'}
  j: {command: 'a; b'}`: {
			"a: command: && is a word like any other, for no shell sees it: say shell: true (line 2)",
			"b: command: && is a word like any other, for no shell sees it: write the command as text, and say shell: true (line 3)",
			"c: command: > is a word like any other, for no shell sees it: say shell: true (line 4)",
			"d: command: it begins with the setting of a variable, which is taken for the program, for no shell sees it: write it under env (line 5)",
			"f: command: $( is a word like any other, for no shell sees it: say shell: true (line 7)",
			"j: command: ; is a word like any other, for no shell sees it: say shell: true (line 11)"},
	} {
		r, err := Load(write(t, text), testOptions)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if !slices.Equal(r.Notes, want) {
			t.Errorf("%s\nnotes %s\n want %s", text, strings.Join(r.Notes, "\n      "), strings.Join(want, "\n      "))
		}
		if strings.Contains(strings.Join(r.Notes, ""), "s3cret") {
			t.Errorf("a secret is in %q", r.Notes)
		}
	}
}
