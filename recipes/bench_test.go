package recipes

import (
	"fmt"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// twoHundred is a recipe of 200 servers as a person would write them.
func twoHundred() []byte {
	var b strings.Builder
	b.WriteString("name: big\nvars: {model: Qwen/Qwen3-8B, root: /data}\nservers:\n")
	for i := range 200 {
		fmt.Fprintf(&b, `  llm-%d:
    engine: vllm
    model: ${model}
    port: %d
    gpus: [%d]
    args: [--max-model-len, "8192", --download-dir, "${root}/models", --served-model-name, llm-%d]
    env: {HF_HOME: "${root}/hf", NAME: "llm-%d at ${port}"}
    ready: {http: /health, timeout: 15m}
    stop: {grace: 30s}
    restart: {policy: on-failure, max: 3}
`, i, 20000+i, i%8, i, i)
		if i > 0 {
			fmt.Fprintf(&b, "    depends_on: [llm-%d]\n", i-1)
		}
	}
	return []byte(b.String())
}

// BenchmarkCheck200 is what hob check costs for 200 servers beyond the start of
// the process; the bare parse of the same text is the measure beside it.
func BenchmarkCheck200(b *testing.B) {
	text := twoHundred()
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			if _, err := load(newSource("x", "/", text), text, "x", testOptions); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			var n yaml.Node
			if err := yaml.Unmarshal(text, &n); err != nil {
				b.Fatal(err)
			}
		}
	})
}
