package recipes

import (
	"strconv"
	"strings"
)

// Late is what is only known when a task starts.
type Late struct {
	Port  int            // its own
	Ports map[string]int // those of the tasks that it depends on
	GPUs  string         // "0,1": the ones chosen for gpus: auto
}

// BindLate fills in what is only known at the start: argv and environment of the
// task. A variable whose value stays unknown is left out of the environment.
func (t *Task) BindLate(late Late) (argv []string, env []EnvVar) {
	argv = late.words(t.Command)
	for _, v := range t.Env {
		if value, ok := late.bind(v.Value); ok {
			env = append(env, EnvVar{v.Name, value})
		}
	}
	return argv, env
}

// BindReadyLate is how the task shows that it answers, likewise filled in; nil if up is ready.
func (t *Task) BindReadyLate(late Late) *Ready {
	if t.Ready == nil {
		return nil
	}
	r := *t.Ready
	r.Exec, r.Headers = late.words(t.Ready.Exec), nil
	for _, h := range t.Ready.Headers {
		value, _ := late.bind(h.Value)
		r.Headers = append(r.Headers, Header{h.Name, value})
	}
	return &r
}

// BindHooks are the task's hooks with all filled in.
func (t *Task) BindHooks(late Late) (before, afterReady, afterStop *Hook) {
	return late.hook(t.Before), late.hook(t.AfterReady), late.hook(t.AfterStop)
}

func (late Late) hook(h *Hook) *Hook {
	if h == nil {
		return nil
	}
	return &Hook{late.words(h.Command), h.Timeout}
}

func (late Late) words(argv []string) []string {
	var out []string
	for _, a := range argv {
		word, _ := late.bind(a)
		out = append(out, word)
	}
	return out
}

// bind fills in a text and reports whether all of it was known. A dollar more in
// front makes a reference plain text: "$${port}" is "${port}".
func (late Late) bind(s string) (string, bool) {
	if !strings.Contains(s, "${") {
		return s, true
	}
	known := true
	s = lateRef().ReplaceAllStringFunc(s, func(m string) string {
		if strings.HasPrefix(m, "$$") {
			return m[1:]
		}
		value := late.value(strings.TrimSuffix(strings.TrimPrefix(m, "${"), "}"))
		known = known && value != ""
		return value
	})
	return s, known
}

func (late Late) value(name string) string {
	port := late.Port
	switch task, _, other := strings.Cut(name, "."); {
	case name == "gpus":
		return late.GPUs
	case other:
		port = late.Ports[task]
	}
	if port == 0 {
		return ""
	}
	return strconv.Itoa(port)
}

// settle fills in a reference that is known already.
func (t *Task) settle(ref string, port int) {
	fill := func(s string) string {
		return lateRef().ReplaceAllStringFunc(s, func(m string) string {
			if m == ref {
				return strconv.Itoa(port)
			}
			return m
		})
	}
	all := [][]string{t.Command}
	for _, h := range []*Hook{t.Before, t.AfterReady, t.AfterStop} {
		if h != nil {
			all = append(all, h.Command)
		}
	}
	if t.Ready != nil {
		all = append(all, t.Ready.Exec)
		for i := range t.Ready.Headers {
			t.Ready.Headers[i].Value = fill(t.Ready.Headers[i].Value)
		}
	}
	for _, words := range all {
		for i := range words {
			words[i] = fill(words[i])
		}
	}
	for i := range t.Env {
		t.Env[i].Value = fill(t.Env[i].Value)
	}
}
