package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"hob/identity"
	"hob/sweep"
	"hob/tasks"
)

// TestPolicies: what stop.detached and stop.spare say is left alone is named, is no
// survivor, and lives; without them it is ended.
func TestPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		kind, stop string
		fate       sweep.Fate
		note       string
	}{
		"a server's daemon":                  {"servers", "", sweep.Terminated, ""},
		"a server's, detached: report":       {"servers", ", detached: report", sweep.Spared, "detached"},
		"a server's, spared by its name":     {"servers", ", spare: [sleep]", sweep.Spared, "stop.spare"},
		"a server's, another name is spared": {"servers", ", spare: [slee, ssh-agent]", sweep.Terminated, ""},
		"a shell's daemon":                   {"shells", "", sweep.Spared, "detached"},
		"a shell's, detached: kill":          {"shells", ", detached: kill", sweep.Terminated, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := open(t)
			k.recipe(fmt.Sprintf("name: m\n%s:\n  task:\n    command: [sh, -c, \"(setsid sh -c 'echo $$$$ >@D/x; exec sleep 86470' &); while :; do read -r _ </dev/null; sleep 1; done\"]\n    stop: {grace: 1s, term_grace: 1s%s}\n", c.kind, c.stop))
			k.must("up")
			x := k.pin("x")
			rep := k.reports(k.must("down", "--json", "m"))[0]
			m, ok := memberOf(rep, x)
			if !ok || m.Fate != c.fate || rep.Verdict != sweep.Clean || !strings.Contains(m.Note, c.note) {
				t.Errorf("%s, member %+v", rep.Verdict, m)
			}
			if lives := k.alive("x"); lives != (c.fate == sweep.Spared) {
				t.Errorf("it lives: %t", lives)
			} else if lives {
				k.endPins([]string{"x"})
			}
			if s := k.stateOf("m/task"); s != tasks.Stopped {
				t.Errorf("the task is %s", s)
			}
			k.must("down", "--all")
		})
	}
}

// TestTakeIsRefused: a look-alike is taken only as what a report lists, and while it
// still looks like one; each refusal has its own code, and what a person can do.
func TestTakeIsRefused(t *testing.T) {
	t.Parallel()
	k := open(t)
	command := []string{python3, k.testdata("changer.py"), k.d()}
	k.recipe("name: m\nservers:\n  llm: {command: [" + strings.Join(command, ", ") + "]}\n")
	k.must("up")
	like := k.stranger("with the same command line", exec.Command(command[0], command[1:]...))
	id := fmt.Sprintf("%d:%s", like.pin.Ref().PID, like.pin.Ref().Start)
	refused := func(what string, code int, words string, args ...string) {
		t.Helper()
		if r := k.hob(append([]string{"sweep", "--take"}, args...)...); r.code != code || !strings.Contains(r.err, words) || !strings.Contains(r.err, "hint:") {
			t.Errorf("%s: want exit %d and %q: %v", what, code, words, r)
		}
	}
	refused("no such task", 2, "did you mean llm", id, "lm")
	refused("none was listed in a report", 2, "no report lists", id)
	k.must("down", "m")
	refused("not PID:START", 2, "is not PID:START", fmt.Sprint(like.pin.Ref().PID))
	refused("another process of that number", 2, "no report lists", fmt.Sprintf("%d:linux:1", like.pin.Ref().PID))
	k.until("it to listen to the signal", func() bool {
		_, err := os.Stat(fmt.Sprintf("%s/can-change.%d", k.d(), like.pin.Ref().PID))
		return err == nil
	})
	k.signal(like.pin.Ref(), syscall.SIGUSR1)
	k.until("it to be another program", func() bool {
		row, err := like.pin.Read(identity.WantArgs)
		return err == nil && len(row.Args) > 0 && row.Args[0] == "sleep"
	})
	refused("it does not look alike any more", 5, "does not look like m/llm now", id)
	k.untouched(like)
}
