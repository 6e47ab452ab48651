package tasks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"hob/identity"
)

// LeftCgroup is left/<cgroup>.json: a cgroup that could not be removed when its task was
// over, for somebody is in it who is left alone. The task's own records may go, or be
// written over by its next start, before that one ends.
type LeftCgroup struct {
	Schema    int                `json:"schema"`
	Run       string             `json:"run"`
	Task      string             `json:"task"`
	By        identity.Ref       `json:"by"` // who found it so: of which host and boot it is
	Cgroup    identity.CgroupRef `json:"cgroup"`
	FrozenAt  *time.Time         `json:"frozen_at,omitempty"` // by a stop that was cut off, and it could not be thawed yet
	UpdatedAt time.Time          `json:"updated_at"`
}

func (s *Store) left() string { return filepath.Join(s.Home, "left") }

// WriteLeft writes down a cgroup that is left. One file each: nobody who writes
// another can lose it.
func (s *Store) WriteLeft(v LeftCgroup) error {
	v.Schema = Schema
	// Not with its parents: a state folder that was removed is not made again for this.
	if err := os.Mkdir(s.left(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("write down a cgroup that is left: %w", err)
	}
	return writeRecord(filepath.Join(s.left(), path.Base(v.Cgroup.Path)+".json"), v, nil, whole)
}

// ReadLeft gives each cgroup that is written down to look, which reports whether it
// is to be forgotten. The error names the files that cannot be trusted: they are kept.
func (s *Store) ReadLeft(look func(LeftCgroup) bool) error {
	entries, err := os.ReadDir(s.left())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &RecordError{Path: s.left(), Kind: Unreadable, Err: err}
	}
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		file := filepath.Join(s.left(), e.Name())
		v, err := readRecord[LeftCgroup](file, nil)
		if err == nil && look(v) {
			err = os.Remove(file)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, trouble(err))
		}
	}
	return errors.Join(errs...)
}
