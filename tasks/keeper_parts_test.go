package tasks

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hob/recipes"
)

func TestLastLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                              "",
		"\r\n\r\n":                      "",
		"one\r\ntwo\r\n":                "two",
		"one\r\ntwo":                    "two",
		"one\r\n   \r\n\x1b[0m\r\n":     "one",
		"\x1b[32mINFO\x1b[0m up\r\n":    "INFO up",
		"10%\r20%\r100%\r\n":            "100%",
		"10%\r20%\r":                    "20%",
		"\x1b]0;title\x07text":          "text",
		"\x1b]8;;http://x\x1b\\link":    "link",
		"a\x1b(Bb\x1b7c":                "abc",
		"cut \x1b[3":                    "cut",
		"tab\there \x00bell\x07":        "tab\there bell",
		"bad \xff utf8":                 "bad \uFFFD utf8",
		"ünïcode ✓":                     "ünïcode ✓",
		strings.Repeat("ü", 500) + "\n": strings.Repeat("ü", maxLastLine/2) + "…",
	} {
		if got := lastLine([]byte(in)); got != want {
			t.Errorf("lastLine(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestWhatALookCosts(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ took, spent, cost time.Duration }{
		{5 * ms, 2 * ms, 2 * ms}, // it waited for a processor
		{2 * ms, 5 * ms, 2 * ms}, // others used one beside it
		{3 * ms, 0, 3 * ms},      // not told here
	} {
		if got := cost(c.took, c.spent); got != c.cost {
			t.Errorf("cost(%v, %v) = %v, want %v", c.took, c.spent, got, c.cost)
		}
	}
	for _, c := range []struct{ walk, since, all time.Duration }{
		{2 * ms, 3 * ms, 3 * ms},
		{2 * ms, 50 * ms, 6 * ms}, // a log was copied meanwhile
		{2 * ms, 0, 2 * ms},
	} {
		if got := withAll(c.walk, c.since); got != c.all {
			t.Errorf("withAll(%v, %v) = %v, want %v", c.walk, c.since, got, c.all)
		}
	}
}

func FuzzPlainText(f *testing.F) {
	f.Add([]byte("\x1b[1mx\x1b]0;t\x07\x1bP\x1b\\"))
	f.Fuzz(func(t *testing.T, b []byte) {
		out := plainText(b)
		if bytes.ContainsAny(out, "\x1b\x07\x00\r") {
			t.Errorf("plainText(%q) = %q", b, out)
		}
		lastLine(b)
	})
}

func newLog(t *testing.T, p LogPolicy) *taskLog {
	t.Helper()
	l, err := openLog(filepath.Join(t.TempDir(), "log"), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	return l
}

func TestLogRotates(t *testing.T) {
	l := newLog(t, LogPolicy{MaxBytes: 10, Keep: 2})
	for _, s := range []string{"0123456789", "a", "0123456789", "b", "c"} {
		l.Write([]byte(s))
	}
	for name, want := range map[string]string{"": "bc", ".1": "a0123456789", ".2": "0123456789"} {
		if data, _ := os.ReadFile(l.path + name); string(data) != want {
			t.Errorf("log%s: %q, want %q", name, data, want)
		}
	}
	if _, err := os.Stat(l.path + ".3"); err == nil {
		t.Error("more than two are kept")
	}
}

// TestLogOfTheStartBefore becomes log.1.
func TestLogOfTheStartBefore(t *testing.T) {
	l := newLog(t, LogPolicy{})
	l.Write([]byte("old"))
	l.close()
	again, err := openLog(l.path, LogPolicy{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.close()
	again.Write([]byte("new"))
	now, _ := os.ReadFile(l.path)
	before, _ := os.ReadFile(l.path + ".1")
	if string(now) != "new" || string(before) != "old" {
		t.Errorf("log %q, log.1 %q", now, before)
	}
}

func TestLogMatchesLines(t *testing.T) {
	l := newLog(t, LogPolicy{})
	l.Write([]byte("ready before the watch\n"))
	l.watch(regexp.MustCompile(`ready on port \d+$`), func(p []byte) int64 { return int64(len(p)) })
	l.Write([]byte("\x1b[1mready\x1b[0m on po"))
	if v := l.view(); v.Matched != nil {
		t.Errorf("matched %q too early", v.Matched)
	}
	l.Write([]byte("rt 80"))
	l.Write([]byte("00\r\nmore\r\n"))
	if v := l.view(); string(v.Matched) != "ready on port 8000" {
		t.Errorf("matched %q", v.Matched)
	}
	if n, _ := l.fresh(); n != int64(len("\x1b[1mready\x1b[0m on port 8000\r\nmore\r\n")) {
		t.Errorf("%d fresh bytes", n)
	}
	l.watch(regexp.MustCompile(`^> $`), nil)
	l.Write([]byte("> "))
	if v := l.view(); string(v.Matched) != "> " {
		t.Errorf("a prompt: matched %q", v.Matched)
	}
}

// TestLogBoundsALine: a line without end does not fill the memory.
func TestLogBoundsALine(t *testing.T) {
	l := newLog(t, LogPolicy{})
	l.watch(regexp.MustCompile(`never`), nil)
	for range 100 {
		l.Write(bytes.Repeat([]byte{'x'}, 32<<10))
	}
	if cap(l.line) > 4*lineBytes {
		t.Errorf("%d bytes are kept", cap(l.line))
	}
}

// blockable is a terminal that can stop taking output, or be gone.
type blockable struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	gate chan struct{} // a write waits for it
	err  error
}

func (b *blockable) Write(p []byte) (int, error) {
	<-b.gate
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return 0, b.err
	}
	return b.buf.Write(p)
}

func (b *blockable) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestPaneShowsAllWhileItIsTaken(t *testing.T) {
	b := &blockable{gate: make(chan struct{})}
	close(b.gate)
	p := newPane(b)
	var want strings.Builder
	for i := range 2000 {
		line := strings.Repeat(string(rune('a'+i%26)), 300) + "\n"
		want.WriteString(line)
		io.WriteString(p, line)
	}
	p.close()
	if b.String() != want.String() {
		t.Errorf("%d of %d bytes", len(b.String()), want.Len())
	}
}

func TestPaneThatTakesNothingLosesOutput(t *testing.T) {
	b := &blockable{gate: make(chan struct{})}
	p := newPane(b)
	done := make(chan struct{})
	go func() {
		for range 1000 {
			p.Write(bytes.Repeat([]byte{'x'}, 4096))
		}
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("the command is frozen")
	}
	close(b.gate)
	for end := time.Now().Add(patience); !strings.Contains(b.String(), "bytes are not shown here"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not say what it has not shown")
		}
	}
	io.WriteString(p, "after")
	p.close()
	if got := b.String(); !strings.HasSuffix(got, "after") {
		t.Errorf("the end of what is shown: %q", got[max(0, len(got)-200):])
	}
}

func TestPaneThatIsGone(t *testing.T) {
	b := &blockable{gate: make(chan struct{}), err: syscall.EIO}
	close(b.gate)
	p := newPane(b)
	for range 1000 {
		p.Write(bytes.Repeat([]byte{'x'}, 4096))
	}
	p.close()
}

func TestResolveProgram(t *testing.T) {
	dir, bin := t.TempDir(), t.TempDir()
	for path, mode := range map[string]os.FileMode{
		filepath.Join(dir, "here"): 0o755, filepath.Join(bin, "tool"): 0o755, filepath.Join(bin, "data"): 0o644,
		filepath.Join(dir, "sub", "tool2"): 0o755,
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, mode)); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=/nonexistent:sub:" + bin}
	for _, c := range []struct {
		argv0, want string
		code        int
	}{
		{"tool", filepath.Join(bin, "tool"), 0},
		{"tool2", filepath.Join(dir, "sub", "tool2"), 0},
		{"./here", filepath.Join(dir, "here"), 0},
		{filepath.Join(bin, "tool"), filepath.Join(bin, "tool"), 0},
		{"here", "", 127},
		{"data", "", 126},
		{"./nothing", "", 127},
		{"./here/below", "", 127},
		{"", "", 127},
	} {
		got, err := resolve(c.argv0, dir, env)
		var no *startError
		switch {
		case c.code == 0 && (err != nil || got != c.want):
			t.Errorf("resolve(%q) = %q, %v; want %q", c.argv0, got, err, c.want)
		case c.code != 0 && (!errors.As(err, &no) || no.code != c.code):
			t.Errorf("resolve(%q): %v, want code %d", c.argv0, err, c.code)
		}
	}
}

// A server that starts fast is seen soon; an interval that was chosen holds.
func TestPace(t *testing.T) {
	for _, c := range []struct{ every, waited, want time.Duration }{
		{250 * time.Millisecond, 0, 25 * time.Millisecond},
		{250 * time.Millisecond, 400 * time.Millisecond, 100 * time.Millisecond},
		{250 * time.Millisecond, time.Minute, 250 * time.Millisecond},
		{20 * time.Millisecond, time.Minute, 20 * time.Millisecond},
		{10 * time.Millisecond, 0, 10 * time.Millisecond},
		{2 * time.Second, 0, 2 * time.Second},
		{recipes.ReadyInterval, -time.Second, probeSoon},
		{300 * time.Millisecond, 0, 300 * time.Millisecond},
	} {
		if got := pace(c.every, c.waited); got != c.want {
			t.Errorf("every %v, waited %v: %v", c.every, c.waited, got)
		}
	}
}
