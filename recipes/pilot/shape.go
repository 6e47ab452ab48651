package pilot

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// shape is an engine's shape, as flags of serve.
type shape map[string][]string

// shapes are the engines that the pilot can stand for: which processes they
// are, when they begin to answer, and how they end. What is not listed is the
// flag's default.
var shapes = map[string]shape{
	"pilot": {"core": {"pilot: core"}, "worker": {"pilot: worker %d"}},

	// The API process keeps its name, the rest is retitled. It listens when all
	// is loaded. On one GPU the core works itself. Core and workers outlive a server
	// that is killed hard (vllm#55510), and a second TERM leaks them (vllm#50529).
	"vllm": {
		"core": {"VLLM::EngineCore"}, "worker": {"VLLM::Worker_TP%d"}, "lone": {noWorker}, "retitle": {"true"}, "late-listen": {"true"},
		"outlive": {"true"}, "ignore-hup": {"true"},
		"leak-on-second-term": {"true"},
	},
	// Schedulers are children of the server and outlive it (sglang#31645).
	"sglang": {
		"worker": {"sglang::scheduler_TP%d"}, "lone": {"sglang::scheduler"}, "extra": {"sglang::detokenizer"}, "retitle": {"true"},
		"outlive": {"true"}, "ignore-hup": {"true"},
	},
	// The API answers at once, whether a model is loaded or not. The runner
	// outlives a server that is killed hard or hung up (ollama#5642).
	"ollama": {
		"worker": {"ollama runner"}, "retitle": {"true"}, "early-health": {"true"}, "outlive": {"true"}, "ignore-hup": {"true"},
		"route": {"/{$}", "/api/version", "/api/tags", "/api/ps"},
	},
	// One process: 503 while loading, and no signal handlers until loaded.
	"llama-server": {"late-signals": {"true"}},
	// A launcher over a router that listens and one shard a GPU.
	"tgi": {
		"launcher": {"true"}, "worker": {"text-generation-server shard %d"}, "retitle": {"true"}, "late-listen": {"true"},
		"route": {"/info"},
	},
	"tei":      {"late-listen": {"true"}, "route": {"/info"}},
	"infinity": {"late-listen": {"true"}, "route": {"/models"}},
	// start.sh over Python: the listener is a child of the command, and lives on
	// when a signal has ended the shell.
	"tabbyapi": {"launcher": {"true"}, "mute-launcher": {"true"}, "outlive": {"true"}, "late-listen": {"true"}, "route": {"/v1/model"}},
	"lmdeploy": {"late-listen": {"true"}},
	// Says that it serves before it knows whether the model loads.
	"mlx-lm": {"early-health": {"true"}},
	// A PyInstaller program: the parent unpacks, the child serves.
	"koboldcpp": {
		"launcher": {"true"}, "late-listen": {"true"}, "route": {"/api/v1/model"},
	},
	// Loads its model before it binds its port.
	"whisper-server": {"late-listen": {"true"}},
	"comfyui":        {"early-health": {"true"}, "route": {"/system_stats"}},
}

// shapeNames are the engines that the pilot can stand for, sorted.
func shapeNames() []string { return slices.Sorted(maps.Keys(shapes)) }

func listOfShapes() string { return strings.Join(shapeNames(), ", ") }

// apply sets the flags of the shape that were not given.
func (s shape) apply(f *pflag.FlagSet) error {
	for name, values := range s {
		if f.Changed(name) {
			continue
		}
		for _, value := range values {
			if err := f.Set(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// parallelFlags are what engines call the number of GPUs that one model spans.
var parallelFlags = []string{"--tensor-parallel-size", "-tp", "--tp", "--tp-size", "--num-shard"}

// keyOf is the key that the engine would ask for: of its own flag, else of a variable.
func keyOf(env, flags, args []string) string {
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		if slices.Contains(flags, name) && !joined && i+1 < len(args) {
			value = args[i+1]
		}
		if slices.Contains(flags, name) && value != "" {
			return value
		}
	}
	for _, name := range env {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}

// parallelism is how many workers the engine's own arguments ask for; 0 when they do not say.
func parallelism(args []string) int {
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		if !slices.Contains(parallelFlags, name) {
			continue
		}
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		if n, err := strconv.Atoi(value); err == nil {
			return n
		}
	}
	return 0
}
