package recipes

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/go-envparse"
)

// env gathers the environment of a task: engine, GPUs, env_file, env. The later
// wins and stands where the first one stood.
func (l *loader) env(d *draft) {
	t := &d.task
	if d.engine != nil {
		t.setAll(l.filled(d.engine.tree.get("env"), d.own))
	}
	t.setGPUs(d.engine)
	for _, file := range d.node.get("env_file").texts() {
		l.envFile(d, file)
	}
	t.setAll(d.node.get("env"))
	t.EnvNames = []string{}
	for _, v := range t.Env {
		t.EnvNames = append(t.EnvNames, v.Name)
	}
}

func (t *Task) set(name, value string) {
	i := slices.IndexFunc(t.Env, func(v EnvVar) bool { return v.Name == name })
	if i < 0 {
		t.Env = append(t.Env, EnvVar{name, value})
		return
	}
	t.Env[i].Value = value
}

func (t *Task) setAll(n *node) {
	if n == nil {
		return
	}
	for _, p := range n.pairs {
		t.set(p.key.raw, p.value.str())
	}
}

// envFile reads NAME=value lines. The file's values are taken as they are.
func (l *loader) envFile(d *draft, n *node) {
	if n.bad {
		return
	}
	file := l.path(n, n.src.dir)
	text, err := readEnvFile(file)
	if errors.Is(err, fs.ErrNotExist) && l.rehearsed(d) {
		return // as its folder, it is on the machine that is rehearsed for
	}
	if err != nil {
		l.errs.add(n, "the path starts from the recipe's folder", "env_file %s: %v", n.quoted(), err)
		return
	}
	vars, err := envparse.Parse(bytes.NewReader(text))
	if at, ok := errors.AsType[*envparse.ParseError](err); ok { // its words never hold a value
		l.errs.add(n, "lines are NAME=value", "env_file %s, line %d: %v", n.quoted(), at.Line, at.Err)
		return
	}
	if err != nil {
		l.errs.add(n, "", "env_file %s: %v", n.quoted(), err)
		return
	}
	names := make([]string, 0, len(vars))
	for name := range vars {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		d.task.set(name, escapeLate(vars[name]))
	}
}

// readEnvFile reads a file, bounded; its errors do not repeat the path.
func readEnvFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fs.ErrNotExist
	case err == nil && info.Size() > maxBytes:
		return nil, fmt.Errorf("larger than %d bytes", maxBytes)
	case err == nil && !info.Mode().IsRegular():
		return nil, errors.New("no file")
	}
	text, err := os.ReadFile(file)
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	return text, err
}

// gpus reads the GPUs of a task.
func (l *loader) gpus(d *draft) {
	n := d.node.get("gpus")
	if n == nil {
		return
	}
	if n.form == mapping || n.str() == "auto" {
		if l.rehearsed(d) {
			return // there may be no GPU to choose
		}
		l.gpuAuto(d, n.get("auto"))
		return
	}
	words := n.words()
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], " ", "")
	}
	d.task.GPUs = strings.Join(words, ",")
	if n.form == sequence && len(words) == 0 {
		l.errs.add(n, "write none", "an empty list of GPUs")
	}
	seen := map[string]bool{}
	for one := range strings.SplitSeq(d.task.GPUs, ",") {
		if seen[one] {
			l.errs.add(n, "", "GPU %s is there twice", one)
		}
		seen[one] = true
	}
}

// gpuAuto is what is asked of GPUs that are chosen at the start.
func (l *loader) gpuAuto(d *draft, n *node) {
	a := GPUAuto{Count: max(1, n.get("count").number()), Memory: n.get("memory").size()}
	if a.Memory == 0 {
		a.Memory = needs(l.fact(d, "needs", needsRule)).GPUMemory
	}
	d.task.GPUs, d.task.GPUAuto = "auto", &a
}

// setGPUs chooses the GPUs by the environment. CUDA numbers by speed unless told
// to number as nvidia-smi does.
// https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars
func (t *Task) setGPUs(e *engine) {
	names, value := []string{"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}, t.GPUs
	if e != nil && e.tree.get("gpus").get("env") != nil {
		names = e.tree.get("gpus").get("env").words()
	}
	switch t.GPUs {
	case "", "all":
		return
	case "auto":
		value = "${gpus}"
		t.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
	case "none":
		value = ""
		if e != nil {
			value = e.tree.get("gpus").get("none").str()
		}
	default:
		t.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
	}
	for _, name := range names {
		t.set(name, value)
	}
}
