package tasks

import (
	"slices"
	"testing"

	"hob/identity"
	"hob/recipes"
)

func TestTasksAreToldThePortsOfOthers(t *testing.T) {
	asker := &upTask{Task: recipes.Task{
		Name: "asker", Command: []string{"ask", "${chat.port}", "${before.port}"},
		Env:   []recipes.EnvVar{{Name: "CHAT", Value: "127.0.0.1:${chat.port}"}},
		Ready: &recipes.Ready{Exec: []string{"ask", "${chat.port}"}},
	}}
	u := &upRun{
		Manager: &Manager{}, run: Run{Ports: map[string]int{"before": 7, "chat": 8}},
		tasks: []*upTask{{Task: recipes.Task{Name: "chat"}, port: 9}, asker},
		dir:   (&Store{}).Run("run"),
	}
	spec, err := u.spec(asker, "nonce")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"ask", "9", "7"}; !slices.Equal(spec.Args, want) {
		t.Errorf("args %q, want %q", spec.Args, want)
	}
	if want := []string{"CHAT=127.0.0.1:9"}; !slices.Equal(spec.Env, want) {
		t.Errorf("environment %q, want %q", spec.Env, want)
	}
	if want := []string{"ask", "9"}; !slices.Equal(spec.Ready.Exec, want) {
		t.Errorf("probe %q, want %q", spec.Ready.Exec, want)
	}
}

func TestUpOfSomeTasksKeepsThePortsOfTheOthers(t *testing.T) {
	host, err := identity.Local()
	if err != nil {
		t.Fatal(err)
	}
	u := &upRun{
		Manager: &Manager{Host: host}, run: Run{ID: "id", Ports: map[string]int{"chat": 8, "rerank": 9, "removed": 10, "fixed": 11}},
		recipe: &recipes.Recipe{Tasks: []recipes.Task{{Name: "chat"}, {Name: "rerank"}, {Name: "fixed"}}},
		tasks:  []*upTask{{Task: recipes.Task{Name: "chat"}, port: 18}, {Task: recipes.Task{Name: "fixed"}}},
	}
	if err := u.fillRun(); err != nil {
		t.Fatal(err)
	}
	if len(u.run.Ports) != 2 || u.run.Ports["chat"] != 18 || u.run.Ports["rerank"] != 9 {
		t.Errorf("ports %v", u.run.Ports)
	}
}
