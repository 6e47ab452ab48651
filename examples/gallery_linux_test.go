package examples_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hob/identity/porttest"
)

// TestGallery runs every recipe of the gallery as a person would who has no GPU:
// taken over, checked, rehearsed, seen to answer, stopped, and nothing left.
func TestGallery(t *testing.T) {
	k := newKitchen(t)
	var list []struct{ Name, File string }
	if out := k.hob("recipes", "--json"); json.Unmarshal([]byte(out), &list) != nil || len(list) < 20 {
		t.Fatalf("the gallery is too small: %s", out)
	}
	for _, recipe := range list {
		if recipe.File != "" {
			t.Errorf("%s is not of the gallery: %s", recipe.Name, recipe.File)
		}
		t.Run(recipe.Name, func(t *testing.T) {
			t.Parallel()
			runGallery(t, recipe.Name)
		})
	}
}

func runGallery(t *testing.T, name string) {
	k := newKitchen(t)
	k.env = append(k.env, "HOME="+k.root+"/home", "XDG_CONFIG_HOME="+k.root+"/home/.config")
	file := filepath.Join(k.root, "hob.yaml")
	k.hob("recipes", "init", name, file)
	tasks := k.checked(file)
	k.hob(append([]string{"up", "--rehearse", file}, k.freePorts(file)...)...)
	k.seeTasks(example{})
	var seen []string
	for _, task := range k.ps() {
		seen = append(seen, task.Task)
	}
	if slices.Sort(seen); !slices.Equal(seen, tasks) {
		t.Errorf("up has started %q, the recipe has %q", seen, tasks)
	}
	k.hob("down")
	k.seeReports()
}

// checked are the tasks of a recipe that hob finds nothing wrong with, sorted.
func (k *kitchen) checked(file string) (names []string) {
	k.t.Helper()
	var r struct {
		Tasks []struct{ Name string }
	}
	if out := k.hob("check", "--json", file); json.Unmarshal([]byte(out), &r) != nil || len(r.Tasks) == 0 {
		k.t.Fatalf("hob check --json: %s", out)
	}
	for _, task := range r.Tasks {
		names = append(names, task.Name)
	}
	slices.Sort(names)
	return names
}

// portVars are the variables of a recipe that hold ports.
var portVars = regexp.MustCompile(`\b(\w*port): [0-9]+`)

// freePorts sets a recipe's ports to others, since tests run side by side, and
// beside servers of other people.
func (k *kitchen) freePorts(file string) (flags []string) {
	k.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		k.t.Fatal(err)
	}
	vars, _, _ := strings.Cut(string(text), "servers:")
	for _, m := range portVars.FindAllStringSubmatch(vars, -1) {
		first, err := porttest.Row(4) // replicas count up
		if err != nil {
			k.t.Fatal(err)
		}
		flags = append(flags, "--set", m[1]+"="+strconv.Itoa(first))
	}
	return flags
}
