package tasks

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Names is what the state folder knows: each run with its tasks.
type Names struct {
	Runs  []string
	Tasks map[string][]string
	errs  map[string]error // runs whose record cannot be trusted
}

// Name is one task, or, with Task empty, a whole run.
type Name struct{ Run, Task string }

func (n Name) String() string {
	if n.Task == "" {
		return n.Run
	}
	return n.Run + "/" + n.Task
}

// Resolve reads RUN, RUN/TASK or a TASK that is unique. A run wins over a task
// of the same name.
func (ns Names) Resolve(arg string) (Name, error) {
	if run, task, both := strings.Cut(arg, "/"); both {
		return ns.exact(arg, run, task)
	}
	if !ValidName(arg) {
		return Name{}, notAName(arg)
	}
	if slices.Contains(ns.Runs, arg) {
		return Name{Run: arg}, nil
	}
	found := ns.withTask(arg)
	switch len(found) {
	case 0:
		return Name{}, ns.unknown("run or task", arg, ns.all())
	case 1:
		return found[0], nil
	}
	return Name{}, usage("say which", "several runs have a task %q: %s", arg, quoted(texts(found)))
}

func (ns Names) exact(arg, run, task string) (Name, error) {
	if !ValidName(run) || !ValidName(task) {
		return Name{}, notAName(arg)
	}
	if !slices.Contains(ns.Runs, run) {
		return Name{}, ns.unknown("run", run, ns.Runs)
	}
	if !slices.Contains(ns.Tasks[run], task) {
		return Name{}, ns.unknown("task of "+run, task, ns.Tasks[run])
	}
	return Name{run, task}, nil
}

func (ns Names) withTask(task string) []Name {
	var found []Name
	for _, run := range ns.Runs {
		if slices.Contains(ns.Tasks[run], task) {
			found = append(found, Name{run, task})
		}
	}
	return found
}

// all are the words that Resolve takes, for completion and for near names.
func (ns Names) all() []string {
	all := slices.Clone(ns.Runs)
	for _, run := range ns.Runs {
		for _, task := range ns.Tasks[run] {
			all = append(all, task, run+"/"+task)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Words are all runs and tasks as the command line takes them.
func (ns Names) Words() []string {
	words := slices.Clone(ns.Runs)
	for _, run := range ns.Runs {
		for _, task := range ns.Tasks[run] {
			words = append(words, run+"/"+task)
		}
	}
	return words
}

func (ns Names) unknown(what, name string, have []string) error {
	tip := "hob ps lists them"
	if near := Near(name, have); len(near) > 0 {
		tip = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return usage(tip, "there is no %s %q", what, name)
}

func notAName(arg string) error {
	return usage("names are small letters, digits, - and _, at most 41 of them", "%q is not the name of a run or task", arg)
}

func texts(names []Name) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = n.String()
	}
	return out
}

// Near are the names that somebody may have meant, nearest first, at most three.
func Near(name string, have []string) []string {
	type scored struct {
		name string
		far  int
	}
	var near []scored
	for _, h := range have {
		far := levenshtein.ComputeDistance(name, h)
		if strings.HasPrefix(h, name) {
			far = 1
		}
		if far <= max(1, (len(name)+1)/3) {
			near = append(near, scored{h, far})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int { return a.far - b.far })
	var out []string
	for _, s := range near[:min(3, len(near))] {
		out = append(out, s.name)
	}
	return out
}
