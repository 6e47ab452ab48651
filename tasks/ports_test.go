package tasks

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"hob/identity"
	"hob/recipes"
	"hob/sweep/gpu"
)

func TestTasksAreToldThePortsOfOthers(t *testing.T) {
	asker := &upTask{Task: recipes.Task{
		Name: "asker", Command: []string{"ask", "${chat.port}", "${before.port}"},
		Env:   []recipes.EnvVar{{Name: "CHAT", Value: "127.0.0.1:${chat.port}"}},
		Ready: &recipes.Ready{Exec: []string{"ask", "${chat.port}"}},
	}}
	u := &upRun{
		Manager: &Manager{}, run: Run{Ports: map[string]int{"before": 7, "chat": 8}},
		tasks: []*upTask{{Task: recipes.Task{Name: "chat"}, port: 9}, asker},
		dir:   (&Store{}).Run("run"),
	}
	spec, err := u.spec(asker, "nonce")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"ask", "9", "7"}; !slices.Equal(spec.Args, want) {
		t.Errorf("args %q, want %q", spec.Args, want)
	}
	if want := []string{"CHAT=127.0.0.1:9"}; !slices.Equal(spec.Env, want) {
		t.Errorf("environment %q, want %q", spec.Env, want)
	}
	if want := []string{"ask", "9"}; !slices.Equal(spec.Ready.Exec, want) {
		t.Errorf("probe %q, want %q", spec.Ready.Exec, want)
	}
}

func TestUpOfSomeTasksKeepsThePortsOfTheOthers(t *testing.T) {
	host, err := identity.Local()
	if err != nil {
		t.Fatal(err)
	}
	u := &upRun{
		Manager: &Manager{Host: host}, run: Run{ID: "id", Ports: map[string]int{"chat": 8, "rerank": 9, "removed": 10, "fixed": 11}},
		recipe: &recipes.Recipe{Tasks: []recipes.Task{{Name: "chat"}, {Name: "rerank"}, {Name: "fixed"}}},
		tasks:  []*upTask{{Task: recipes.Task{Name: "chat"}, port: 18}, {Task: recipes.Task{Name: "fixed"}}},
	}
	if err := u.fillRun(); err != nil {
		t.Fatal(err)
	}
	if len(u.run.Ports) != 2 || u.run.Ports["chat"] != 18 || u.run.Ports["rerank"] != 9 {
		t.Errorf("ports %v", u.run.Ports)
	}
}

// blindStore has a run whose run.json is torn, and one of whose two tasks, which
// have ports and GPUs, one has a torn task.json.
func blindStore(t *testing.T) *Manager {
	t.Helper()
	host, err := identity.Local()
	if err != nil {
		t.Fatal(err)
	}
	m := &Manager{Store: newStore(t), Host: host}
	torn, half := m.Store.Run("torn"), m.Store.Run("half")
	self, err := m.self()
	if err != nil {
		t.Fatal(err)
	}
	grants := map[string]GPUGrant{"bad": {GPUs: "1"}}
	err = errors.Join(torn.Create(), half.Create(), half.Task("bad").Create(), half.Task("new").Create(),
		half.Write(Run{Name: "half", Starter: self, Tasks: []string{"bad", "new"}, Ports: map[string]int{"bad": 8001, "new": 8002}, GPUs: grants}),
		os.WriteFile(torn.file("run.json"), []byte(`{"schema":1,"na`), 0o600),
		os.WriteFile(half.Task("bad").file("task.json"), []byte(`{"schema":1,"run":"half","ta`), 0o600),
		os.WriteFile(half.Task("bad").file("capture.json"), []byte(`{`), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestWhatCannotBeReadIsNotNobodys: who has a port or a GPU is not known where a
// record is torn, and the notes say whose.
func TestWhatCannotBeReadIsNotNobodys(t *testing.T) {
	m := blindStore(t)
	u := &upRun{Manager: m, dir: m.Store.Run("chat")}
	c := u.claims()
	if len(c.ports) != 1 || c.ports[8002] != (Name{"half", "new"}) {
		t.Errorf("claimed: %v", c.ports)
	}
	if len(c.blind) != 1 || !strings.Contains(c.blind[0], `run "torn"`) || !strings.Contains(c.blind[0], "is torn") {
		t.Errorf("notes %q", c.blind)
	}
	if why := c.doubt[8001]; !strings.Contains(why, "half/bad, which is unverified") || !strings.Contains(why, "task.json is torn") {
		t.Errorf("in doubt: %q", why)
	}
	g := ground{folder: folderExists, doubt: c.doubt, claimed: c.ports}
	notes, err := preflight("chat", []want{{task: recipes.Task{Name: "llm", Dir: "/"}, port: 8001}}, g)
	if err != nil || !slices.Equal(notes, []string{c.doubt[8001]}) {
		t.Errorf("preflight: %q, %v", notes, err)
	}
	rooms := []*gpuRoom{{Card: gpu.Card{Index: 0}}, {Card: gpu.Card{Index: 1}}}
	u.claimGPUs(rooms)
	if len(u.notes) != 1 || !strings.Contains(u.notes[0], "GPU 1 may be in use by half/bad, which is unverified") {
		t.Errorf("notes on GPUs: %q", u.notes)
	}
	size := int64(1)
	if hs := m.holdsOf([]int{os.Getpid()}, map[int]*int64{os.Getpid(): &size}).String(); !strings.Contains(hs, "perhaps some of them of half/bad, whose records cannot be read") {
		t.Errorf("holders: %s", hs)
	}
}

// TestAutoPortsAreNotThoseOfTasksThatLoad: a task that was given a port and does
// not listen yet keeps it.
func TestAutoPortsAreNotThoseOfTasksThatLoad(t *testing.T) {
	c := claims{ports: map[int]Name{}}
	for port := 1; port < 1<<16; port++ { // all but one of seven
		if port%7 != 0 {
			c.ports[port] = Name{"other", "llm"}
		}
	}
	u := &upRun{tasks: []*upTask{{Task: recipes.Task{Name: "chat", Port: recipes.Port{Auto: true}}, act: start}}}
	if err := u.autoPorts(c); err != nil {
		t.Fatal(err)
	}
	if got := u.tasks[0].port; c.taken(got) || got == 0 {
		t.Errorf("port %d was given twice", got)
	}
}

// The key that readiness asks with: what the recipe says for it, else the engine's
// own flag, which goes before its variable.
func TestAPIKey(t *testing.T) {
	vllm := func(said string) *recipes.Ready {
		return &recipes.Ready{Completion: true, APIKey: said, KeyEnv: []string{"VLLM_API_KEY"}, KeyFlags: []string{"--api-key"}}
	}
	env := []string{"VLLM_API_KEY=of-env, second"}
	for name, c := range map[string]struct {
		ready     *recipes.Ready
		argv      []string
		env       []string
		key, from string
	}{
		"none":             {vllm(""), []string{"vllm"}, nil, "", ""},
		"said":             {vllm("said"), []string{"vllm", "--api-key", "flag"}, env, "said", "ready.api_key"},
		"flag":             {vllm(""), []string{"vllm", "--api-key", "flag"}, env, "flag", "--api-key"},
		"joined":           {vllm(""), []string{"vllm", "--api-key=flag"}, env, "flag", "--api-key"},
		"nothing after it": {vllm(""), []string{"vllm", "--api-key"}, env, "of-env", "VLLM_API_KEY"},
		"variable":         {vllm(""), []string{"vllm"}, env, "of-env", "VLLM_API_KEY"},
		"an empty one":     {vllm(""), nil, []string{"VLLM_API_KEY="}, "", ""},
		"not asked for":    {&recipes.Ready{TCP: true, KeyEnv: []string{"VLLM_API_KEY"}}, nil, env, "", ""},
		"up is ready":      {nil, nil, env, "", ""},
		"another way":      {&recipes.Ready{HTTP: "/", Names: []string{"Authorization"}, KeyEnv: []string{"VLLM_API_KEY"}}, nil, env, "", ""},
		"beside another":   {&recipes.Ready{HTTP: "/", Names: []string{"X-Token"}, KeyEnv: []string{"VLLM_API_KEY"}}, nil, env, "of-env", "VLLM_API_KEY"},
	} {
		if key, from := apiKey(c.ready, c.argv, c.env); key != c.key || from != c.from {
			t.Errorf("%s: %q of %q", name, key, from)
		}
	}
}
