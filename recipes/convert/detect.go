package convert

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"hob/recipes"
)

// ErrUnsure is a file of which it cannot be told whose it is.
var ErrUnsure = errors.New("whose file this is cannot be told")

// detect tells by a file's name and content whose it is. It never guesses: what
// two tools could have written is ErrUnsure.
func detect(file string, text []byte) (Kind, error) {
	if isProcfileName(base(file)) {
		return Procfile, nil
	}
	root, err := recipes.ReadValue(file, []byte((&reader{}).erb(string(text))))
	if err != nil {
		if looksLikeProcfile(file, string(text)) {
			return Procfile, nil
		}
		return "", err
	}
	if root.Form == recipes.FormMapping {
		if hasAny(root, "servers", "jobs", "shells") && !hasAny(root, "models", "windows") {
			return "", fmt.Errorf("%w: it looks like a recipe of hob already", ErrUnsure)
		}
		if kinds := kindsOf(root); len(kinds) == 1 {
			return kinds[0], nil
		} else if len(kinds) > 1 {
			return "", fmt.Errorf("%w: it could be %s", ErrUnsure, join(kinds))
		}
	}
	if looksLikeProcfile(file, string(text)) {
		return Procfile, nil
	}
	return "", ErrUnsure
}

func join(kinds []Kind) string {
	var all []string
	for _, k := range kinds {
		all = append(all, string(k))
	}
	return strings.Join(all, " or ")
}

func hasAny(v *recipes.Value, keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return v.Get(k) != nil })
}

func isProcfileName(name string) bool {
	return name == "Procfile" || strings.HasPrefix(name, "Procfile.") || strings.HasSuffix(name, ".procfile")
}

// kindsOf are the kinds that a mapping could be.
func kindsOf(root *recipes.Value) []Kind {
	var kinds []Kind
	for _, k := range []struct {
		kind Kind
		is   func(*recipes.Value) bool
	}{
		{Tmuxp, isTmuxp}, {Tmuxinator, isTmuxinator}, {LlamaSwap, isLlamaSwap}, {VLLMRecipe, isVLLMRecipe}, {VLLMConfig, isVLLMConfig},
	} {
		if k.is(root) {
			kinds = append(kinds, k.kind)
		}
	}
	return kinds
}

// isTmuxp: windows are mappings with keys of tmuxp's own.
func isTmuxp(root *recipes.Value) bool {
	windows := root.Get("windows")
	if windows == nil {
		return false
	}
	return root.Get("session_name") != nil || slices.ContainsFunc(windows.Items, func(w *recipes.Value) bool {
		return hasAny(w, "window_name", "panes", "shell_command", "shell_command_before", "start_directory")
	})
}

// isTmuxinator: windows are names, each with what is in it.
func isTmuxinator(root *recipes.Value) bool {
	windows := root.Get("windows")
	if windows == nil {
		windows = root.Get("tabs")
	}
	return windows != nil && (windows.Form == recipes.FormList || hasAny(root, "name", "project_name")) && !isTmuxp(root)
}

func isLlamaSwap(root *recipes.Value) bool {
	models := root.Get("models")
	if models == nil || models.Form != recipes.FormMapping {
		return false
	}
	return slices.ContainsFunc(models.Pairs, func(p recipes.ValuePair) bool { return p.Value.Get("cmd") != nil })
}

func isVLLMRecipe(root *recipes.Value) bool {
	return root.Get("model").Get("model_id") != nil
}

// vllmWords are options of vllm serve that no other of these formats has as a key.
var vllmWords = []string{
	"tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size", "max-model-len", "gpu-memory-utilization", "served-model-name",
	"max-num-seqs", "max-num-batched-tokens", "kv-cache-dtype", "enable-prefix-caching", "uvicorn-log-level", "trust-remote-code",
	"tool-call-parser", "reasoning-parser", "enforce-eager", "quantization", "dtype", "compilation-config", "no-enable-prefix-caching",
}

func isVLLMConfig(root *recipes.Value) bool {
	if root.Get("model").Get("model_id") != nil || hasAny(root, "windows", "models", "services") {
		return false
	}
	if slices.ContainsFunc(root.Pairs, func(p recipes.ValuePair) bool {
		return slices.Contains(vllmWords, strings.ReplaceAll(p.Key.Text, "_", "-"))
	}) {
		return true
	}
	return root.Get("model").Scalar() && root.Get("port").Scalar()
}

// otherWords are keys of other formats: a line that begins with one is not taken
// for a process.
var otherWords = []string{"name", "project_name", "root", "windows", "tabs", "session_name", "models", "model", "macros", "servers", "jobs", "shells", "services", "version", "vars"}

var procfileLine = lazy(`^([A-Za-z0-9_-]+):\s*(.+)$`)

// looksLikeProcfile reports whether every line is one of a Procfile, in a file
// whose name does not speak against it.
func looksLikeProcfile(file, text string) bool {
	for _, ext := range []string{".yaml", ".yml", ".json", ".toml", ".conf"} {
		if strings.HasSuffix(file, ext) {
			return false
		}
	}
	seen := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		m := procfileLine().FindStringSubmatch(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case m == nil || slices.Contains(otherWords, m[1]):
			return false
		default:
			seen = true
		}
	}
	return seen
}
