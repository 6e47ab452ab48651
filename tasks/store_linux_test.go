package tasks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hob/sweep"
)

// mountTmpfs mounts a small file system. It needs root, as CI has.
func mountTmpfs(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("hob-test", dir, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		t.Fatalf("this test needs root to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func fill(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return path
}

// TestFullDisk: a clear error before anything starts, and nothing half-recorded.
func TestFullDisk(t *testing.T) {
	home := filepath.Join(mountTmpfs(t, "size=1m"), "hob")
	s, err := OpenStore(home)
	if err != nil {
		t.Fatal(err)
	}
	r := s.Run("chat")
	d := r.Task("llm")
	if err := errors.Join(r.Create(), d.Create(), d.WriteTask(testTask()), d.BeginCapture(testCapture(PhaseRolling))); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(d.file("task.json"))
	fill(t, home)

	_, open := OpenStore(home)
	changed := testTask()
	changed.State = Starting
	for _, err := range []error{open, d.WriteTask(changed), d.WriteSpec(Spec{Run: "chat", Task: "llm"})} {
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), home) {
			t.Errorf("got %v", err)
		}
	}
	if after, _ := os.ReadFile(d.file("task.json")); string(after) != string(before) {
		t.Errorf("task.json was changed to %q", after)
	}
	assertNoTemps(t, home)

	// A stop still finds room for its records: the reserve.
	c := testCapture(PhaseStop)
	for range 20 {
		c.Members = append(c.Members, c.Members[0])
	}
	code := 0
	if err := errors.Join(d.WriteCapture(c, true), d.WriteExit(Exit{Nonce: "n", Code: &code}), d.WriteReport(sweep.Report{Run: "chat", Task: "llm"})); err != nil {
		t.Errorf("with the reserve: %v", err)
	}
	assertNoTemps(t, home)
}

func assertNoTemps(t *testing.T, home string) {
	t.Helper()
	err := filepath.WalkDir(home, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".tmp") || strings.HasSuffix(path, ".probe") {
			t.Errorf("%s was left behind", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestReadOnlyHome: a clear error, and what is there can still be looked at.
func TestReadOnlyHome(t *testing.T) {
	dir := mountTmpfs(t, "size=1m")
	home := filepath.Join(dir, "hob")
	s, err := OpenStore(home)
	if err != nil {
		t.Fatal(err)
	}
	r := s.Run("chat")
	if err := errors.Join(r.Create(), r.Write(Run{Name: "chat"})); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	_, missing := OpenStore(filepath.Join(dir, "other"))
	_, existing := OpenStore(home)
	for _, err := range []error{missing, existing} {
		if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "--home") {
			t.Errorf("got %v", err)
		}
	}
	for _, dir := range []string{home, filepath.Join(dir, "not", "there")} {
		m := &Manager{Store: &Store{Home: dir}}
		if c := m.checkHome(); c.Grade != Bad || !strings.Contains(c.Text, "read-only") {
			t.Errorf("doctor: %+v", c)
		}
	}
	view, err := ViewStore(home)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := view.Run("chat").Read(); err != nil || v.Name != "chat" {
		t.Errorf("got %+v, %v", v, err)
	}
}
