package flock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// The holder of a lock is told to who has the file open too, and nobody is where
// nobody holds it.
func TestHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	mine, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	other, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if pid, err := Holder(other); !errors.Is(err, ErrUnknown) {
		t.Errorf("nobody holds it: %d, %v", pid, err)
	}
	if err := Lock(mine, false); err != nil {
		t.Fatal(err)
	}
	if pid, err := Holder(other); err != nil || pid != os.Getpid() {
		t.Errorf("%d, %v; want %d", pid, err, os.Getpid())
	}
}
