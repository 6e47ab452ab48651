//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestCycles starts and stops a run again and again: no process, tmux server or
// file is left behind but the records, and those go with rm.
func TestCycles(t *testing.T) {
	cycles := 100
	if testing.Short() {
		cycles = 5
	}
	short, err := os.MkdirTemp("", "hobt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tearDown(short); err != nil {
			t.Error(err)
		}
	})
	recipe := filepath.Join(short, "hob.yaml")
	text := "name: round\nservers: {a: {command: [helper, sleep]}}\njobs: {b: {command: [helper, sleep]}}\n"
	if err := os.WriteFile(recipe, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	hob := func(args ...string) {
		t.Helper()
		c := exec.Command("hob", args...)
		c.Env = append(os.Environ(), "HOB_HOME="+filepath.Join(short, "home"), "XDG_RUNTIME_DIR="+short, "GORACE=atexit_sleep_ms=0")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("hob %v: %v\n%s", args, err, out)
		}
	}
	var first []string
	for range cycles {
		hob("up", recipe, "--quiet")
		hob("down", "--quiet")
		hob("rm", "round", "--quiet")
		if now := filesBelow(t, short); first == nil {
			first = now
		} else if !slices.Equal(first, now) {
			t.Fatalf("files after a round: %v, then %v", first, now)
		}
	}
	deadline := time.Now().Add(patience)
	for len(ours(short)) > 0 || listens(short) {
		if time.Now().After(deadline) {
			t.Fatalf("left: %v, server: %t", ours(short), listens(short))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		files = append(files, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
