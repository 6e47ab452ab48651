//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hob/identity/porttest"
	"hob/recipes"
)

// BenchmarkCheck is `hob check` of 200 servers against `hob version`, taken by
// turns: what reading a recipe costs beyond the start of a process.
func BenchmarkCheck(b *testing.B) {
	x := newBench(b)
	var s strings.Builder
	s.WriteString("name: big\nvars: {model: Qwen/Qwen3-8B}\nservers:\n")
	for i := range 200 {
		fmt.Fprintf(&s, "  llm-%d: {engine: vllm, model: \"${model}\", port: %d, gpus: [%d], args: [--max-model-len, \"8192\"], env: {NAME: llm-%d}}\n", i, 20000+i, i%8, i)
	}
	file := filepath.Join(x.dir, "big.yaml")
	if err := os.WriteFile(file, []byte(s.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	var check, start []time.Duration
	for b.Loop() {
		for range 15 {
			start = append(start, x.run(x.hob, "version"))
			check = append(check, x.run(x.hob, "check", file))
		}
	}
	b.ReportMetric(milliseconds(median(check)-median(start)), "ms/beyond-start")
	b.ReportMetric(milliseconds(median(start)), "ms/start")
}

// BenchmarkUpRehearsed is `hob up --rehearse` of 50 servers in five layers, each of
// ten that wait for the layer before, against the very same servers started bare
// and asked for /health in the same order, taken by turns.
func BenchmarkUpRehearsed(b *testing.B) {
	const servers, layer = 50, 10
	x := newBench(b)
	file, bare := x.layers(servers, layer)
	var ours, theirs []time.Duration
	for b.Loop() {
		for range 3 {
			theirs = append(theirs, bare())
			ours = append(ours, x.run(x.hob, "up", file, "--rehearse"))
			x.run(x.hob, "down")
		}
	}
	b.ReportMetric(milliseconds(median(ours)), "ms/up")
	b.ReportMetric(milliseconds(median(theirs)), "ms/bare")
	b.ReportMetric(float64(median(ours))/float64(median(theirs)), "ratio")
	b.ReportMetric(milliseconds(median(ours)-median(theirs))/servers, "ms/server")
}

// layers writes the recipe, and gives what starts its servers without hob.
func (x *bench) layers(n, layer int) (file string, bare func() time.Duration) {
	x.b.Helper()
	var s strings.Builder
	s.WriteString("name: layers\nservers:\n")
	for i := range n {
		fmt.Fprintf(&s, "  s%d: {engine: vllm, model: m, port: %d", i, x.freePort())
		if i >= layer {
			fmt.Fprintf(&s, ", depends_on: [s%d]", i-layer)
		}
		s.WriteString("}\n")
	}
	file = filepath.Join(x.dir, "layers.yaml")
	if err := os.WriteFile(file, []byte(s.String()), 0o600); err != nil {
		x.b.Fatal(err)
	}
	r, err := recipes.Load(file, recipes.Options{Self: x.hob, Rehearse: true})
	if err != nil {
		x.b.Fatal(err)
	}
	return file, func() time.Duration { return x.bare(r, layer) }
}

func (x *bench) freePort() int {
	port, err := porttest.Free()
	if err != nil {
		x.b.Fatal(err)
	}
	return port
}

// bare starts the servers of each layer and waits until they answer.
func (x *bench) bare(r *recipes.Recipe, layer int) time.Duration {
	var running []*exec.Cmd
	defer func() {
		for _, c := range running {
			_ = c.Process.Signal(syscall.SIGTERM)
		}
		for _, c := range running {
			_ = c.Wait()
		}
	}()
	began := time.Now()
	for len(r.Tasks) > len(running) {
		var wg sync.WaitGroup
		for _, t := range r.Tasks[len(running):min(len(running)+layer, len(r.Tasks))] {
			argv, _ := t.BindLate(recipes.Late{Port: t.Port.Number})
			c := exec.Command(argv[0], argv[1:]...)
			c.Env = append(x.env, "SPT_NOENV=1")
			if err := c.Start(); err != nil {
				x.b.Fatal(err)
			}
			running = append(running, c)
			wg.Go(func() { untilHealthy(t.Port.Number) })
		}
		wg.Wait()
	}
	return time.Since(began)
}

func untilHealthy(port int) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		resp, err := http.Get("http://127.0.0.1:" + strconv.Itoa(port) + "/health")
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return
		}
	}
}
