package convert_test

import (
	"errors"
	"slices"
	"testing"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"hob/recipes"
	"hob/recipes/convert"
)

// keys of each format, and texts that have gone wrong somewhere: in YAML, in a
// shell, in tmux, in hob's own language.
var (
	keys = map[convert.Kind][]string{
		convert.Tmuxinator: {"name", "root", "windows", "panes", "layout", "pre", "pre_window", "startup_pane", "startup_window", "rbenv", "on_project_start", "editor", "x y"},
		convert.Tmuxp: {"session_name", "windows", "panes", "window_name", "shell_command", "shell_command_before", "start_directory", "environment",
			"focus", "layout", "before_script", "shell", "window_shell", "cmd", "enter", "title", "A"},
		convert.LlamaSwap:  {"models", "macros", "cmd", "proxy", "env", "checkEndpoint", "groups", "members", "startPort", "healthCheckTimeout", "m1", "M1", "ttl", "name", "description"},
		convert.VLLMRecipe: {"meta", "title", "model", "model_id", "base_args", "base_env", "features", "args", "env", "variants", "default", "extra_args", "extra_env", "hardware_overrides", "opt_in_features", "vram_minimum_gb", "modes", "strategy_overrides", "single_node_tp", "tp"},
		convert.VLLMConfig: {"model", "port", "host", "max-model-len", "lora_modules", "compilation-config", "x"},
	}
	texts = []string{"", "a", "vllm serve m --port 8000", "llama-server --port ${PORT}", "ollama serve", "OLLAMA_HOST=127.0.0.1:5 ollama serve", "cd /x && exec htop", "${port}", "${X", "$$", "$", "${env.HOME}",
		"a: b", "# x", "- x", "*x", "&x", "!x", "%x", "@x", "`x`", "'", `"`, "\\", " lead", "trail ", "a\nb", "\n\na", "a\n  b\n c\n", "\ta", "a\tb", "caf\u00e9", "\u2028", "\ufeff", "\u0085", "\ufffd", "\x1b[31m", "\x7f",
		"yes", "null", "~", "1", "0x1f", "1e3", "2020-01-01", "true", "http://127.0.0.1:9", "http://h/", "none", "/health", "health", "8000", "70000", "-1", "main-vertical", "b25f,80x24,0,0{40x24,0,0,1,39x24,41,0,2}",
		"#{pane_id}", "#(touch x)", "A=b", "CUDA_VISIBLE_DEVICES=0,1", "CUDA_VISIBLE_DEVICES=", "A B=c", "--flag", "blank", "pane", "default", "<%= ENV['X'] %>", "<% x %>", "~/x", "../x", "./", "..", "models", "docker run x -p ${PORT}:1", "zsh", "{}", "[]"}
)

func value(t *rapid.T, words []string, depth int) *yaml.Node {
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	switch {
	case kind < 4 && depth > 0:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom(words), 0, 5, rapid.ID).Draw(t, "keys") {
			n.Content = append(n.Content, text(k), value(t, words, depth-1))
		}
		return n
	case kind < 6 && depth > 0:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			n.Content = append(n.Content, value(t, words, depth-1))
		}
		return n
	case kind == 6:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "~"}
	case kind == 7:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: rapid.SampledFrom([]string{"0", "5", "8000", "99999", "-3"}).Draw(t, "number")}
	}
	return text(rapid.SampledFrom(texts).Draw(t, "text"))
}

func text(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
}

// shaped is a document with the skeleton of its format, so that what is read lies
// at the places that are looked at.
func shaped(t *rapid.T, kind convert.Kind) *yaml.Node {
	words := keys[kind]
	v := func(depth int) *yaml.Node { return value(t, words, depth) }
	pairs := func(kv ...*yaml.Node) *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Content: kv} }
	list := func(items ...*yaml.Node) *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode, Content: items} }
	key := func() *yaml.Node { return text(rapid.SampledFrom(texts).Draw(t, "name")) }
	root := v(2)
	if root.Kind != yaml.MappingNode {
		root = pairs()
	}
	add := func(name string, n *yaml.Node) {
		for i := 0; i < len(root.Content); i += 2 {
			if root.Content[i].Value == name {
				root.Content[i+1] = n
				return
			}
		}
		root.Content = append(root.Content, text(name), n)
	}
	switch kind {
	case convert.Tmuxinator:
		add("windows", list(pairs(key(), v(1)), pairs(key(), pairs(text("layout"), key(), text("panes"), list(v(0), pairs(key(), v(1)), v(1)))), v(1)))
	case convert.Tmuxp:
		add("windows", list(pairs(text("window_name"), key(), text("panes"), list(v(0), pairs(text("shell_command"), v(1), text("environment"), pairs(text("A"), key()))), text("layout"), key()), v(2)))
	case convert.LlamaSwap:
		model := func() *yaml.Node {
			command := text("serve ${m1} " + rapid.SampledFrom(texts).Draw(t, "command"))
			m := pairs(text("cmd"), command, text("checkEndpoint"), key(), text("macros"), pairs(text("m1"), key()), text("description"), key())
			if rapid.Bool().Draw(t, "proxied") {
				m.Content = append(m.Content, text("proxy"), text(rapid.SampledFrom([]string{"http://127.0.0.1:8000", "http://h:${PORT}", "https://h", "x"}).Draw(t, "proxy")))
			}
			if rapid.Bool().Draw(t, "with env") {
				m.Content = append(m.Content, text("env"), list(text("A="+rapid.SampledFrom(texts).Draw(t, "env"))))
			}
			return m
		}
		add("models", pairs(text("one"), model(), text("One"), model(), text("a/b:c"), pairs(text("cmd"), text("vllm serve m --port 8000"))))
	case convert.VLLMRecipe:
		add("model", pairs(text("model_id"), text("a/b"), text("base_args"), list(key(), key()), text("base_env"), pairs(text("A"), key())))
		add("variants", pairs(text("default"), pairs(text("extra_args"), list(key())), key(), pairs(text("model_id"), key(), text("description"), key()), text("Default"), pairs()))
	case convert.VLLMConfig:
		add("model", key())
		add("served-model-name", v(2))
	}
	return root
}

// Whatever stands at the places that a format has: an error, or a recipe that is
// right, in which every text is what it was. Beside the random files of each format
// there are a hundred that are the same in every run: on those it is held that the
// check saw right files at all, which random ones may lack by chance.
func TestAnyContentGivesARightRecipe(t *testing.T) {
	for kind := range keys {
		t.Run(string(kind), func(t *testing.T) {
			file := rapid.Custom(func(t *rapid.T) []byte {
				source, err := yaml.Marshal(shaped(t, kind))
				if err != nil {
					t.Fatal(err)
				}
				return source
			})
			rapid.Check(t, func(t *rapid.T) { converts(t, kind, file.Draw(t, "file")) })
			right := 0
			for seed := range 100 {
				if converts(t, kind, file.Example(seed)) {
					right++
				}
			}
			if right < 10 {
				t.Errorf("only %d files of 100 are right: the check sees next to nothing", right)
			}
		})
	}
}

// converts reports whether a file became a recipe.
func converts(t rapid.TB, kind convert.Kind, source []byte) bool {
	res, err := convert.Convert(convert.Source{File: "x", Text: source, From: kind})
	if err != nil {
		var errs recipes.Errors
		if !errors.As(err, &errs) || slices.ContainsFunc(errs, func(e *recipes.Error) bool { return e.Line < 1 || e.Column < 1 }) {
			t.Fatalf("no error of a file: %v\n%s", err, source)
		}
		return false
	}
	if _, err := recipes.LoadText("hob.yaml", []byte(res.Recipe), recipes.Options{Getenv: func(string) string { return "x" }}); err != nil {
		t.Fatalf("%v\n%s\nof\n%s", err, res.Recipe, source)
	}
	return true
}

// A text comes out of the recipe as it went in: dollars, quotes, line ends and all.
func TestTextsComeThrough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want string
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			want += rapid.SampledFrom(texts).Draw(t, "part")
		}
		want = "x" + want
		source, err := yaml.Marshal(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{text("model"), text("m"), text("served-model-name"), text(want)}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := convert.Convert(convert.Source{File: "x", Text: source, From: convert.VLLMConfig})
		if err != nil {
			t.Fatal(err)
		}
		r, err := recipes.LoadText("hob.yaml", []byte(res.Recipe), recipes.Options{})
		if err != nil {
			t.Fatal(err)
		}
		argv, _ := r.Tasks[0].BindLate(recipes.Late{Port: 1})
		if got := argv[len(argv)-1]; got != want {
			t.Fatalf("%q became %q", want, got)
		}
	})
}
