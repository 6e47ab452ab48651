package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"hob/identity"
	"hob/sweep"
)

// The matrix: what becomes of each kind of child (rows) under each ending of a
// session (columns). Nothing that hob could have seen survives or is unnamed.
//
//	terminated  by TERM from hob, or from its keeper
//	exited      without a signal of hob's: by the hangup of the command's terminal
//	gone        the same with the command, before there was anything to stop
//	named       it lives, and the report names it as a look-alike, by its keeper's stamp
//
// made is the command itself; the daemons have forked twice and left the session.
// Of keeper-blind on, each is the worst that can be done: the keeper is stopped,
// then the children are made, then the keeper is killed. The cgroup of the task shows
// them, but for the one that has left it. The last columns are where no cgroup can be made.
var matrix = parseMatrix(`
                   down       restart    ctrl-c     term       kill       kill-pane  kill-session kill-server server-killed hob-killed keeper-killed keeper-blind blind-bare killed-bare down-bare  kill-bare
made               terminated terminated exited     exited     exited     terminated terminated   terminated  terminated    terminated exited        exited       exited     exited      terminated exited
plain              exited     exited     gone       gone       gone       exited     exited       exited      exited        exited     exited        gone         gone       exited      exited     gone
pgrp               terminated terminated terminated terminated terminated terminated terminated   terminated  terminated    terminated terminated    terminated   named      terminated  terminated terminated
nohup              terminated terminated gone       terminated terminated terminated terminated   terminated  terminated    terminated terminated    terminated   named      terminated  terminated terminated
setsid             terminated terminated terminated terminated terminated terminated terminated   terminated  terminated    terminated terminated    terminated   named      terminated  terminated terminated
setsid-nohup       terminated terminated terminated terminated terminated terminated terminated   terminated  terminated    terminated terminated    terminated   named      terminated  terminated terminated
orphan             exited     exited     gone       gone       gone       exited     exited       exited      exited        exited     exited        gone         gone       exited      exited     gone
daemon             terminated terminated terminated terminated terminated terminated terminated   terminated  terminated    terminated terminated    terminated   named      terminated  terminated terminated
daemon-noenv       terminated terminated terminated terminated terminated terminated terminated   terminated  terminated    terminated terminated    terminated   named      terminated  terminated terminated
daemon-title       terminated terminated terminated terminated terminated terminated terminated   terminated  terminated    terminated terminated    terminated   named      terminated  terminated terminated
daemon-title-fork  terminated terminated terminated terminated terminated terminated terminated   terminated  terminated    terminated terminated    terminated   named      terminated  terminated terminated
daemon-title-exec  terminated terminated terminated terminated terminated terminated terminated   terminated  terminated    terminated terminated    terminated   named      terminated  terminated terminated
daemon-uid         terminated terminated terminated terminated terminated terminated terminated   terminated  terminated    terminated terminated    terminated   named      terminated  terminated terminated
daemon-cgroup      terminated terminated terminated terminated terminated terminated terminated   terminated  terminated    terminated terminated    named        named      terminated  terminated terminated
`)

type cells struct {
	kinds, endings []string
	fate           map[string]map[string]string // by kind, then ending
}

func parseMatrix(text string) cells {
	c := cells{fate: map[string]map[string]string{}}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		f := strings.Fields(line)
		if i == 0 {
			c.endings = f
			continue
		}
		c.kinds = append(c.kinds, f[0])
		c.fate[f[0]] = map[string]string{}
		for j, fate := range f[1:] {
			c.fate[f[0]][c.endings[j]] = fate
		}
	}
	return c
}

const kindsRecipe = `
name: m
servers:
  kinds:
    command: [%s]
    ready: {exec: [test, -e, @D/main], interval: 100ms, timeout: 2m}
    stop: {grace: 2s, term_grace: 10s}
`

// TestMatrix makes all kinds of children in one task, once for each ending.
func TestMatrix(t *testing.T) {
	real := newTally(matrix)
	t.Run("ending", func(t *testing.T) {
		for _, name := range matrix.endings {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				end(t, name, endings[name], real)
			})
		}
	})
	real.publish(t)
}

// end is one column of the matrix.
func end(t *testing.T, name string, e ending, real *tally) {
	k := open(t)
	if e.bare && !k.makeBare() {
		return
	}
	command := append([]string{python3, k.testdata("kinds.py"), k.d()}, e.words...)
	k.hasCgroup = k.cgroups()
	kinds := k.makeKinds(command, e.before)
	list := k.strangers(command)
	e.act(k)
	rep := e.report(k)
	var left []string
	for _, kind := range kinds {
		if real.take(t, k, kind, name, rep) {
			left = append(left, kind)
		}
	}
	k.named(rep, list, left)
	k.endPins(left)
	k.forget()
	if r := k.hob("down", "m"); r.code != 0 {
		t.Errorf("hob down at last: %v", r)
	}
	k.untouched(list...)
}

// makeKinds starts the task and returns the kinds that this host can have.
func (k *kitchen) makeKinds(command []string, before func(*kitchen)) []string {
	k.t.Helper()
	kinds := slices.Clone(matrix.kinds)
	if dir := k.otherCgroup(); dir != "" {
		k.env = append(k.env, "OTHER_CGROUP="+dir)
	} else {
		kinds = k.without(kinds, "daemon-cgroup", "no cgroup can be made here")
	}
	if os.Getuid() != 0 {
		kinds = k.without(kinds, "daemon-uid", "only root can change its user")
	}
	k.recipe(fmt.Sprintf(kindsRecipe, strings.Join(command, ", ")))
	k.must("up")
	if before != nil {
		before(k)
	}
	for _, kind := range kinds {
		k.pin(kind)
	}
	return kinds
}

func (k *kitchen) without(kinds []string, kind, why string) []string {
	k.t.Logf("%s is not in the matrix: %s", kind, why)
	return slices.DeleteFunc(kinds, func(s string) bool { return s == kind })
}

// python3 is Debian's, by its whole name: another that comes first in PATH may be a
// shell script that forks, and becomes it only after a while.
const python3 = "/usr/bin/python3"

// otherCgroup makes a cgroup for a child to move to: in the unified hierarchy, or
// in any. It returns "" where none can be made.
func (k *kitchen) otherCgroup() string {
	mounts, err := os.ReadFile("/proc/self/mounts")
	k.check(err)
	var roots []string
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if f[2] == "cgroup2" && !k.bare {
			roots = slices.Insert(roots, 0, f[1])
		} else if f[2] == "cgroup" && !strings.Contains(f[3], "cpuset") { // which refuses members until it is set up
			roots = append(roots, f[1])
		}
	}
	for _, root := range roots {
		dir, err := os.MkdirTemp(root, "hobm")
		if err != nil {
			continue
		}
		k.last = append(k.last, func() {
			k.until("the cgroup to be empty", func() bool { return os.Remove(dir) == nil })
		})
		return dir
	}
	return ""
}

// strangers live beside the task: one with its command line, one with its marker,
// one in its folder.
func (k *kitchen) strangers(command []string) []stranger {
	k.t.Helper()
	decoy := k.stranger("with the same command line", exec.Command(command[0], command[1:]...))
	k.pin("decoy")
	copied := exec.Command("sleep", "611")
	copied.Env = append(slices.Clone(k.env), "HOB_RUN=m", "HOB_TASK=kinds", "HOB_RUN_ID="+k.run("m").ID)
	same := exec.Command("sleep", "612")
	same.Dir = k.dir
	return []stranger{decoy, k.stranger("with a copied marker", copied), k.stranger("in the same folder", same)}
}

// named checks that the report names what looks alike, and nothing else: two of
// the strangers, and those kinds that are left and could be named.
func (k *kitchen) named(rep sweep.Report, list []stranger, left []string) {
	k.t.Helper()
	want := map[int]string{list[0].pin.Ref().PID: "command", list[1].pin.Ref().PID: "marker"}
	for _, kind := range left {
		if lookalike(rep, k.pin(kind)) {
			want[k.pin(kind).Ref().PID] = "stamp"
		}
	}
	for _, l := range rep.Lookalikes {
		if why := want[l.PID]; why == "" || !slices.Contains(l.Why, why) {
			k.t.Errorf("look-alike %+v, want %q", l, why)
		}
		if l.User == "" || l.StartedAt == nil || len(l.Args) == 0 {
			k.t.Errorf("a look-alike is not described: %+v", l)
		}
		delete(want, l.PID)
	}
	if len(want) > 0 {
		k.t.Errorf("these strangers look alike and are not named: %v", want)
	}
}

// memberOf finds a pinned process in a report.
func memberOf(rep sweep.Report, pin identity.Handle) (sweep.ReportMember, bool) {
	for _, m := range rep.Members {
		if m.PID == pin.Ref().PID && m.Start == pin.Ref().Start {
			return m, true
		}
	}
	return sweep.ReportMember{}, false
}

func lookalike(rep sweep.Report, pin identity.Handle) bool {
	return slices.ContainsFunc(rep.Lookalikes, func(l sweep.Lookalike) bool {
		return l.PID == pin.Ref().PID && l.Start == pin.Ref().Start
	})
}
