package tmux

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseVersion(t *testing.T) {
	for out, ok := range map[string]bool{
		"tmux 3.3a\n": true, "tmux 3.2": true, "tmux 3.7c": true, "tmux 4.0": true, "tmux 10.1": true,
		"tmux next-3.8": true, "tmux master": true, "tmux 3.5-rc": true, "tmux 3.5-rc2": true,
		"tmux openbsd-7.4": true, "tmux openbsd-6.9": true,
		"tmux openbsd-6.8": false, "tmux 3.1c": false, "tmux 2.9": false, "tmux 1.8": false, "tmux next-3.1": false,
		"": false, "tmux": false, "screen 4.9": false,
		"tmux x.y": false, "tmux 3": false, "error": false,
	} {
		if err := parseVersion(out).check("tmux"); (err == nil) != ok {
			t.Errorf("%q: %v", out, err)
		}
	}
}

// The words of tmux 3.0a to 3.8, those of versions that are not here included.
func TestClassify(t *testing.T) {
	for said, want := range map[string]error{
		"no server running on /tmp/x/s":                            ErrNoServer,
		"error connecting to /tmp/x/s (No such file or directory)": ErrNoServer,
		"error connecting to /tmp/x/s (Connection refused)":        ErrNoServer,
		"can't find pane: %77":                                     ErrNoTarget,
		"can't find window: @9":                                    ErrNoTarget,
		"can't find session: $9":                                   ErrNoTarget,
		"no current target":                                        ErrNoTarget,
		"duplicate session: web":                                   ErrExists,
		"protocol version mismatch (client 8, server 7)":           ErrMismatch,
		"server version is too old for client":                     ErrMismatch,
		"server exited unexpectedly":                               ErrLost,
		"lost server":                                              ErrLost,
		"":                                                         nil,
		"command too long":                                         nil,
	} {
		if got := classify(said); !errors.Is(got, want) {
			t.Errorf("%q is %v, wanted %v", said, got, want)
		}
	}
	for _, said := range []string{"error connecting to /s (Permission denied)", "error connecting to /s (File name too long)"} {
		if got := classify(said); got == nil || errors.Is(got, ErrNoServer) {
			t.Errorf("%q is %v: a server that cannot be reached is not one that is not there", said, got)
		}
	}
}

// An answer that is missing does not say that the pane is gone.
func TestKilled(t *testing.T) {
	p := Pane{ID: "%7", ServerPID: 12}
	for answer, want := range map[string]error{"killed": nil, "other %7": ErrOther, "other": ErrNoTarget, "other %1": ErrNoTarget} {
		if err := killed(answer, p); !errors.Is(err, want) {
			t.Errorf("%q is %v, wanted %v", answer, err, want)
		}
	}
	for _, answer := range []string{"", "%7", "killed %7"} {
		if err := killed(answer, p); err == nil || errors.Is(err, ErrOther) || errors.Is(err, ErrNoTarget) {
			t.Errorf("%q is %v", answer, err)
		}
	}
}

// A tmux up to 3.7 answers 0 although it could not reach the socket's folder.
func TestErrorWithExitCodeZero(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\necho 'error connecting to /s (No such file or directory)' >&2\n"
	bin := filepath.Join(dir, "tmux")
	if err := os.WriteFile(bin, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := &Server{Socket: filepath.Join(dir, "s"), Bin: bin}
	if len(s.Socket) > maxSocket {
		t.Skipf("temp folder too deep: %s", s.Socket)
	}
	// Where there is no socket no program is asked.
	if _, err := (&Server{Bin: "/nonexistent", Socket: s.Socket}).Panes(context.Background()); !errors.Is(err, ErrNoServer) {
		t.Errorf("panes: %v", err)
	}
	if err := s.KillEmpty(context.Background()); !errors.Is(err, ErrNoServer) {
		t.Errorf("kill through a missing folder: %v", err)
	}
}

func TestErrorSaysTmuxsWords(t *testing.T) {
	err := &Error{Args: append(append([]string{}, setup...), "new-session", "-d", "--", "x", ";", "y"), Stderr: "duplicate session: web\n", Err: ErrExists}
	for _, part := range []string{"tmux new-session:", "duplicate session: web", ErrExists.Error()} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
	var ee *exec.ExitError
	if errors.As(err, &ee) || !errors.Is(err, ErrExists) {
		t.Error("the cause is not what errors.Is finds")
	}
}

func TestParsePanes(t *testing.T) {
	seven := 7
	for name, c := range map[string]struct {
		out  string
		want []Pane
		bad  bool
	}{
		"none": {},
		"living": {out: "10|$1|@2|%3|44|/dev/pts/1|0|||3|web|main\n",
			want: []Pane{{ServerPID: 10, Session: "$1", SessionName: "web", Window: "@2", WindowName: "main", ID: "%3", PID: 44, TTY: "/dev/pts/1"}}},
		"dead, status known": {out: "10|$1|@2|%3|44|/dev/pts/1|1|7||3|web|main\n",
			want: []Pane{{ServerPID: 10, Session: "$1", SessionName: "web", Window: "@2", WindowName: "main", ID: "%3", PID: 44, TTY: "/dev/pts/1", Dead: true, DeadStatus: &seven}}},
		"dead, by signal, no tty or pid": {out: "10|$1|@2|%3|||1||9|1|w|\n",
			want: []Pane{{ServerPID: 10, Session: "$1", SessionName: "w", Window: "@2", ID: "%3", Dead: true, DeadSignal: "9"}}},
		"dead, unknown": {out: "10|$1|@2|%3|44||1|||1|w|x",
			want: []Pane{{ServerPID: 10, Session: "$1", SessionName: "w", Window: "@2", WindowName: "x", ID: "%3", PID: 44, Dead: true}}},
		"status of the living":   {out: "10|$1|@2|%3|44||0|0||1|w|x", want: []Pane{{ServerPID: 10, Session: "$1", SessionName: "w", Window: "@2", WindowName: "x", ID: "%3", PID: 44}}},
		"no ids":                 {out: "10|||||/dev/pts/1|0|||3|web|main\n", bad: true},
		"blank line":             {out: "\n", bad: true},
		"one row of two is torn": {out: "10|$1|@2|%3|44||0|||1|w|x\n10|$1|@2\n", bad: true},
		"pid 0":                  {out: "0|$1|@2|%3|44||0|||1|w|x", bad: true},
		"pid too large":          {out: "10|$1|@2|%3|4444444444||0|||1|w|x", bad: true},
		"pid with sign":          {out: "10|$1|@2|%3|-4||0|||1|w|x", bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parsePanes(c.out)
			if (err != nil) != c.bad || len(got) != len(c.want) {
				t.Fatalf("%+v, %v", got, err)
			}
			for i := range got {
				same(t, got[i], c.want[i])
			}
		})
	}
}

func same(t *testing.T, got, want Pane) {
	t.Helper()
	if (got.DeadStatus == nil) != (want.DeadStatus == nil) || got.DeadStatus != nil && *got.DeadStatus != *want.DeadStatus {
		t.Errorf("status %v, wanted %v", got.DeadStatus, want.DeadStatus)
	}
	got.DeadStatus, want.DeadStatus = nil, nil
	if got != want {
		t.Errorf("%+v, wanted %+v", got, want)
	}
}

func FuzzParsePanes(f *testing.F) {
	f.Add("10|$1|@2|%3|44|/dev/pts/1|1|7|9|3|web|main\n")
	f.Add("10|$1|@2|%3|||1|||-1|w|\n10|$1|@2|%3|44||0|||99|a|b|c\n")
	f.Fuzz(func(t *testing.T, out string) {
		panes, err := parsePanes(out)
		if err != nil && panes != nil {
			t.Error("an unreadable list that lists something")
		}
		for _, p := range panes {
			if p.ServerPID < 1 || p.PID < 0 || !paneID().MatchString(p.ID) || !windowID().MatchString(p.Window) || !sessionID().MatchString(p.Session) {
				t.Errorf("%q read as %+v", out, p)
			}
			if !p.Dead && (p.DeadStatus != nil || p.DeadSignal != "") {
				t.Errorf("a living pane with a status: %+v", p)
			}
		}
		if p, err := parseSpawned(out); err == nil && (p.ServerPID < 1 || !paneID().MatchString(p.ID)) {
			t.Errorf("%q read as spawned %+v", out, p)
		}
	})
}

func FuzzCountRows(f *testing.F) {
	f.Add(strings.Repeat(separator, 9) + "\n")
	f.Fuzz(func(t *testing.T, rows string) {
		if n, err := countRows(rows); err == nil && n != strings.Count(rows, separator)/(len(freeText)-1) {
			t.Errorf("%d rows in %q", n, rows)
		}
	})
}

func TestSplitNames(t *testing.T) {
	for _, c := range []struct{ n, names, session, window string }{
		{"3", "web|main", "web", "main"},
		{"5", "a|b|c|d", "a|b|c", "d"},
		{"6", "模型|x", "模型", "x"},
		{"", "web|main", "web", "main"}, // a tmux that does not know n:
		{"99", "web|main", "web", "main"},
		{"-1", "web|main", "web", "main"},
		{"2", "__|x", "__", "x"},
		{"6", "__|x", "__", "x"}, // altered on its way
		{"0", "|x", "", "x"},
		{"1", "w", "w", ""},
	} {
		if s, w := splitNames(c.n, c.names); s != c.session || w != c.window {
			t.Errorf("%q %q: %q, %q", c.n, c.names, s, w)
		}
	}
}

func TestSocketPaths(t *testing.T) {
	short, err := os.MkdirTemp("/tmp", "hobt")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	file := filepath.Join(short, "file")
	open := filepath.Join(short, "open")
	link := filepath.Join(short, "link")
	for _, err := range []error{
		os.WriteFile(file, nil, 0o600), os.Mkdir(open, 0o700), os.Chmod(open, 0o755), os.Symlink(short, link),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, ok := range map[string]bool{
		filepath.Join(short, "s"):               true,
		filepath.Join(short, "fresh", "s"):      true,
		filepath.Join(short, "no", "such", "s"): false,
		filepath.Join(open, "s"):                false,
		filepath.Join(file, "s"):                false,
		filepath.Join(link, "s"):                false,
		"relative/s":                            false,
		"":                                      false,
		filepath.Join(short, strings.Repeat("x", 100-len(short)-1)): true,
		filepath.Join(short, strings.Repeat("x", 100-len(short))):   false,
	} {
		_, err := New(t.Context(), path)
		if (err == nil) != ok || err != nil && !errors.Is(err, ErrSocketPath) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if info, err := os.Stat(filepath.Join(short, "fresh")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder that was made: %v, %v", info, err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(open, 12345, -1); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(open, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(filepath.Join(open, "s")); !errors.Is(err, ErrSocketPath) || !strings.Contains(err.Error(), "another user") {
			t.Errorf("a stranger's folder: %v", err)
		}
	}
}

func TestDefaultSocket(t *testing.T) {
	run, tmp, home := t.TempDir(), t.TempDir(), t.TempDir()
	link := filepath.Join(t.TempDir(), "home")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	socket := func(home string) string {
		t.Helper()
		path, err := DefaultSocket(home, func(k string) string { return env[k] })
		if err != nil || len(path) > maxSocket {
			t.Fatalf("%q, %v", path, err)
		}
		return path
	}
	if got := socket(home); !strings.HasPrefix(got, "/tmp/hob-") || got != socket(link) || got == socket(tmp) {
		t.Errorf("%s; through a link %s; another home %s", got, socket(link), socket(tmp))
	}
	env["TMPDIR"] = "/var/tmp"
	if got := socket(home); !strings.HasPrefix(got, "/var/tmp/hob-") {
		t.Errorf("TMPDIR: %s", got)
	}
	env["TMPDIR"] = "/" + strings.Repeat("deep/", 20)
	if got := socket(home); !strings.HasPrefix(got, "/tmp/hob-") {
		t.Errorf("a TMPDIR that is too long: %s", got)
	}
	env["XDG_RUNTIME_DIR"] = "/nonexistent"
	if got := socket(home); !strings.HasPrefix(got, "/tmp/hob-") {
		t.Errorf("a runtime folder that is not there: %s", got)
	}
	env["XDG_RUNTIME_DIR"] = run
	if got := socket(home); filepath.Dir(got) != filepath.Join(run, "hob") && len(run) < 60 {
		t.Errorf("XDG_RUNTIME_DIR: %s", got)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(run, 12345, -1); err != nil {
			t.Fatal(err)
		}
		if got := socket(home); strings.HasPrefix(got, run) {
			t.Errorf("a runtime folder of another user: %s", got)
		}
	}
}

// Titles may hold what ends a row or a field; lengths tell where they end. Where
// these do not fit, the names are told as well as can be, and that is said.
func TestParseSurvey(t *testing.T) {
	const ids = "77|$1|@2|%3|100|/dev/pts/4|0|1|0|1|0|b25f,80x24,0,0,3|"
	good := ids + "3|5|7|0|one|a|b\nc|5|x|\n7|||\n"
	seen, err := parseSurvey(good + ids + "3|1|0|2|two|w||le|\n")
	if err != nil || len(seen) != 2 {
		t.Fatalf("%+v: %v", seen, err)
	}
	if p := seen[0]; p.SessionName != "one" || p.WindowName != "a|b\nc" || p.Title != "5|x|\n7|" || p.Label != "" || !p.Focus || p.Front || p.Garbled || p.WindowIndex != 1 {
		t.Errorf("the first is %+v", p)
	}
	if p := seen[1]; p.SessionName != "two" || p.WindowName != "w" || p.Title != "" || p.Label != "le" || p.Garbled {
		t.Errorf("the second is %+v", p)
	}
	seen, err = parseSurvey(ids + "3|1|9|2|one|w|altered||\n" + good)
	if err != nil || len(seen) != 2 || !seen[0].Garbled || seen[0].SessionName != "one" || seen[0].Title != "" || seen[1].Title != "5|x|\n7|" {
		t.Errorf("altered on its way: %+v, %v", seen, err)
	}
	for _, bad := range []string{"x", "77|$1|@2\n", "77|1|@2|%3|100|t|0|1|0|1|0|l|1|1|1|1|a|b|c|d|\n"} {
		if seen, err := parseSurvey(bad); err == nil {
			t.Errorf("%q gave %+v", bad, seen)
		}
	}
}
