package tasks

import (
	"encoding/json"
	"fmt"
	"strings"

	"hob/recipes"
)

// group are the tasks that a recipe's group, or a name with replicas, stands for:
// GROUP where one run has it, RUN/GROUP elsewhere.
func (m *Manager) group(arg string, ns Names) ([]Name, error) {
	only, group, both := strings.Cut(arg, "/")
	if !both {
		only, group = "", arg
	}
	var found []Name
	var runs []string
	for _, run := range ns.Runs {
		if both && run != only {
			continue
		}
		if members := m.members(run, group, ns.Tasks[run]); len(members) > 0 {
			found, runs = append(found, members...), append(runs, run)
		}
	}
	if len(runs) > 1 {
		return nil, usage("say which: "+runs[0]+"/"+group, "several runs have a group %q: %s", group, quoted(runs))
	}
	return found, nil
}

// members are those of a run's tasks that the name stands for by its recipe.
func (m *Manager) members(run, group string, have []string) []Name {
	r, err := m.Store.Run(run).Read()
	if err != nil {
		return nil // Names has told of it
	}
	resolved, err := r.recipe()
	if err != nil {
		return nil // of another hob, whose tasks can still be named one by one
	}
	var found []Name
	for _, name := range have {
		for _, t := range resolved.Tasks {
			if t.Name == name && name != group && t.Named(group) {
				found = append(found, Name{run, name})
			}
		}
	}
	return found
}

// recipe is the run's recipe as it was resolved, without the environment's values.
func (r *Run) recipe() (*recipes.Recipe, error) {
	var resolved recipes.Recipe
	if err := json.Unmarshal(r.Resolved, &resolved); err != nil {
		return nil, fmt.Errorf("the recipe of run %q, as it was recorded: %w", r.Name, err)
	}
	return &resolved, nil
}
