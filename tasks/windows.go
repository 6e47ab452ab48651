package tasks

import (
	"cmp"
	"slices"

	"hob/recipes"
	"hob/tmux"
)

// windowPlan is where each task's pane goes: the windows of the layout in their
// order, then one for each task that is in none, in the recipe's.
type windowPlan []recipes.Window

func planWindows(r *recipes.Recipe) windowPlan {
	plan := windowPlan(slices.Clone(r.Layout))
	for _, t := range r.Tasks {
		if plan.index(t.Name) < 0 {
			plan = append(plan, recipes.Window{Name: t.Name, Panes: []string{t.Name}})
		}
	}
	return plan
}

// index is which window a task's pane is in, -1 when in none.
func (p windowPlan) index(task string) int {
	return slices.IndexFunc(p, func(w recipes.Window) bool { return slices.Contains(w.Panes, task) })
}

// window is a task's window.
func (p windowPlan) window(task string) recipes.Window {
	if i := p.index(task); i >= 0 {
		return p[i]
	}
	return recipes.Window{Name: task, Panes: []string{task}}
}

// shares reports whether a task's window has others.
func (p windowPlan) shares(task string) bool { return len(p.window(task).Panes) > 1 }

// sharing are the tasks whose windows have several panes.
func (p windowPlan) sharing() []string {
	var all []string
	for _, w := range p {
		if len(w.Panes) > 1 {
			all = append(all, w.Panes...)
		}
	}
	return all
}

// spawn says where a task's pane is made: after the nearest of those that come
// before it in its window, else in front of the nearest that comes after it, else
// in a window of its own at its place.
func (p windowPlan) spawn(task string, have map[string]tmux.Pane) tmux.Spawn {
	w := p.window(task)
	at := slices.Index(w.Panes, task)
	for _, before := range slices.Backward(w.Panes[:at]) {
		if pane, ok := have[before]; ok {
			return tmux.Spawn{Window: pane.ID, Split: true, Layout: w.Split}
		}
	}
	for _, after := range w.Panes[at+1:] {
		if pane, ok := have[after]; ok {
			return tmux.Spawn{Window: pane.ID, Split: true, Before: true, Layout: w.Split}
		}
	}
	return tmux.Spawn{Window: w.Name, Index: p.index(task) + 1}
}

// look is what a person sees of a task's pane.
func (p windowPlan) look(task string) tmux.Look {
	w := p.window(task)
	return tmux.Look{Title: task, Focus: task == focus(w), Front: p.index(task) == 0}
}

// focus is the pane of a window that has the cursor.
func focus(w recipes.Window) string { return cmp.Or(w.Focus, w.Panes[0]) }

// visit is the order in which a person who comes to the run looks for a pane: what
// has the cursor in each window, then the rest.
func (p windowPlan) visit() []string {
	var order []string
	for _, w := range p {
		order = append(order, focus(w))
	}
	for _, w := range p {
		for _, task := range w.Panes {
			if !slices.Contains(order, task) {
				order = append(order, task)
			}
		}
	}
	return order
}
