package tasks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"hob/sweep"
)

// Phases of a capture.
const (
	PhaseRolling = "rolling" // the task is up; the keeper writes it
	PhaseStop    = "stop"    // a stop has begun; whoever stops writes it
)

// ErrStopBegun means that a stop's capture is on disk, and a rolling one may
// not replace it.
var ErrStopBegun = errors.New("a stop has begun")

// ReadCapture reads capture.json.
func (t *TaskDir) ReadCapture() (sweep.Capture, error) {
	return read(t, "capture.json", t.ownsCapture)
}

// WriteCapture writes capture.json, durably for a stop. A rolling capture does
// not replace a stop's: that fails with ErrStopBegun.
func (t *TaskDir) WriteCapture(c sweep.Capture, fsync bool) error {
	if fsync {
		return t.putCapture(c, durable, false)
	}
	return t.putCapture(c, passing, false)
}

// BeginCapture writes the first rolling capture of a start. It replaces that of
// the stop before it, so the caller is the keeper of a task that is `starting`,
// or holds op.lock.
func (t *TaskDir) BeginCapture(c sweep.Capture) error {
	return t.putCapture(c, whole, true)
}

// putCapture looks at what it replaces with the temp file locked: the keeper writes
// rolling captures without op.lock, and must not look, be overtaken by a stop, and
// then replace its capture.
func (t *TaskDir) putCapture(c sweep.Capture, how lasting, begin bool) error {
	c.Schema = Schema
	err := errors.Join(t.err, t.ownsCapture(&c))
	if err != nil {
		return fmt.Errorf("write %s: %w", t.file("capture.json"), err)
	}
	data, err := encode(c)
	if err != nil {
		return fmt.Errorf("write %s: %w", t.file("capture.json"), err)
	}
	may := func() error {
		old, err := t.ReadCapture()
		if err == nil && old.Phase != PhaseRolling && c.Phase == PhaseRolling && !begin {
			return ErrStopBegun
		}
		return trouble(err)
	}
	if c.Phase != PhaseRolling {
		unlock, err := t.olderKeeper()
		if err != nil {
			return err
		}
		defer unlock()
	}
	return t.reserved(func() error { return replaceFiles(how, newFile{path: t.file("capture.json"), data: data, may: may}) })
}

// olderKeeper waits for the write of a keeper that was started by a hob which guarded
// rolling captures by a lock of their own.
func (t *TaskDir) olderKeeper() (Unlock, error) {
	path := t.file("capture.lock")
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	return lock(context.Background(), path)
}

func (t *TaskDir) ownsCapture(c *sweep.Capture) error { return t.owns(c.Run, c.Task) }
