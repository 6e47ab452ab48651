// Command hob starts model servers in tmux panes, and ends all of what it started.
//
// Each verb is a file of its name: its flags, its words, one call of package tasks
// or recipes, and what of the answer is shown. Nothing is decided here. What verbs share:
//
//   - main.go and app.go are the program and one invocation of it;
//   - root.go puts the verbs together, usage.go writes their help;
//   - reading.go reads a recipe for the verbs that take one, faults.go and exit.go
//     turn errors into lines, hints and the exit code;
//   - table.go, progress.go, loading.go and plan.go show things.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"hob/identity"
	"hob/identity/child"
	"hob/recipes/pilot"
	"hob/tasks"
)

// version is set by the Makefile.
var version = "dev"

func main() { os.Exit(run(os.Args[1:])) }

// run is the program but for its exit. A keeper is looked for before anything
// else is built: there is one in every pane, and what it does not load it does
// not hold in memory. The built-in engine, which recipes start and people do not,
// takes signals in its own way.
func run(args []string) int {
	if len(args) == 2 && args[0] == "keeper" {
		return keep(args[1])
	}
	if len(args) == 3 && args[0] == "keeper" && args[2] == tasks.HookAfterStop {
		return keepAfter(args[1])
	}
	if len(args) > 0 && args[0] == "pilot" {
		return pilot.Run(args[1:])
	}
	if len(args) > 0 && args[0] == child.WithVerb {
		return child.With(args[1:])
	}
	// A verb is over before garbage is worth collecting; one that goes on is bounded.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(64 << 20)
	return newApp().run(args)
}

// keepAfter is `hob keeper SPEC after_stop`.
func keepAfter(spec string) int {
	h, err := identity.Local()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hob:", err)
		return 1
	}
	return tasks.RunAfterStop(h, spec, version)
}

// keep is `hob keeper SPEC`.
func keep(spec string) int {
	h, err := identity.Local()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hob:", err)
		return 1
	}
	code := tasks.RunKeeper(h, spec, version)
	if err := tasks.AfterKeeper(context.Background(), h, spec); err != nil {
		fmt.Fprintln(os.Stderr, "hob:", err) // into the pane, if that is still there
	}
	return code
}
