package tasks

import (
	"errors"
	"os"
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
	}{
		"all is well":           {state: Up, lives: true},
		"torn spec":             {"spec.json", Up, true, "kept as it is"},
		"no spec":               {"!spec.json", Up, true, "spec.json is missing"},
		"no spec of a stop":     {"!spec.json", Stopping, true, "spec.json is missing"},
		"torn capture":          {"capture.json", Up, true, "kept as it is"},
		"no capture yet":        {"!capture.json", Up, true, ""},
		"torn report":           {"report.json", Up, true, "kept as it is"},
		"torn stop request":     {"stop.json", Up, true, "kept as it is"},
		"torn spec, ended":      {"spec.json", Stopped, true, ""},
		"no spec, nobody lives": {"!spec.json", Up, false, ""},
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
			got := m.amiss(d, m.look(d))
			switch {
			case c.says == "" && got != nil, c.says != "" && (got == nil || !strings.Contains(got.Error(), c.says)):
				t.Errorf("%v; want %q", got, c.says)
			case got != nil && (!errors.Is(got, ErrUnverified) || advice(got, "") == ""):
				t.Errorf("%v says neither that it is unverified nor what to do", got)
			}
		})
	}
}
