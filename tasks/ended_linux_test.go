package tasks

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hob/identity"
	"hob/sweep"
)

// crashed is a run whose task ran when the host went down, with all the records that
// it had then; boot is the one that it was brought up in.
func crashed(t *testing.T, boot func(*identity.Ref), state State) (*Manager, *RunDir, *TaskDir) {
	t.Helper()
	r, d := newTask(t)
	m := &Manager{Store: r.store, Host: localHost(t)}
	self, err := m.self()
	if err != nil {
		t.Fatal(err)
	}
	ref := *self
	ref.PID, ref.PIDFS, ref.Start = 1<<21, nil, "linux:1"
	boot(&ref)
	task := Task{Run: "chat", Task: "llm", Kind: sweep.Server, Nonce: "n", State: state}
	err = errors.Join(
		r.Write(Run{Name: "chat", ID: "feedface", Tasks: []string{"llm"}, Starter: &ref, Tmux: TmuxServer{Socket: filepath.Join(r.store.Home, "s")}}),
		d.writeStart(Spec{Run: "chat", Task: "llm", Nonce: "n"}, task),
		d.WriteKeeper(Keeper{Nonce: "n", Keeper: ref, Command: &ref}),
		d.WriteCapture(sweep.Capture{Run: "chat", Task: "llm", Phase: PhaseRolling, Members: []sweep.Member{{Ref: ref}}}, false),
	)
	if err != nil {
		t.Fatal(err)
	}
	return m, r, d
}

// TestTornByTheEndOfTheBoot: what was not made to last may be torn when the host goes
// down. In the next boot that is explained: the task is lost, a stop settles it, and
// the file is kept under a name of its own. In the boot that it is of nothing explains
// it, and nothing is done over it.
func TestTornByTheEndOfTheBoot(t *testing.T) {
	last := func(r *identity.Ref) { r.Boot = "5ca1ab1e-0000-4000-8000-000000000001" }
	this := func(*identity.Ref) {}
	other := func(r *identity.Ref) { last(r); r.Host = "elsewhere" }
	for _, file := range []string{"task.json", "keeper.json", "capture.json", "exit.json"} {
		for kind, text := range map[string]string{"empty": "", "zeros": strings.Repeat("\x00", 300), "cut": `{"schema":1,"run":"ch`} {
			for _, state := range []State{Starting, Up, Stopping} {
				name := file + " " + kind + " " + string(state)
				m, r, d := crashed(t, last, state)
				tear(t, d, file, text)
				if file != "capture.json" { // which is looked at when there is something to be done
					if got := Derive(m.look(d)); got.State != Lost || !strings.Contains(got.Note, file+" is torn") {
						t.Errorf("%s: %+v", name, got)
					}
				}
				out := m.stopTask(t.Context(), r, d, StopOptions{Reason: "down"})
				if err := out.unsettled(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if kept, err := os.ReadFile(d.file(file + ".torn")); err != nil || string(kept) != text {
					t.Errorf("%s is not kept: %q, %v", name, kept, err)
				}
				if events, _, _ := r.Events(); len(events) == 0 || !strings.Contains(events[0].What, file+" was torn as the host went down") {
					t.Errorf("%s: nobody says so: %v", name, events)
				}
			}
			for where, boot := range map[string]func(*identity.Ref){"this boot": this, "another host": other} {
				m, r, d := crashed(t, boot, Up)
				tear(t, d, file, text)
				out := m.stopTask(t.Context(), r, d, StopOptions{Reason: "down"})
				var torn *RecordError
				if now, err := os.ReadFile(d.file(file)); !errors.As(out.Err, &torn) && !errors.Is(out.Err, ErrUnverified) || err != nil || string(now) != text {
					t.Errorf("%s, %s, %s: %+v; %q, %v", file, kind, where, out, now, err)
				}
			}
		}
	}
}

func tear(t *testing.T, d *TaskDir, file, text string) {
	t.Helper()
	if err := os.WriteFile(d.file(file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A task that had been stopped for good is not lost with a record that was torn later.
func TestTornBesideAnEnd(t *testing.T) {
	m, r, d := crashed(t, func(r *identity.Ref) { r.Boot = "5ca1ab1e-0000-4000-8000-000000000001" }, Stopped)
	tear(t, d, "keeper.json", "")
	if got := Derive(m.look(d)); got.State != Stopped {
		t.Errorf("%+v", got)
	}
	if out := m.stopTask(t.Context(), r, d, StopOptions{Reason: "down"}); out.Err != nil || out.State != Stopped {
		t.Errorf("%+v %v", out, out.Err)
	}
}

// A run that is gone on with is given a starter of this boot: what the last boot has
// torn of its other tasks is set aside before that, and a second one beside the first.
func TestAsideBeforeTheNextStarter(t *testing.T) {
	m, r, d := crashed(t, func(r *identity.Ref) { r.Boot = "5ca1ab1e-0000-4000-8000-000000000001" }, Up)
	for range 2 {
		tear(t, d, "keeper.json", "")
		if err := m.setAllAside(r, []string{"llm", "never"}); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := filepath.Glob(d.file("keeper.json*")); len(all) != 2 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
}

// That the boot is over is what the records say, and who can write them can have them say
// so: while a keeper runs that was told to start the task, hob takes it for neither lost
// nor stopped, and sets nothing aside.
func TestBootThatGoesOn(t *testing.T) {
	last := func(r *identity.Ref) { r.Boot = "5ca1ab1e-0000-4000-8000-000000000001" }
	for name, c := range map[string]struct {
		torn  string
		other bool // it is another task's keeper that lives
		want  State
	}{
		"all records":            {"", false, Unverified},
		"one is torn":            {"keeper.json", false, Unverified},
		"another one is":         {"capture.json", false, Unverified},
		"another task's keeper":  {"", true, Lost},
		"and a record is torn":   {"keeper.json", true, Lost},
		"what is looked at late": {"capture.json", true, Lost},
	} {
		for _, state := range []State{Starting, Up, Stopping} {
			t.Run(name+", "+string(state), func(t *testing.T) {
				m, r, d := crashed(t, last, state)
				path := d.SpecPath()
				if c.other {
					path = r.Task("other").SpecPath()
				}
				another(t, m.Host, "hob", "keeper", path)
				if c.torn != "" {
					tear(t, d, c.torn, "")
				}
				if got := Derive(m.look(d)); got.State != c.want {
					t.Errorf("%+v; want %s", got, c.want)
				}
				out := m.stopTask(t.Context(), r, d, StopOptions{Reason: "down"})
				if lives := c.want == Unverified; lives != errors.Is(out.Err, ErrUnverified) {
					t.Errorf("a stop: %+v, %v", out, out.Err)
				}
				_, err := os.Stat(d.file("keeper.json"))
				if aside, _ := filepath.Glob(d.file("*.torn*")); c.want == Unverified && (err != nil || len(aside) > 0) {
					t.Errorf("set aside: %v; %v", aside, err)
				}
			})
		}
	}
}
