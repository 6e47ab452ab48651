package tasks

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"sync"
	"time"

	"hob/tasks/probe"
)

// What a log may grow to: one that is written, and those that were rotated.
const (
	DefaultLogBytes = 32 << 20
	DefaultLogKeep  = 3
)

const (
	tailBytes = 4 << 10  // of output that is kept to find the last line in
	lineBytes = 16 << 10 // of one line that a readiness pattern is matched against
)

// taskLog is the task's log: what the command wrote, byte by byte. It is
// rotated by its writer, so nothing is lost in between.
type taskLog struct {
	path   string
	policy LogPolicy

	mu      sync.Mutex
	f       *os.File
	size    int64
	total   int64  // bytes that came, since the keeper began
	lost    int64  // bytes that could not be written, and no line in the log says so yet
	lastErr error  // why
	tail    []byte // the end of what came
	last    time.Time
	match   *regexp.Regexp          // nil once it has matched
	line    []byte                  // the unfinished line, for match
	matched []byte                  // the line that match found
	count   func(text []byte) int64 // of what came, how much is news; may be nil
	news    int64
}

// openLog begins the log of a start. That of the start before becomes log.1.
func openLog(path string, policy LogPolicy) (*taskLog, error) {
	if policy.MaxBytes <= 0 {
		policy.MaxBytes = DefaultLogBytes
	}
	if policy.Keep <= 0 {
		policy.Keep = DefaultLogKeep
	}
	l := &taskLog{path: path, policy: policy}
	if fi, err := os.Lstat(path); err == nil && fi.Size() > 0 {
		if err := l.shift(); err != nil {
			return nil, fmt.Errorf("rotate log %s: %w", path, err)
		}
	}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return l, nil
}

func (l *taskLog) open() error {
	f, err := openFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.f, l.size = f, fi.Size()
	return nil
}

// shift renames log to log.1, log.1 to log.2 and so on; the last one goes.
func (l *taskLog) shift() error {
	for n := l.policy.Keep; n > 0; n-- {
		err := os.Rename(l.numbered(n-1), l.numbered(n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (l *taskLog) numbered(n int) string {
	if n == 0 {
		return l.path
	}
	return fmt.Sprintf("%s.%d", l.path, n)
}

// Write takes output. It never fails: a full disk must not stop the command, so
// what cannot be written is counted, and the log says so once it can be again.
func (l *taskLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total += int64(len(p))
	l.last = time.Now()
	l.keepTail(p)
	l.scan(p)
	if l.count != nil {
		l.news += l.count(p)
	}
	l.put(p)
	return len(p), nil
}

func (l *taskLog) put(p []byte) {
	if l.lost > 0 {
		note := fmt.Appendf(nil, "\r\n[hob: %d bytes of output are missing here: %v]\r\n", l.lost, l.lastErr)
		if n, err := l.write(note); err != nil {
			l.lost += int64(len(p))
			l.size += int64(n)
			return
		}
		l.lost, l.lastErr = 0, nil
	}
	if n, err := l.write(p); err != nil {
		l.lost, l.lastErr = l.lost+int64(len(p)-n), err
	}
}

func (l *taskLog) write(p []byte) (int, error) {
	if l.size >= l.policy.MaxBytes {
		if err := l.rotate(); err != nil {
			return 0, err
		}
	}
	if l.f == nil {
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	n, err := l.f.Write(p)
	l.size += int64(n)
	return n, err
}

func (l *taskLog) rotate() error {
	if err := l.shift(); err != nil {
		return err
	}
	if l.f != nil {
		l.f.Close()
		l.f = nil
	}
	return l.open()
}

func (l *taskLog) keepTail(p []byte) {
	if len(p) >= tailBytes {
		l.tail = append(l.tail[:0], p[len(p)-tailBytes:]...)
		return
	}
	if over := len(l.tail) + len(p) - tailBytes; over > 0 {
		l.tail = append(l.tail[:0], l.tail[over:]...)
	}
	l.tail = append(l.tail, p...)
}

// watch has every line that comes from now on matched until one does (match may
// be nil), and what comes counted.
func (l *taskLog) watch(match *regexp.Regexp, count func(text []byte) int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if match != nil || count != nil {
		l.matched, l.news = nil, 0
	}
	l.match, l.count, l.line = match, count, nil
}

// fresh is how much of what came was news, and the percentage that the end of
// the log shows, if it does.
func (l *taskLog) fresh() (news int64, percent *int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, ok := probe.LastProgress(l.tail); ok {
		percent = &p.Percent
	}
	return l.news, percent
}

// scan matches the lines that p ends.
func (l *taskLog) scan(p []byte) {
	for l.match != nil && len(p) > 0 {
		part, rest, ended := bytes.Cut(p, []byte("\n"))
		p = rest
		if room := lineBytes - len(l.line); room > 0 {
			l.line = append(l.line, part[:min(room, len(part))]...)
		}
		if ended {
			l.try()
			l.line = l.line[:0]
		}
	}
}

func (l *taskLog) try() {
	if line := plainText(l.line); l.match.Match(line) {
		l.match, l.matched, l.line = nil, line, nil
	}
}

// logView is what is known of the log without reading it.
type logView struct {
	Total    int64
	Last     time.Time
	LastLine string
	Matched  []byte
	Lost     int64
	Err      error
}

// view also matches a line that has not ended: a prompt never does.
func (l *taskLog) view() logView {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.match != nil && len(l.line) > 0 {
		l.try()
	}
	return logView{Total: l.total, Last: l.last, LastLine: lastLine(l.tail), Matched: l.matched, Lost: l.lost, Err: l.lastErr}
}

func (l *taskLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil {
		l.f.Close()
		l.f = nil
	}
}
