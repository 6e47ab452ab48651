package recipes

import (
	"errors"
	"fmt"
	"slices"
)

// ErrNoTask is a name that is neither a task of the recipe nor a group.
var ErrNoTask = errors.New("no such task")

// Select are the tasks that the names stand for (tasks, groups, or what has
// replicas) and all that these depend on, in start order; all tasks for no name.
func (r *Recipe) Select(names ...string) ([]Task, error) {
	if len(names) == 0 {
		return r.Tasks, nil
	}
	want := map[string]bool{}
	for _, name := range names {
		found := false
		for i := range r.Tasks {
			if t := &r.Tasks[i]; t.Named(name) {
				found = true
				r.need(t.Name, want)
			}
		}
		if !found {
			return nil, r.noTask(name)
		}
	}
	var picked []Task
	for _, t := range r.Tasks {
		if want[t.Name] {
			picked = append(picked, t)
		}
	}
	return picked, nil
}

// Named reports whether the name stands for the task, alone or with others.
func (t *Task) Named(name string) bool {
	return t.Name == name || slices.Contains(t.Groups, name) || t.Replica > 0 && t.Name == fmt.Sprintf("%s-%d", name, t.Replica)
}

// need adds a task and all that it depends on.
func (r *Recipe) need(name string, want map[string]bool) {
	if want[name] {
		return
	}
	want[name] = true
	for _, t := range r.Tasks {
		if t.Name != name {
			continue
		}
		for _, dep := range t.DependsOn {
			r.need(dep.Task, want)
		}
	}
}

func (r *Recipe) noTask(name string) error {
	var all []string
	for _, t := range r.Tasks {
		all = append(append(all, t.Name), t.Groups...)
	}
	if near := nearest(name, all); near != "" {
		return fmt.Errorf("%w: the recipe %s has no %s; did you mean %s?", ErrNoTask, r.Name, name, near)
	}
	return fmt.Errorf("%w: the recipe %s has no %s; hob check shows what it has", ErrNoTask, r.Name, name)
}
