package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"hob/tasks"
)

// nextHobs are hobs of other versions: all of it newer, or the keeper alone.
var nextHobs = sync.OnceValues(func() (map[string]string, error) {
	paths := map[string]string{"": hobs.plain}
	for _, tag := range []string{"hobnext", "hobnextkeeper"} {
		paths[tag] = filepath.Join(hobs.dir, tag)
		if err := build(paths[tag], tag); err != nil {
			return nil, err
		}
	}
	return paths, nil
})

const versionRecipe = `
name: m
servers:
  llm: {command: [sh, -c, 'setsid sleep 86460 & echo up; exec sleep 86461'], ready: {log: up}, stop: {grace: 1s}}
jobs:
  done: {command: [sh, -c, 'echo made']}
`

// openVersions is a kitchen with a run of one hob, at which another looks now.
func openVersions(t *testing.T, first, second string) *kitchen {
	t.Helper()
	paths, err := nextHobs()
	if err != nil {
		t.Fatal(err)
	}
	k := open(t)
	k.recipe(versionRecipe)
	k.bin = paths[first]
	k.must("up")
	k.must("wait", "m/done")
	k.bin = paths[second]
	k.stranger("with the same command line", exec.Command("sleep", "86461"))
	return k
}

// TestUpgradedHob: keepers of the hob before are looked at and stopped as any other.
func TestUpgradedHob(t *testing.T) {
	for _, next := range []string{"hobnext", "hobnextkeeper"} {
		for _, verb := range []string{"down", "restart", "up", "command ends"} {
			t.Run(next+" "+verb, func(t *testing.T) {
				t.Parallel()
				k := openVersions(t, "", next)
				command := k.commandOf("m/llm")
				if s := k.states(); s["m/llm"] != tasks.Ready || s["m/done"] != tasks.Completed {
					t.Errorf("it shows %v", s)
				}
				if r := k.must("logs", "m/llm"); !strings.Contains(r.out, "up") {
					t.Errorf("its log: %v", r)
				}
				k.must("sweep")
				if s := k.stateOf("m/llm"); s != tasks.Ready {
					t.Errorf("after a sweep it is %s", s)
				}
				switch verb {
				case "restart":
					k.must("restart", "m")
				case "up":
					k.must("up")
					if k.commandOf("m/llm").PID != command.PID {
						t.Error("up has started it over")
					}
				case "command ends":
					k.must("up") // what the keeper reads is the next hob's now
					k.signal(command, 15)
					k.until("its keeper to see to the end", func() bool { return k.stateOf("m/llm") == tasks.Failed })
				}
				for _, rep := range k.reports(k.must("down", "--json", "m")) {
					if rep.Verdict != "clean" || len(rep.Members) < 2 && rep.Task == "llm" {
						t.Errorf("%+v", rep)
					}
				}
				k.must("rm", "m")
			})
		}
	}
}

// refusals are verbs that say no in other words: rm keeps what has a living keeper,
// and the reaper leaves what it cannot tell.
var refusals = map[string]bool{"rm": true, "reap": true}

// TestOlderHob: what a newer hob has written, or keeps, is refused, and nothing of it
// is touched.
func TestOlderHob(t *testing.T) {
	for _, next := range []string{"hobnext", "hobnextkeeper"} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			k := openVersions(t, next, "")
			before := k.records()
			for _, args := range [][]string{{"ps"}, {"down", "m"}, {"down", "m/llm"}, {"down", "--all"}, {"sweep"}, {"restart", "m/llm"}, {"rm", "m"}, {"rm", "--forget", "m"}, {"up"}, {"reap"}} {
				r := k.hob(args...)
				if text := r.out + r.err; r.code != 4 && !refusals[args[0]] || r.code == 0 && args[0] != "reap" || !strings.Contains(text, "newer") && !strings.Contains(text, "its keeper") {
					t.Errorf("hob %v: %v", args, r)
				}
			}
			if now := k.records(); !slices.Equal(now, before) {
				t.Errorf("records were\n%s\nand are\n%s", strings.Join(before, "\n"), strings.Join(now, "\n"))
			}
			if r := k.hob("logs", "m/llm"); !strings.Contains(r.out, "up") {
				t.Errorf("its log: %v", r)
			}
			k.bin = filepath.Join(hobs.dir, next)
			if s := k.stateOf("m/llm"); s != tasks.Ready {
				t.Errorf("it is %s", s)
			}
			k.must("down", "m")
		})
	}
}

// records are the contents of the records of a run and its server, but for what a
// keeper measures.
func (k *kitchen) records() []string {
	k.t.Helper()
	var all []string
	for _, pattern := range []string{"run.json", "tasks/llm/task.json", "tasks/llm/spec.json", "tasks/llm/exit.json", "tasks/llm/report.json", "tasks/llm/stop.json"} {
		paths, _ := filepath.Glob(filepath.Join(k.home, "runs/m", pattern))
		for _, path := range paths {
			text, err := os.ReadFile(path)
			k.check(err)
			all = append(all, path+": "+string(text))
		}
	}
	return all
}
