package sweep_test

import (
	"context"
	"errors"
	"testing"

	"hob/identity"
	"hob/sweep"
)

// ref is who has the number now.
func refOf(t *testing.T, h identity.Host, pid int) identity.Ref {
	t.Helper()
	pin, err := h.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Close()
	return pin.Ref()
}

// A tree that a person has asked for is captured from its root down, and stops by
// the same protocol: the root by its name, the rest by its parents. What stands
// beside it under the same parent stays.
func TestAdopt(t *testing.T) {
	k := startReal(t, sweep.Server, "sh", "-c", sleeper("beside")+` & (echo $BASHPID; sh -c '`+deaf("worker")+` & echo $$ >$D/root; while :; do sleep 300; done') & echo $$ >$D/first; wait`)
	first, root, worker, beside := k.ref("first"), k.ref("root"), k.ref("worker"), k.ref("beside")
	target := sweep.Target{Run: "r", Task: "t", Kind: sweep.Server, Command: &root, Spared: []identity.Ref{first}, Stop: k.target.Stop}
	c, err := sweep.Adopt(t.Context(), k.h, target, first, []identity.Ref{root})
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]sweep.Evidence{root.PID: sweep.Taken, worker.PID: sweep.Captured}
	for _, m := range c.Members {
		if e, ok := want[m.Ref.PID]; ok && (len(m.Evidence) != 1 || m.Evidence[0] != e) {
			t.Errorf("%+v", m)
		}
		if m.Ref.PID == first.PID || m.Ref.PID == beside.PID {
			t.Errorf("not of the tree: %+v", m)
		}
		delete(want, m.Ref.PID)
	}
	if len(want) > 0 {
		t.Errorf("not captured: %v", want)
	}
	k.target = target
	r := k.stop(c, sweep.Options{})
	if r.Verdict != sweep.Clean || k.alive("root") || k.alive("worker") || !k.alive("first") || !k.alive("beside") || k.member(r, "worker").Fate != sweep.Killed {
		t.Error(k.story(r))
	}
}

// What is not below the pane's process, has ended, or is a boundary is refused,
// and nothing is captured.
func TestAdoptRefuses(t *testing.T) {
	k := startReal(t, sweep.Server, "sh", "-c", sleeper("x")+` & sh -c 'sh $D/sleep.sh kept & wait' hob keeper /x/spec.json & echo $$ >$D/first; wait`)
	x, first, kept := k.ref("x"), k.ref("first"), k.ref("kept")
	gone := x
	gone.PID, gone.PIDFS, gone.Start = 1<<22-3, nil, "linux:1"
	forged := x
	forged.PIDFS, forged.Start = nil, "linux:1"
	adopt := func(first identity.Ref, roots ...identity.Ref) error {
		c, err := sweep.Adopt(context.Background(), k.h, sweep.Target{Run: "r", Task: "t", Kind: sweep.Server, Spared: k.target.Spared}, first, roots)
		if err != nil && len(c.Members) > 0 {
			t.Errorf("captured all the same: %+v", c)
		}
		return err
	}
	for name, c := range map[string]struct {
		err, want error
	}{
		"not below it":                {adopt(x, first), sweep.ErrRefused},
		"pid 1":                       {adopt(first, refOf(t, k.h, 1)), sweep.ErrRefused},
		"it has ended":                {adopt(first, gone), identity.ErrGone},
		"its number is another's":     {adopt(first, forged), identity.ErrReused},
		"one of two is not below it":  {adopt(x, x, first), sweep.ErrRefused},
		"the pane's process is gone":  {adopt(gone, x), sweep.ErrRefused},
		"the pane's process, reused":  {adopt(forged, x), sweep.ErrRefused},
		"below another hob's keeper":  {adopt(first, kept), sweep.ErrRefused},
		"it is left alone by a rule":  {func() error { k.target.Spared = []identity.Ref{x}; return adopt(first, x) }(), sweep.ErrRefused},
		"all is well with all others": {func() error { k.target.Spared = nil; return adopt(first, x) }(), nil},
	} {
		if !errors.Is(c.err, c.want) || c.want == nil && c.err != nil {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}
