package tasks

import (
	"slices"
	"testing"

	"hob/recipes"
	"hob/tmux"
)

func TestWindowPlan(t *testing.T) {
	plan := planWindows(&recipes.Recipe{
		Tasks: []recipes.Task{{Name: "fetch"}, {Name: "c"}, {Name: "a"}, {Name: "b"}, {Name: "alone"}},
		Layout: []recipes.Window{
			{Name: "main", Split: "main-vertical", Panes: []string{"a", "b", "c"}, Focus: "b"},
			{Name: "other", Panes: []string{"alone"}},
		},
	})
	have := func(names ...string) map[string]tmux.Pane {
		panes := map[string]tmux.Pane{}
		for _, n := range names {
			panes[n] = tmux.Pane{ID: "%" + n}
		}
		return panes
	}
	for _, tt := range []struct {
		name string
		task string
		have map[string]tmux.Pane
		want tmux.Spawn
	}{
		{"the first of its window", "b", nil, tmux.Spawn{Window: "main", Index: 1}},
		{"after the one before", "b", have("a", "c"), tmux.Spawn{Window: "%a", Split: true, Layout: "main-vertical"}},
		{"after the nearest before", "c", have("a", "b"), tmux.Spawn{Window: "%b", Split: true, Layout: "main-vertical"}},
		{"in front of the nearest after", "a", have("c", "b"), tmux.Spawn{Window: "%b", Split: true, Before: true, Layout: "main-vertical"}},
		{"a window of the layout for one", "alone", have("a"), tmux.Spawn{Window: "other", Index: 2}},
		{"in no window of the layout", "fetch", have("a"), tmux.Spawn{Window: "fetch", Index: 3}},
		{"no task of the recipe as it is now", "gone", nil, tmux.Spawn{Window: "gone"}},
	} {
		got := plan.spawn(tt.task, tt.have)
		if got.Window != tt.want.Window || got.Index != tt.want.Index || got.Split != tt.want.Split || got.Before != tt.want.Before || got.Layout != tt.want.Layout {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
	if got := plan.visit(); !slices.Equal(got, []string{"b", "alone", "fetch", "a", "c"}) {
		t.Errorf("visited in the order %q", got)
	}
	if l := plan.look("b"); !l.Focus || !l.Front || l.Title != "b" {
		t.Errorf("%+v", l)
	}
	if l := plan.look("alone"); !l.Focus || l.Front {
		t.Errorf("%+v", l)
	}
	if !plan.shares("a") || plan.shares("alone") || plan.shares("fetch") {
		t.Error("who shares a window")
	}
}
