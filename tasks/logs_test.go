package tasks

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"hob/identity"
)

// logFixture is a store with one task whose log is written by the test.
func logFixture(t *testing.T) (*Manager, *TaskDir, []Selection) {
	t.Helper()
	store, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	host, err := identity.Local()
	if err != nil {
		t.Fatal(err)
	}
	run := store.Run("r")
	dir := run.Task("t")
	if err := run.Create(); err != nil {
		t.Fatal(err)
	}
	if err := dir.Create(); err != nil {
		t.Fatal(err)
	}
	return &Manager{Store: store, Host: host}, dir, []Selection{{Run: run, Tasks: []string{"t"}}}
}

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func writeLog(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLogsThroughRotations(t *testing.T) {
	m, dir, sel := logFixture(t)
	writeLog(t, dir.LogPath()+".2", numbered(1, 3))
	writeLog(t, dir.LogPath()+".1", numbered(4, 6))
	writeLog(t, dir.LogPath(), numbered(7, 8)+"no end")
	all := numbered(1, 8) + "no end\n"
	last := func(n int) string {
		lines := strings.SplitAfter(all, "\n")
		lines = lines[:len(lines)-1]
		return strings.Join(lines[max(0, len(lines)-max(0, n)):], "")
	}
	for _, n := range []int{-1, 0, 1, 2, 3, 4, 6, 7, 9, 10, 100} {
		var out bytes.Buffer
		err := m.Logs(context.Background(), sel, LogOptions{Lines: n}, func(_ Name, b []byte) error { out.Write(b); return nil })
		want := last(n)
		if n < 0 {
			want = all
		}
		if err != nil || out.String() != want {
			t.Errorf("the last %d: got %q, %v; want %q", n, out.String(), err, want)
		}
	}
}

func TestLogsOfAnEmptyTask(t *testing.T) {
	m, _, sel := logFixture(t)
	err := m.Logs(context.Background(), sel, LogOptions{Lines: -1}, func(Name, []byte) error { t.Error("there is nothing to show"); return nil })
	if err != nil {
		t.Error(err)
	}
}

// TestFollow rotates the log under a reader, twice at once, and ends the task.
func TestFollow(t *testing.T) {
	m, dir, sel := logFixture(t)
	claim := Task{Schema: Schema, Run: "r", Task: "t", Kind: "server", State: Starting, Nonce: "n"}
	unlock, err := dir.Lock(context.Background()) // a start that is under way: it lives
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.WriteTask(claim); err != nil {
		t.Fatal(err)
	}
	writeLog(t, dir.LogPath(), numbered(1, 5))

	var mu sync.Mutex
	var got bytes.Buffer
	seen := make(chan struct{}, 100)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- m.Logs(ctx, sel, LogOptions{Follow: true, Lines: 2}, func(_ Name, b []byte) error {
			mu.Lock()
			defer mu.Unlock()
			got.Write(b)
			seen <- struct{}{}
			return nil
		})
	}()
	until := func(text string) {
		t.Helper()
		for {
			mu.Lock()
			has := strings.Contains(got.String(), text)
			mu.Unlock()
			if has {
				return
			}
			select {
			case <-seen:
			case <-ctx.Done():
				t.Fatalf("no %q in %q", text, got.String())
			}
		}
	}
	until("line 5\n")
	appendTo(t, dir.LogPath(), "line 6\nline")
	until("line 6\n")
	appendTo(t, dir.LogPath(), " 7\nline 8\n")
	rotate(t, dir.LogPath())
	writeLog(t, dir.LogPath(), "line 9\n")
	rotate(t, dir.LogPath())
	writeLog(t, dir.LogPath(), "line 10\nthe end")
	until("line 10\n")

	claim.State = Stopped
	if err := dir.WriteTask(claim); err != nil {
		t.Fatal(err)
	}
	unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if want := numbered(4, 10) + "the end\n"; got.String() != want {
		t.Errorf("got %q, want %q", got.String(), want)
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// rotate does what the writer of a log does.
func rotate(t *testing.T, path string) {
	t.Helper()
	for n := 8; n >= 0; n-- {
		if _, err := os.Stat(logName(path, n)); err == nil {
			if err := os.Rename(logName(path, n), logName(path, n+1)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestTail(t *testing.T) {
	_, dir, _ := logFixture(t)
	if got := tail(dir.LogPath(), 1<<10, 3); got != nil {
		t.Errorf("no log: got %q", got)
	}
	writeLog(t, dir.LogPath(), "a\nb\nc\n")
	if got := strings.Join(tail(dir.LogPath(), 1<<10, 2), "|"); got != "b|c" {
		t.Errorf("got %q", got)
	}
	writeLog(t, dir.LogPath(), strings.Repeat("x", 40<<10)+"\nend\n")
	if got := tail(dir.LogPath(), 1<<10, 1); len(got) != 1 || got[0] != "end" {
		t.Errorf("got %q", got)
	}
}
