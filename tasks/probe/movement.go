package probe

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Sample is what of a task can move while it loads. Unknown numbers are nil: they
// neither prove nor disprove that it moves.
type Sample struct {
	At      time.Time
	Log     int64  // bytes that the task has written that are not echoes of the probe ([Check.Fresh])
	Memory  *int64 // bytes resident, of the whole tree
	Disk    *int64 // bytes read from disk, of the whole tree
	Percent *int   // progress that the log shows
}

// The smallest change that counts. Below it lies what an idle server does: a
// garbage collector, a heartbeat, a page of a log file.
const (
	memoryStep = 8 << 20
	diskStep   = 1 << 20
)

// Moved says what has moved between two samples, or "". Memory that shrinks
// moves too: a loader hands its buffers to the GPU.
func Moved(from, to Sample) string {
	switch {
	case to.Percent != nil && from.Percent != nil && *to.Percent > *from.Percent:
		return fmt.Sprintf("progress %d%%", *to.Percent)
	case to.Log > from.Log:
		return "log"
	case changed(from.Memory, to.Memory, memoryStep):
		return "memory"
	case changed(from.Disk, to.Disk, diskStep):
		return "disk reads"
	}
	return ""
}

func changed(from, to *int64, step int64) bool {
	return from != nil && to != nil && (*to-*from >= step || *from-*to >= step)
}

// Patience is how long a task may take to become ready.
type Patience struct {
	Start   time.Time
	Timeout time.Duration // the recipe's: it is never cut short
	Quiet   time.Duration // beyond Timeout the task must have moved within this time; 0: see Deadline
	Hard    time.Duration // never longer than this from Start; 0: four times Timeout
}

// Deadline is when waiting ends, if the task moved last at moved (the zero time:
// never). Pure: the same question always has the same answer.
//
// Where Quiet is 0 it is a fifth of Timeout, between 10 s and 2 minutes: short
// enough that a hang is told soon, long enough for one shard to be read.
func (p Patience) Deadline(moved time.Time) time.Time {
	quiet := p.Quiet
	if quiet <= 0 {
		quiet = min(max(p.Timeout/5, 10*time.Second), 2*time.Minute)
	}
	hard := p.Hard
	if hard <= 0 {
		hard = 4 * p.Timeout
	}
	end := p.Start.Add(p.Timeout)
	if moved.IsZero() {
		return end
	}
	if later := moved.Add(quiet); later.After(end) {
		end = later
	}
	if last := p.Start.Add(max(hard, p.Timeout)); end.After(last) {
		end = last
	}
	return end
}

// Fresh counts the bytes of new log text that show the task at work. Lines that
// the probe itself provokes, the access log of a server that answers 503, are
// not among them: they would keep a hung server waiting to the hard limit. An
// unfinished last line counts, for progress bars have no end of line.
func (c Check) Fresh(text []byte) int64 {
	var n int64
	// A bar that is drawn over itself ends its states with carriage returns.
	for line := range bytes.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if len(bytes.TrimSpace(line)) > 0 && !c.echo(line) {
			n += int64(len(line))
		}
	}
	return n
}

// echo reports whether a line of a log tells of the probe's own request.
func (c Check) echo(line []byte) bool {
	for _, path := range c.asks() {
		if path != "/" && bytes.Contains(line, []byte(path)) {
			return true
		}
		if bytes.Contains(line, []byte("GET "+path+" ")) {
			return true
		}
	}
	return false
}

// asks are the paths that the probe requests.
func (c Check) asks() []string {
	switch {
	case c.Completion:
		return []string{"/v1/models", "/v1/completions", "/v1/chat/completions"}
	case c.HTTP != "":
		if u, err := url.Parse(c.HTTP); err == nil {
			return []string{"/" + strings.TrimLeft(u.Path, "/")}
		}
	}
	return nil
}
