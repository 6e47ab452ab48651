package recipes

import (
	"fmt"
	"strings"
	"testing"
)

// What an engine expects may depend on how it is started.
func TestExpects(t *testing.T) {
	for args, want := range map[string]string{
		"engine: vllm, model: m": "cuda 12.0, files 65535",
		"engine: vllm, model: m, args: [--tensor-parallel-size, '2']":   "cuda 12.0, files 65535, shm 1GiB",
		"engine: vllm, model: m, args: [--tensor-parallel-size=4]":      "cuda 12.0, files 65535, shm 1GiB",
		"engine: vllm, model: m, args: [--tensor-parallel-size, '1']":   "cuda 12.0, files 65535",
		"engine: vllm, model: m, gpus: none":                            "files 65535",
		"engine: llama-server, model: m.gguf":                           "",
		"engine: llama-server, model: m.gguf, args: [--mlock, --jinja]": "memlock unlimited",
		"engine: llama-server, model: m.gguf, args: [--mlock]":          "memlock unlimited",
		"command: vllm": "",
	} {
		for _, rehearse := range []bool{false, true} {
			o := testOptions
			o.Rehearse = rehearse
			r, err := Load(write(t, "servers: {a: {"+args+"}}"), o)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range r.Tasks[0].Expects {
				got = append(got, fmt.Sprint(e.What, " ", e.AtLeast))
			}
			if text := strings.Join(got, ", "); text != want && !rehearse || rehearse && text != "" {
				t.Errorf("%s, rehearsed %v: %s", args, rehearse, text)
			}
		}
	}
}
