package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hob/identity/flock"
)

func init() {
	roles["hold"] = holdRole
	roles["count"] = countRole
}

// lockWaits gives out the names of the locks that are waited for, as soon as they are.
func lockWaits(t *testing.T) <-chan string {
	t.Helper()
	waits := make(chan string, 8)
	flockFile = func(f *os.File, wait bool) error {
		if wait {
			waits <- filepath.Base(f.Name())
		}
		return flock.Lock(f, wait)
	}
	t.Cleanup(func() { flockFile = flock.Lock })
	return waits
}

// command is the test binary in a role.
func command(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// holdRole takes the op.lock of the spec's task, says so, starts a child that
// outlives it, and waits for the end of its standard input.
func holdRole(args []string) int {
	_, d, err := taskOfSpec(args[0])
	if err != nil {
		return 1
	}
	if _, ok, err := d.TryLock(); !ok || err != nil {
		return 2
	}
	child := exec.Command("cat")
	child.Stdin = os.NewFile(3, "the child's end") // ends with the test
	if err := child.Start(); err != nil {
		return 3
	}
	fmt.Println("held")
	os.Stdin.Read(make([]byte, 1))
	return 0
}

// TestLockDiesWithItsHolder: and is not inherited by the holder's children.
func TestLockDiesWithItsHolder(t *testing.T) {
	_, d := newTask(t)
	cmd := command(t, "hold", d.SpecPath())
	stdin, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	ends, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	cmd.ExtraFiles = []*os.File{ends}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ends.Close()
	var held string
	if _, err := fmt.Fscan(stdout, &held); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := d.TryLock(); ok || err != nil {
		t.Fatalf("the lock is held, and TryLock said %v, %v", ok, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := d.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a bounded wait: %v", err)
	}
	got := make(chan error)
	go func() {
		unlock, err := d.Lock(t.Context())
		if err == nil {
			unlock()
			unlock() // twice is no harm
		}
		got <- err
	}()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	stdin.Close()
	select {
	case err := <-got:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the lock outlived its holder")
	}
}

// countRole adds one to the UpdatedAt seconds of run.json, n times.
func countRole(args []string) int {
	r, _, err := taskOfSpec(args[0])
	if err != nil {
		return 1
	}
	n, _ := strconv.Atoi(args[1])
	for range n {
		if err := addOne(r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
	}
	return 0
}

func addOne(r *RunDir) error {
	unlock, err := r.Lock(context.Background())
	if err != nil {
		return err
	}
	defer unlock()
	v, err := r.Read()
	if err != nil {
		return err
	}
	v.UpdatedAt = v.UpdatedAt.Add(time.Second)
	return errors.Join(r.Write(v), r.Append(Event{What: "one more"}))
}

// TestTwoWritersLoseNothing: two programs, and two goroutines, at once.
func TestTwoWritersLoseNothing(t *testing.T) {
	r, d := newTask(t)
	if err := r.Write(Run{Name: "chat", UpdatedAt: time.Unix(0, 0)}); err != nil {
		t.Fatal(err)
	}
	const each = 20
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if err := command(t, "count", d.SpecPath(), strconv.Itoa(each)).Run(); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			for range each {
				if err := addOne(r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	v, err := r.Read()
	if err != nil || v.UpdatedAt.Unix() != 4*each {
		t.Errorf("%d of %d changes are there, %v", v.UpdatedAt.Unix(), 4*each, err)
	}
	events, torn, err := r.Events()
	if len(events) != 4*each || torn != 0 || err != nil {
		t.Errorf("%d events, %d torn, %v", len(events), torn, err)
	}
}

// TestLockFollowsTheArchive: whoever waited for the lock of a run that was
// archived meanwhile must not think that it holds the name's.
func TestLockFollowsTheArchive(t *testing.T) {
	s := newStore(t)
	r := s.Run("chat")
	if err := r.Create(); err != nil {
		t.Fatal(err)
	}
	unlock, err := r.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		unlock, err := r.Lock(t.Context())
		if err == nil {
			defer unlock()
			_, err = os.Stat(r.file("run.lock"))
		}
		got <- err
	}()
	if _, err := r.Archive(); err != nil {
		t.Fatal(err)
	}
	unlock()
	if err := <-got; err != nil && !errors.Is(err, ErrNoRecord) {
		t.Error(err)
	}
}

// TestFileSystemWithoutLocks: it is refused before anything is made, and --home is named.
func TestFileSystemWithoutLocks(t *testing.T) {
	defer func(f func(*os.File, bool) error) { flockFile = f }(flockFile)
	flockFile = func(*os.File, bool) error { return os.NewSyscallError("flock", syscall.ENOLCK) }
	home := t.TempDir()
	_, err := OpenStore(home)
	if !errors.Is(err, ErrNoLocks) || !errors.Is(err, syscall.ENOLCK) || !strings.Contains(err.Error(), "--home") {
		t.Errorf("got %v", err)
	}
	if errors.Is(err, flock.ErrHeld) {
		t.Errorf("a refusal is taken for a held lock: %v", err)
	}
	for _, dir := range []string{home, home + "/runs"} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if !e.IsDir() {
				t.Errorf("%s was left behind", e.Name())
			}
		}
	}
}
