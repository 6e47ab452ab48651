package main

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// mayImport is the direction of dependencies: a room, and what it may reach.
// Sub-packages count as their room, with the exceptions below.
var mayImport = map[string][]string{
	"cmd":      {"tasks", "sweep", "identity", "tmux", "recipes"},
	"tasks":    {"sweep", "identity", "tmux", "recipes"},
	"sweep":    {"identity"},
	"identity": {},
	"tmux":     {},
	"recipes":  {},
	"examples": {},
}

// TestArrows holds the packages to their direction: cmd → tasks → sweep →
// identity, and tasks → tmux, recipes. Tests may reach further down, not up.
func TestArrows(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "hob/...").Output()
	if err != nil {
		t.Fatalf("listing packages: %v", err)
	}
	seen := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		seen++
		checkImports(t, p.ImportPath, p.Imports)
	}
	if seen < len(mayImport) {
		t.Fatalf("only %d packages listed: the check looked at nothing", seen)
	}
}

func checkImports(t *testing.T, pkg string, imports []string) {
	t.Helper()
	room, ok := roomOf(pkg)
	if !ok {
		return
	}
	allowed, known := mayImport[room]
	if !known {
		t.Errorf("%s: a room that the layout does not know", pkg)
	}
	for _, imp := range imports {
		other, ours := roomOf(imp)
		if ours && other != room && !slices.Contains(allowed, other) {
			t.Errorf("%s imports %s: %s may only reach %v", pkg, imp, room, allowed)
		}
	}
}

// roomOf is the top folder of one of our packages.
func roomOf(pkg string) (string, bool) {
	rest, ours := strings.CutPrefix(pkg, "hob/")
	room, _, _ := strings.Cut(rest, "/")
	return room, ours
}
