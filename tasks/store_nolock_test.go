//go:build unix

package tasks

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What stands in the place of a lock and is no file can be held by nobody, and by
// anybody who had the file that was there: it is named, and neither waited for nor
// taken for free.
func TestUnusableLock(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a folder":     func(path string) error { return os.Mkdir(path, 0o700) },
		"a full one":   func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
		"a link":       func(path string) error { return os.Symlink("task.json", path) },
		"to nothing":   func(path string) error { return os.Symlink("nothing", path) },
		"to itself":    func(path string) error { return os.Symlink(filepath.Base(path), path) },
		"a named pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a socket": func(path string) error {
			l, err := net.Listen("unix", path)
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "l") // a socket's path may have 100 bytes
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			d := &TaskDir{Run: "chat", Name: "llm", Path: dir}
			if err := errors.Join(os.WriteFile(d.file("task.json"), nil, 0o600), put(d.file("op.lock")), put(d.file(".x.json.tmp"))); err != nil {
				t.Fatal(err)
			}
			for what, do := range map[string]func() error{
				"wait for it":       func() error { _, err := d.Lock(t.Context()); return err },
				"try it":            func() error { _, _, err := d.TryLock(); return err },
				"reserve room":      d.reserve,
				"write beside":      func() error { return replaceFile(d.file("x.json"), nil, passing) },
				"see it as trouble": func() error { s := Seen{}; (&Manager{}).busy(d, &s); return s.Trouble },
			} {
				got := beside(do)
				select {
				case err = <-got:
				case <-testDeadline(t).Done():
					t.Fatalf("%s: it waits for ever", what)
				}
				record, ok := errors.AsType[*RecordError](err)
				if !ok || record.Kind != Unusable || record.Hint() == "" {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

// beside does something beside the test.
func beside(do func() error) <-chan error {
	got := make(chan error, 1)
	go func() { got <- do() }()
	return got
}

func testDeadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// Which errors say that a lock cannot be asked for, and which are of the host.
func TestNoLockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "op.lock")
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"it may not be opened":  {&fs.PathError{Op: "open", Path: path, Err: syscall.EACCES}, true},
		"it is another user's":  {syscall.EPERM, true},
		"a read-only folder":    {syscall.EROFS, false},
		"the disk is full":      {syscall.ENOSPC, false},
		"too many files":        {syscall.EMFILE, false},
		"it was moved":          {errMoved, false},
		"the folder is not one": {syscall.ENOENT, false},
	} {
		got := noLockFile(path, c.err)
		if _, is := errors.AsType[*RecordError](got); is != c.want || !errors.Is(got, c.err) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if err := errors.Join(os.WriteFile(path, nil, 0o600), noLockFile(path, nil)); err != nil {
		t.Error(err)
	}
}
