package tasks

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a stop will need and a look does not is named while the task lives. Of one that
// has ended it is nothing that a look has to say.
func TestAmiss(t *testing.T) {
	for name, c := range map[string]struct {
		file  string // that is torn; with a ! removed
		state State
		lives bool
		says  string
		later bool // a glance does not see it
	}{
		"all is well":           {state: Up, lives: true},
		"torn spec":             {file: "spec.json", state: Up, lives: true, says: "kept as it is"},
		"no spec":               {file: "!spec.json", state: Up, lives: true, says: "spec.json is missing"},
		"no spec of a stop":     {file: "!spec.json", state: Stopping, lives: true, says: "spec.json is missing"},
		"torn capture":          {file: "capture.json", state: Up, lives: true, says: "kept as it is"},
		"no capture yet":        {file: "!capture.json", state: Up, lives: true, says: ""},
		"torn report":           {file: "report.json", state: Up, lives: true, says: "kept as it is", later: true},
		"torn stop request":     {file: "stop.json", state: Up, lives: true, says: "kept as it is", later: true},
		"torn spec, ended":      {file: "spec.json", state: Stopped, lives: true, says: ""},
		"no spec, nobody lives": {file: "!spec.json", state: Up, lives: false, says: ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, d := newTask(t)
			h := localHost(t)
			m := &Manager{Store: r.store, Host: h}
			keeper := another(t, h, "hob", "keeper", d.SpecPath())
			if !c.lives {
				keeper.Boot, keeper.Start = "", "linux:1"
			}
			task := testTask()
			task.State, task.Nonce = c.state, "n"
			err := errors.Join(d.writeStart(Spec{Run: "chat", Task: "llm", Nonce: "n"}, task), d.writeKeeper(Keeper{Nonce: "n", Keeper: keeper}, passing))
			if file, gone := strings.CutPrefix(c.file, "!"); gone {
				_ = os.Remove(d.file(file))
			} else if file != "" {
				err = errors.Join(err, os.WriteFile(d.file(file), []byte("{"), 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
			for look, amiss := range map[string]func(*TaskDir, Seen) error{"read": m.amiss, "at a glance": m.amissAtAGlance} {
				got := amiss(d, m.look(d))
				switch {
				case c.later && look == "at a glance":
				case c.says == "" && got != nil, c.says != "" && (got == nil || !strings.Contains(got.Error(), c.says)):
					t.Errorf("%s: %v; want %q", look, got, c.says)
				case got != nil && (!errors.Is(got, ErrUnverified) || advice(got, "") == ""):
					t.Errorf("%s: %v says neither that it is unverified nor what to do", look, got)
				}
			}
		})
	}
}

// What a crash of the host leaves of a record does not end as a whole one does.
func TestEndsWhole(t *testing.T) {
	whole, err := encode(testTask())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, c := range map[string]struct {
		data []byte
		want bool
	}{
		"whole": {whole, true}, "empty": {nil, false}, "one byte": {[]byte("{"), false},
		"cut": {whole[:len(whole)/2], false}, "cut by one": {whole[:len(whole)-1], false},
		"zeros": {make([]byte, len(whole)), false}, "zeros at the end": {append(whole[:len(whole)/2:len(whole)/2], make([]byte, 99)...), false},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		if has, whole := endsWhole(path); !has || whole != c.want {
			t.Errorf("%s: %v, %v; want %v", name, has, whole, c.want)
		}
	}
	if has, whole := endsWhole(filepath.Join(dir, "not there")); has || !whole {
		t.Error("one that is not there is no torn one")
	}
	if has, whole := endsWhole(dir); !has || whole {
		t.Error("a folder is no whole record")
	}
}

// Each record of the state folder itself that cannot be trusted is named, by one error
// with a hint, and none that is merely not there.
func TestStoreAmiss(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string // "" is a folder
		kinds []string
	}{
		"nothing":            {},
		"a good one":         {files: map[string]string{"server.json": `{"schema": 1}`, "left/x.json": `{"schema": 1}`, "left/.x.json.tmp": "{"}},
		"torn":               {files: map[string]string{"server.json": `{"sch`}, kinds: []string{Torn}},
		"newer":              {files: map[string]string{"server.json": `{"schema": 99}`}, kinds: []string{Newer}},
		"a folder":           {files: map[string]string{"server.json": ""}, kinds: []string{Unreadable}},
		"all of them":        {files: map[string]string{"server.json": "", "left/x.json": "{", "left/y.json": "[]"}, kinds: []string{Unreadable, Torn, Foreign}},
		"no list of cgroups": {files: map[string]string{"left": "x"}, kinds: []string{Unreadable}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			for file, text := range c.files {
				path := filepath.Join(s.Home, file)
				err := os.MkdirAll(filepath.Dir(path), 0o700)
				if text == "" {
					err = errors.Join(err, os.Mkdir(path, 0o700))
				} else {
					err = errors.Join(err, os.WriteFile(path, []byte(text), 0o600))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			var kinds []string
			for _, err := range flat(s.Amiss()) {
				record, ok := errors.AsType[*RecordError](err)
				if !ok || !errors.Is(err, ErrUnverified) || advice(err, "") == "" {
					t.Fatalf("%v names no record, or says nothing to do", err)
				}
				kinds = append(kinds, record.Kind)
			}
			if !slices.Equal(kinds, c.kinds) {
				t.Errorf("%v; want %v", kinds, c.kinds)
			}
		})
	}
}
