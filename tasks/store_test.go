package tasks

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"hob/identity"
	"hob/sweep"
)

func newStore(t *testing.T) *Store {
	t.Helper()
	s, err := OpenStore(filepath.Join(t.TempDir(), "state", "hob"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newTask(t *testing.T) (*RunDir, *TaskDir) {
	t.Helper()
	r := newStore(t).Run("chat")
	d := r.Task("llm")
	if err := errors.Join(r.Create(), d.Create()); err != nil {
		t.Fatal(err)
	}
	return r, d
}

func testRef(pid int) identity.Ref {
	id, uid := uint64(4096), 1000
	return identity.Ref{
		Machine: "m", Host: "h", Boot: "b", PIDNS: "1:2", TimeNS: "3", PID: pid, PIDFS: &id,
		Start: "linux:1234", UID: &uid, RecordedAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
	}
}

func testTask() Task {
	now, port := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), 8000
	return Task{
		Schema: Schema, Run: "chat", Task: "llm", Kind: sweep.Server, State: Up, Nonce: "n", Port: &port,
		Pane: &Pane{Window: "@1", Pane: "%2", TTY: "/dev/pts/3", PID: 9}, StartedAt: &now, UpdatedAt: now,
		Error: `"quoted", <b> & a line` + "\n" + "break ü",
	}
}

func testCapture(phase string) sweep.Capture {
	return sweep.Capture{Schema: Schema, Run: "chat", Task: "llm", Phase: phase, Members: []sweep.Member{{
		Ref: testRef(12), Parent: 9, SID: 12, PGID: 12, Args: []string{"python3", "-m", "server"},
		Evidence: []sweep.Evidence{sweep.Captured}, SeenAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
	}}}
}

func TestHomeDir(t *testing.T) {
	for _, c := range []struct {
		flag string
		env  map[string]string
		want string
	}{
		{"/flag", map[string]string{"HOB_HOME": "/e", "HOME": "/h"}, "/flag"},
		{"", map[string]string{"HOB_HOME": "/e", "XDG_STATE_HOME": "/x", "HOME": "/h"}, "/e"},
		{"", map[string]string{"XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/hob"},
		{"", map[string]string{"XDG_STATE_HOME": "rel", "HOME": "/h"}, "/h/.local/state/hob"},
		{"", nil, ""},
	} {
		got, err := HomeDir(c.flag, func(k string) string { return c.env[k] })
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("HomeDir(%q, %v) = %q, %v; want %q", c.flag, c.env, got, err, c.want)
		}
	}
	if err := func() error { _, err := HomeDir("", func(string) string { return "" }); return err }(); !strings.Contains(err.Error(), "--home") {
		t.Errorf("error does not say what to do: %v", err)
	}
}

func TestFoldersAndFilesArePrivate(t *testing.T) {
	r, d := newTask(t)
	spec := Spec{Run: "chat", Task: "llm", Env: []string{"TOKEN=secret"}}
	if err := errors.Join(d.WriteSpec(spec), d.WriteTask(testTask()), r.Write(Run{Name: "chat"}), r.Append(Event{What: "x"})); err != nil {
		t.Fatal(err)
	}
	home := r.store.Home
	err := filepath.WalkDir(home, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := os.Lstat(path)
		if err != nil {
			return err
		}
		want := os.FileMode(0o600)
		if fi.IsDir() {
			want = 0o700
		}
		if fi.Mode().Perm() != want {
			t.Errorf("%s has mode %04o, want %04o", path, fi.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFolderOfAnotherIsRefused(t *testing.T) {
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenStore(open); err == nil || !strings.Contains(err.Error(), "written by other users") {
		t.Errorf("a folder with mode 0777: %v", err)
	}
	if entries, _ := os.ReadDir(open); len(entries) > 0 {
		t.Errorf("something was made in it: %v", entries)
	}
	theirs := t.TempDir()
	if err := os.Chown(theirs, 12345, 12345); err != nil {
		t.Fatalf("this test needs root: %v", err)
	}
	for _, open := range []func(string) (*Store, error){OpenStore, ViewStore} {
		if _, err := open(theirs); err == nil || !strings.Contains(err.Error(), "uid 12345") {
			t.Errorf("a folder of uid 12345: %v", err)
		}
	}
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenStore(file); err == nil || !strings.Contains(err.Error(), "not a folder") {
		t.Errorf("a file: %v", err)
	}
}

func TestViewStoreMakesNothing(t *testing.T) {
	home := filepath.Join(t.TempDir(), "none")
	s, err := ViewStore(home)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := s.Runs()
	if len(runs) != 0 || err != nil {
		t.Errorf("Runs() = %v, %v", runs, err)
	}
	if _, err := os.Stat(home); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder was made")
	}
}

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "llm-2_b": true, "0": true, strings.Repeat("a", 41): true,
		"": false, "-a": false, "_a": false, "A": false, "a.b": false, "a/b": false, "..": false, "../x": false,
		"a ": false, "a\n": false, "ü": false, strings.Repeat("a", 42): false, "a\x00": false,
	} {
		if got := ValidName(name); got != want {
			t.Errorf("ValidName(%q) = %v", name, got)
		}
	}
}

// TestBadNamesLeadNowhere: a run id with "../" must not reach a file.
func TestBadNamesLeadNowhere(t *testing.T) {
	s := newStore(t)
	victim := filepath.Join(s.Home, "victim")
	if err := os.MkdirAll(filepath.Join(victim, "tasks"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../victim", "..", ".", "", "/etc", "a/../../victim"} {
		r := s.Run(name)
		d := r.Task("llm")
		_, e1 := r.Read()
		_, e2 := r.Tasks()
		_, e3 := r.Archive()
		_, e4 := r.Lock(t.Context())
		_, e5 := d.ReadTask()
		_, _, e6 := d.TryLock()
		_, _, e7 := r.Events()
		for i, err := range []error{
			r.Create(), r.Write(Run{Name: name}), r.Append(Event{}), r.Remove(), e1, e2, e3, e4, e5, e6, e7,
			d.Create(), d.WriteTask(Task{}), d.WriteSpec(Spec{}), d.WriteExit(Exit{}), d.WriteCapture(sweep.Capture{}, true),
		} {
			if !errors.Is(err, ErrBadName) {
				t.Errorf("run %q, call %d: %v", name, i, err)
			}
		}
	}
	if err := s.Run("ok").Task("../..").WriteTask(Task{}); !errors.Is(err, ErrBadName) {
		t.Errorf("task ../..: %v", err)
	}
	if _, err := os.Stat(victim); err != nil {
		t.Error(err)
	}
}

func TestRecordsComeBack(t *testing.T) {
	_, d := newTask(t)
	want := testTask()
	if _, err := d.ReadTask(); !errors.Is(err, ErrNoRecord) {
		t.Errorf("before the first write: %v", err)
	}
	if err := d.WriteTask(want); err != nil {
		t.Fatal(err)
	}
	got, err := d.ReadTask()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	c := testCapture(PhaseRolling)
	if err := d.WriteCapture(c, false); err != nil {
		t.Fatal(err)
	}
	if got, err := d.ReadCapture(); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, c)
	}
}

// recordKinds are all records, each with what reads and what writes it.
func recordKinds(r *RunDir, d *TaskDir) map[string]struct{ read, write func() error } {
	type use = struct{ read, write func() error }
	code := 3
	run := Run{Name: "chat", ID: "feedface", Tasks: []string{"llm"}, Ports: map[string]int{"llm": 8000}, Resolved: []byte(`{"a": [1, "ü"]}`)}
	self := testRef(7)
	return map[string]use{
		r.file("run.json"):     {func() error { _, err := r.Read(); return err }, func() error { return r.Write(run) }},
		d.file("task.json"):    {func() error { _, err := d.ReadTask(); return err }, func() error { return d.WriteTask(testTask()) }},
		d.file("spec.json"):    {func() error { _, err := d.ReadSpec(); return err }, func() error { return d.WriteSpec(Spec{Run: "chat", Task: "llm", Args: []string{"a", "b"}}) }},
		d.file("keeper.json"):  {func() error { _, err := d.ReadKeeper(); return err }, func() error { return d.WriteKeeper(Keeper{Nonce: "n", Keeper: self, Command: &self}) }},
		d.file("capture.json"): {func() error { _, err := d.ReadCapture(); return err }, func() error { return d.WriteCapture(testCapture(PhaseStop), true) }},
		d.file("exit.json"):    {func() error { _, err := d.ReadExit(); return err }, func() error { return d.WriteExit(Exit{Nonce: "n", Code: &code}) }},
		d.file("stop.json"):    {func() error { _, err := d.ReadStop(); return err }, func() error { return d.WriteStop(StopRequest{Nonce: "n", Reason: "down"}) }},
		d.file("report.json"):  {func() error { _, err := d.ReadReport(); return err }, func() error { return d.WriteReport(sweep.Report{Run: "chat", Task: "llm", Reason: "down"}) }},
	}
}

// TestCutAtEveryByte: wherever a record was cut, it is torn, it is kept byte by
// byte, and no writer replaces it.
func TestCutAtEveryByte(t *testing.T) {
	r, d := newTask(t)
	for path, use := range recordKinds(r, d) {
		if err := errors.Join(use.write(), use.read()); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for cut := range len(whole) - 1 { // without its last byte, the newline, it is whole
			if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{use.read(), use.write()} {
				var bad *RecordError
				if !errors.As(err, &bad) || bad.Kind != Torn || bad.Path != path {
					t.Fatalf("%s cut at %d of %d: %v", path, cut, len(whole), err)
				}
			}
			if now, _ := os.ReadFile(path); !bytes.Equal(now, whole[:cut]) {
				t.Fatalf("%s cut at %d was changed", path, cut)
			}
		}
	}
}

func TestRecordsThatCannotBeTrusted(t *testing.T) {
	for _, c := range []struct{ name, content, kind string }{
		{"zeros", strings.Repeat("\x00", 300), Torn},
		{"two values", "{\"schema\":1}{", Torn},
		{"newer", `{"schema":2,"run":["other","types"]}`, Newer},
		{"no schema", `{"run":"chat","task":"llm"}`, Foreign},
		{"null", `null`, Foreign},
		{"a list", `[1]`, Foreign},
		{"other types", `{"schema":1,"run":"chat","task":"llm","port":"8000"}`, Foreign},
		{"another task", `{"schema":1,"run":"chat","task":"other"}`, Foreign},
		{"another run", `{"schema":1,"run":"x","task":"llm"}`, Foreign},
	} {
		_, d := newTask(t)
		path := d.file("task.json")
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, read := d.ReadTask()
		for _, err := range []error{read, d.WriteTask(testTask())} {
			var bad *RecordError
			if !errors.As(err, &bad) || bad.Kind != c.kind {
				t.Errorf("%s: got %v, want kind %s", c.name, err, c.kind)
			} else if !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %q does not name the file", c.name, err)
			}
		}
		if now, _ := os.ReadFile(path); string(now) != c.content {
			t.Errorf("%s: the file was changed", c.name)
		}
	}
}

func TestUnreadableRecord(t *testing.T) {
	_, d := newTask(t)
	if err := os.Mkdir(d.file("task.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/null", d.file("exit.json")); err != nil {
		t.Fatal(err)
	}
	_, folder := d.ReadTask()
	_, link := d.ReadExit()
	for _, err := range []error{folder, link, d.WriteTask(testTask()), d.WriteExit(Exit{Nonce: "n"})} {
		var bad *RecordError
		if !errors.As(err, &bad) || bad.Kind != Unreadable {
			t.Errorf("got %v, want unreadable", err)
		}
	}
}

func TestUnknownFieldsAreLeftAlone(t *testing.T) {
	_, d := newTask(t)
	err := os.WriteFile(d.file("task.json"), []byte(`{"schema":1,"run":"chat","task":"llm","state":"up","colour":{"a":[1]}}`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := d.ReadTask(); err != nil || got.State != Up {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestRollingCaptureDoesNotReplaceAStop: the keeper looks and writes without
// op.lock, and what a stop has captured must not be lost to it.
func TestRollingCaptureDoesNotReplaceAStop(t *testing.T) {
	_, d := newTask(t)
	if err := errors.Join(d.BeginCapture(testCapture(PhaseRolling)), d.WriteCapture(testCapture(PhaseStop), true)); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteCapture(testCapture(PhaseRolling), false); !errors.Is(err, ErrStopBegun) {
		t.Errorf("got %v", err)
	}
	if c, err := d.ReadCapture(); err != nil || c.Phase != PhaseStop {
		t.Errorf("got %+v, %v", c, err)
	}
	if err := d.BeginCapture(testCapture(PhaseRolling)); err != nil {
		t.Errorf("the next start: %v", err)
	}
}

func TestArchive(t *testing.T) {
	s := newStore(t)
	for range 3 { // the same name, in the same second
		r := s.Run("chat")
		if err := errors.Join(r.Create(), r.Write(Run{Name: "chat"})); err != nil {
			t.Fatal(err)
		}
		to, err := r.Archive()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(to, "run.json")); err != nil {
			t.Error(err)
		}
	}
	if runs, err := s.Runs(); len(runs) != 0 || err != nil {
		t.Errorf("runs/ still holds %v, %v", runs, err)
	}
	old, err := s.Archived()
	if err != nil || len(old) != 3 {
		t.Fatalf("Archived() = %v, %v", old, err)
	}
	for _, r := range old {
		if v, err := r.Read(); err != nil || v.Name != "chat" {
			t.Errorf("%s: %+v, %v", r.Path, v, err)
		}
		if err := r.Remove(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(s.archive()); len(left) != 0 {
		t.Errorf("archive/ still holds %v", left)
	}
}

// TestTempFilesDoNotPileUp: what a crash leaves behind is used again, however
// long it is, and writers that come at once do not mix.
func TestTempFilesDoNotPileUp(t *testing.T) {
	_, d := newTask(t)
	if err := os.WriteFile(d.file(".task.json.tmp"), bytes.Repeat([]byte("x"), 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if err := d.WriteTask(testTask()); err != nil {
					t.Error(err)
				}
				if got, err := d.ReadTask(); err != nil || !reflect.DeepEqual(got, testTask()) {
					t.Errorf("got %+v, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
	if entries, err := os.ReadDir(d.Path); err != nil || len(entries) != 2 { // task.json and the reserve
		t.Errorf("%v, %v", entries, err)
	}
}

// TestOlderKeeper: a stop's capture waits for a keeper that still guards its rolling
// captures by capture.lock. One that cannot be asked for is an error; nobody makes it.
func TestOlderKeeper(t *testing.T) {
	_, d := newTask(t)
	if err := errors.Join(d.WriteCapture(testCapture(PhaseStop), true), os.Mkdir(d.file("capture.lock"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteCapture(testCapture(PhaseStop), true); err == nil {
		t.Error("its lock was not asked for")
	}
}

// TestStoreOwnRecordIsNotReadAgain: a record that we have written is replaced unread,
// and one that somebody has torn or replaced since is not replaced at all.
func TestStoreOwnRecordIsNotReadAgain(t *testing.T) {
	_, dir := newTask(t)
	task := Task{Run: dir.Run, Task: dir.Name, State: Up}
	path := dir.file("task.json")
	if dir.own.has(path) {
		t.Error("nothing was written")
	}
	for range 2 {
		if err := dir.WriteTask(task); err != nil {
			t.Fatal(err)
		}
		if !dir.own.has(path) {
			t.Error("what was just written is not known")
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	torn := bytes.Repeat([]byte("x"), len(text))
	for name, tear := range map[string]func() error{
		"cut":      func() error { return os.Truncate(path, 10) },
		"replaced": func() error { return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, torn, 0o600)) },
		"changed": func() error {
			return errors.Join(os.WriteFile(path, torn, 0o600), os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)))
		},
	} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(dir.WriteTask(task), tear()); err != nil {
			t.Fatal(err)
		}
		var no *RecordError
		if err := dir.WriteTask(task); !errors.As(err, &no) || no.Kind != Torn {
			t.Errorf("%s: %v", name, err)
		}
	}
}
