//go:build linux

package tasks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A wait for a lock is told once, with who holds it, to whoever is held up by it.
func TestWaitIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan Waiting, 8)
	ctx := TellWaits(t.Context(), func(w Waiting) { told <- w })
	waits := lockWaits(t)
	got := make(chan error, 2)
	wait := func(ctx context.Context) {
		unlock, err := lock(ctx, path)
		if err == nil {
			defer unlock()
		}
		got <- err
	}
	go wait(TellWaits(ctx, nil)) // nobody is held up
	go wait(ctx)
	<-waits
	<-waits
	select {
	case w := <-told:
		want := fmt.Sprintf("waits for %s, pid %d, which holds %s", filepath.Base(os.Args[0]), os.Getpid(), path)
		if said := w.String(); !strings.HasPrefix(said, want[:strings.Index(want, ",")]) || !strings.HasSuffix(said, want[strings.Index(want, ","):]) {
			t.Errorf("%q; want %q", said, want)
		}
	case <-testDeadline(t).Done():
		t.Fatal("nobody is told")
	}
	unlock()
	for range 2 {
		if err := <-got; err != nil {
			t.Error(err)
		}
	}
	if len(told) > 0 {
		t.Errorf("told again: %s", <-told)
	}
	if said := (Waiting{Path: path}).String(); !strings.Contains(said, "could not be told") {
		t.Errorf("an unknown holder: %q", said)
	}
}

// What is shown of a command line has nothing of its arguments but a hob's verb.
func TestProgram(t *testing.T) {
	for line, want := range map[string]string{
		"":                                     "",
		"hob":                                  "hob",
		"/usr/bin/hob down --all":              "hob down",
		"hob --home /secret -q up x.yaml":      "hob up",
		"hob --home=/secret sweep":             "hob sweep",
		"hob keeper /x/spec.json":              "hob keeper",
		"/usr/bin/flock x.lock curl -u me:pwd": "flock",
	} {
		if got := program(strings.Fields(line)); got != want {
			t.Errorf("%q: %q; want %q", line, got, want)
		}
	}
}
