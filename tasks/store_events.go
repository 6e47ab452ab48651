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
	f, err := openFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("append %s: %w", path, ErrNoRecord)
	}
	if err != nil {
		return fmt.Errorf("append event: %w", err)
	}
	unlock, err := lockFile(context.Background(), f, path, silently)
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
	data, err := r.readEvents()
	events, torn = parseEvents(data)
	return events, torn, err
}

func (r *RunDir) readEvents() ([]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	data, err := readFile(r.file("events.jsonl"))
	if errors.Is(err, ErrNoRecord) {
		return nil, nil
	}
	return data, err
}

func parseEvents(data []byte) (events []Event, torn int) {
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
	return events, torn
}

// eventsRead is how far somebody who follows has read: the last line, and where
// it ended. Neither a count of lines nor the place alone would tell a file that
// was trimmed and has grown past it since.
type eventsRead struct {
	id   string // of the run
	last []byte
	end  int
}

// newEvents are those after the last that was read. A line that has not ended is
// left for the next time.
func (r *RunDir) newEvents(read *eventsRead) ([]Event, error) {
	data, err := r.readEvents()
	if err != nil {
		return nil, err
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	fresh := data[read.from(data):]
	if whole := bytes.TrimSuffix(data, []byte("\n")); len(whole) > 0 {
		read.last, read.end = bytes.Clone(whole[bytes.LastIndexByte(whole, '\n')+1:]), len(data)
	}
	events, _ := parseEvents(fresh)
	return events, nil
}

// from is where what is new begins: after the last line, where it was or where a
// trim has moved it to. A trim that took it away left only what came later.
func (r *eventsRead) from(data []byte) int {
	line := append(bytes.Clone(r.last), '\n')
	switch {
	case r.end == 0:
		return 0
	case r.end <= len(data) && bytes.HasSuffix(data[:r.end], line):
		return r.end
	case bytes.HasPrefix(data, line):
		return len(line)
	}
	if at := bytes.LastIndex(data, append([]byte{'\n'}, line...)); at >= 0 {
		return at + 1 + len(line)
	}
	return 0
}
