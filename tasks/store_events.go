package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"hob/identity/cut"
)

// Bounds of events.jsonl: what is said of one event, and the size at which the
// older half of the file is dropped.
const (
	maxWhat   = 4 << 10
	maxEvents = 1 << 20
)

// Append adds a line to events.jsonl. A line that a crash has cut is ended
// first, so that it spoils no other.
func (r *RunDir) Append(e Event) error {
	if r.err != nil {
		return r.err
	}
	if len(e.What) > maxWhat {
		e.What = strings.ToValidUTF8(e.What[:maxWhat], "") + "…"
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("append event: %w", err)
	}
	path := r.file("events.jsonl")
	cut.Point("append", "event")
	for {
		err := appendLine(path, append(line, '\n'))
		if !errors.Is(err, errMoved) {
			return err
		}
	}
}

// appendLine writes under a lock on the file itself, which also tells whether
// the file was trimmed or archived in between.
func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("append %s: %w", path, ErrNoRecord)
	}
	if err != nil {
		return fmt.Errorf("append event: %w", err)
	}
	unlock, err := lockFile(context.Background(), f, path, true)
	if err != nil {
		return err
	}
	defer unlock()
	if !stillAt(f, path) {
		return errMoved
	}
	if err := appendLocked(f, path, line); err != nil {
		return fmt.Errorf("append %s: %w", path, err)
	}
	return nil
}

func appendLocked(f *os.File, path string, line []byte) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	size := fi.Size()
	if size > maxEvents {
		return trimEvents(f, path, line)
	}
	if size > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	_, err = f.Write(line)
	return err
}

// trimEvents keeps the newer half, from the start of a line on.
func trimEvents(f *os.File, path string, line []byte) error {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 2*maxEvents))
	if err != nil {
		return err
	}
	kept := data[len(data)/2:]
	kept = kept[bytes.IndexByte(kept, '\n')+1:]
	if len(kept) > 0 && kept[len(kept)-1] != '\n' {
		kept = append(kept, '\n')
	}
	return replaceFile(path, append(kept, line...), passing)
}

// Events reads events.jsonl. Lines that are not events (a crash cut them) are
// left out and counted.
func (r *RunDir) Events() (events []Event, torn int, err error) {
	if r.err != nil {
		return nil, 0, r.err
	}
	data, err := readFile(r.file("events.jsonl"))
	if errors.Is(err, ErrNoRecord) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	for line := range bytes.Lines(data) {
		var e Event
		switch line = bytes.TrimSpace(line); {
		case len(line) == 0:
		case json.Unmarshal(line, &e) != nil:
			torn++
		default:
			events = append(events, e)
		}
	}
	return events, torn, nil
}
