package e2e

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"hob/identity"
	"hob/sweep"
	"hob/tasks"
)

// becomeRoot has what nobody starts with it be root's, whom nobody may signal. It ends
// with the kitchen, and nobody else may run it.
func (k *kitchen) becomeRoot() {
	k.t.Helper()
	path, err := exec.LookPath("setpriv")
	k.check(err)
	text, err := os.ReadFile(path)
	k.check(err)
	k.check(os.WriteFile(k.path("become"), text, 0o700))
	k.check(os.Chown(k.path("become"), 0, nobody))
	k.check(os.Chmod(k.path("become"), 0o750|os.ModeSetuid))
}

const leavesRoots = `#!/bin/sh
"$1/become" --reuid=0 --regid=0 --clear-groups sh -c 'echo $$ >"$D/roots.new"; mv "$D/roots.new" "$D/roots"; exec sleep 86450' &
while [ ! -s "$D/roots" ]; do sleep 0.02; done
`

// TestAfterStopLeavesWhatNobodyMayEnd: an after_stop leaves a process that this user may
// not signal. The stop waits neither for that nor for the keeper of the after_stop: it
// ends, names the survivor and why it lives, and the record is kept until that has ended.
func TestAfterStopLeavesWhatNobodyMayEnd(t *testing.T) {
	t.Parallel()
	k := openNobody(t)
	k.becomeRoot()
	k.check(os.WriteFile(k.path("after.sh"), []byte(leavesRoots), 0o755))
	k.recipe("name: m\nservers:\n  llm:\n    command: [sleep, '86441']\n    stop: {grace: 500ms, term_grace: 200ms}\n    after_stop: [sh, '@K/after.sh', '@K']\n")
	k.must("up")
	r := k.hob("down", "--json", "m") // one that waits without end is killed
	roots := k.pin("roots")
	if r.code != 3 || len(k.reports(r)) != 1 {
		t.Fatalf("hob down: %v", r)
	}
	rep, named := k.reports(r)[0], false
	for _, m := range rep.Members {
		if m.PID == roots.Ref().PID {
			named = m.Fate == sweep.Survived && strings.Contains(m.Note, "refused") && strings.Contains(m.Note, "root")
		}
	}
	if rep.Verdict != sweep.Survivors || !named || roots.Verify().Verdict != identity.Owned {
		t.Errorf("%s, named %t: %v", rep.Verdict, named, r)
	}
	if s := k.stateOf("m/llm"); s != tasks.Survivors {
		t.Errorf("the task is %s", s)
	}
	k.until("the keeper of the after_stop to end", func() bool {
		return !slices.ContainsFunc(k.marked(), func(p identity.Process) bool { return slices.Contains(p.Args, "keeper") })
	})
	k.check(roots.Signal(syscall.SIGKILL))
	k.until("it to end", func() bool { return roots.Verify().Verdict == identity.Gone })
	k.must("sweep", "m")
	if s := k.stateOf("m/llm"); s != tasks.Stopped {
		t.Errorf("in the end the task is %s", s)
	}
}
