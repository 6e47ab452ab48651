package convert_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hob/recipes"
	"hob/recipes/convert"
)

// kitchen is a session with everything that one meets in one.
func kitchen() convert.Session {
	return convert.Session{
		Name: "Kitchen work", Host: "stove", Shell: "/bin/bash",
		Notes: []string{"could not look at the sockets of 3 processes"},
		Windows: []convert.LiveWindow{
			{Name: "models", Layout: "4a53,200x50,0,0{100x50,0,0,0,99x50,101,0[99x25,101,0,1,99x24,101,26,2]}", Panes: []convert.LivePane{
				{ID: "%0", Title: "stove", Dir: "/srv", Args: []string{"/opt/v/bin/python3", "/opt/v/bin/vllm", "serve", "Qwen/Qwen3-8B", "--port", "8001"}, Ports: []int{41000, 8001}},
				{ID: "%1", Title: "a-:-b\x1b[31m\nc", Dir: "/srv", Args: []string{"tail", "-f", "a b;", "${x}"}, Focus: true, Others: [][]string{{"tee", "log", "--api-key", "sk-0123456789abcdef"}}},
				{ID: "%2", Title: "notes", Dir: "/srv/n", Args: []string{"-bash"}, Prompt: true, Background: [][]string{{"sleep", "9"}}},
			}},
			{Name: "odd #x", Front: true, Layout: "b25f,80x24,0,0,3", Panes: []convert.LivePane{{ID: "%3", Title: "stove", Dir: "/", Args: []string{"/usr/bin/zsh", "-l"}, Prompt: true}}},
			{Name: "gone", Panes: []convert.LivePane{{ID: "%4", Dead: true}}},
			{Name: "web", Layout: "b25f,80x24,0,0,3", Panes: []convert.LivePane{{ID: "%5", Title: "x", Dir: "/w", Args: []string{"python3", "-m", "http.server", "9000"}, Ports: []int{9000}}}},
			{Name: "hidden", Panes: []convert.LivePane{{ID: "%6", Trouble: "permission denied"}}},
			{Name: "title", Panes: []convert.LivePane{{ID: "%7", Args: []string{"nginx: master process"}}}},
			{Name: "own", Panes: []convert.LivePane{{ID: "%8", Task: "embed", Dir: "/e", Args: []string{"text-embeddings-router", "--model-id", "m"}}}},
		},
	}
}

const frozen = `# Frozen from the tmux session "Kitchen work" by hob freeze.
# Environments are not copied, for they hold secrets: the programs get that of hob up, and env or env_file.
# Arguments are, but for what looks like a secret: see that none of them is one.
# Not taken over:
# - session: its name "Kitchen work", which hob cannot have; it is kitchen-work now
# - session: could not look at the sockets of 3 processes
# - pane %0: ports beside 8001: [41000]
# - pane %1: what its command was piped to: tee log --api-key …
# - pane %2: what its shell ran in the background: sleep 9
# - window odd #x: its name: tmux would take it apart; it is "odd _x" now
# - window odd #x: that it is the one in front: hob attach RUN lands in the first; hob attach TASK goes to any
# - pane %4: its program has ended
# - pane %6: what runs in it: could not look: permission denied
# - pane %7: its folder: could not look
# - pane %7: its command: the program has written something else over it
name: kitchen-work
servers:
  models-vllm:
    engine: vllm
    command: [/opt/v/bin/python3, /opt/v/bin/vllm, serve, Qwen/Qwen3-8B, --port, "8001"]
    port: 8001
    dir: /srv
  x:
    command: [python3, -m, http.server, "9000"]
    port: 9000
    dir: /w
  embed:
    engine: tei
    command: [text-embeddings-router, --model-id, m]
    dir: /e
shells:
  # Its title was: a-:-b?[31m c
  models-tail:
    command: [tail, -f, a b;, '$${x}']
    dir: /srv
  notes:
    dir: /srv/n
  odd-x:
    command: [/usr/bin/zsh, -l]
    dir: /
  # What ran here could not be looked at: permission denied
  hidden: {}
  # The program had given itself this title: write its command here.
  title:
    command: ['nginx: master process']
layout:
  - {window: models, split: main-vertical, panes: [models-vllm, models-tail, notes], focus: models-tail}
  - {window: odd _x, panes: [odd-x]}
  - {window: web, panes: [x]}
  - {window: hidden, panes: [hidden]}
  - {window: title, panes: [title]}
  - {window: own, panes: [embed]}
`

func TestFreeze(t *testing.T) {
	res, err := convert.Freeze(kitchen())
	if err != nil {
		t.Fatal(err)
	}
	if res.Recipe != frozen {
		t.Errorf("frozen:\n%s\nwant:\n%s", res.Recipe, frozen)
	}
	if _, err := recipes.LoadText("hob.yaml", []byte(res.Recipe), recipes.Options{}); err != nil {
		t.Error(err)
	}
}

// Whatever is in a session, what comes out is a right recipe, with a task of the
// same command for each pane that lives and could be looked at.
func TestAnySessionFreezes(t *testing.T) {
	word := rapid.SampledFrom(texts)
	rapid.Check(t, func(t *rapid.T) {
		s := convert.Session{Name: word.Draw(t, "session"), Host: "h", Shell: "/bin/sh"}
		for range rapid.IntRange(1, 4).Draw(t, "windows") {
			w := convert.LiveWindow{Name: word.Draw(t, "window"), Layout: word.Draw(t, "layout")}
			for range rapid.IntRange(1, 3).Draw(t, "panes") {
				p := convert.LivePane{ID: "%1", Title: word.Draw(t, "title"), Dir: "/" + word.Draw(t, "dir"), Args: append([]string{"x"}, rapid.SliceOfN(word, 0, 3).Draw(t, "args")...)}
				p.Dead, p.Prompt = rapid.Bool().Draw(t, "dead"), rapid.Bool().Draw(t, "prompt")
				p.Ports = rapid.SliceOfN(rapid.IntRange(1, 5), 0, 2).Draw(t, "ports")
				w.Panes = append(w.Panes, p)
			}
			s.Windows = append(s.Windows, w)
		}
		res, err := convert.Freeze(s)
		if err != nil {
			t.Fatal(err)
		}
		want := commands(s)
		if len(want) == 0 {
			return
		}
		r, err := recipes.LoadText("hob.yaml", []byte(res.Recipe), recipes.Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, res.Recipe)
		}
		var got []string
		for _, w := range r.Layout {
			for _, name := range w.Panes {
				i := slices.IndexFunc(r.Tasks, func(task recipes.Task) bool { return task.Name == name })
				argv, _ := r.Tasks[i].BindLate(recipes.Late{})
				got = append(got, strings.Join(argv, "\x00"))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("the commands are %q, want %q\n%s", got, want, res.Recipe)
		}
	})
}

func commands(s convert.Session) []string {
	var all []string
	for _, w := range s.Windows {
		for _, p := range w.Panes {
			if !p.Dead {
				all = append(all, strings.Join(p.Args, "\x00"))
			}
		}
	}
	return all
}

// What looks like a secret in a command stands nowhere in the recipe, which asks for
// it and is right once it is there.
func TestFreezeMovesSecrets(t *testing.T) {
	const token = "sk-0123456789abcdef"
	pane := func(id, title string, args ...string) convert.LivePane {
		return convert.LivePane{ID: id, Title: title, Dir: "/", Args: args, Ports: []int{8000}}
	}
	s := convert.Session{Name: "s", Host: "h", Shell: "/bin/sh", Windows: []convert.LiveWindow{{Name: "w", Panes: []convert.LivePane{
		pane("%0", "vllm serve m --api-key "+token, "vllm", "serve", "m", "--api-key", token, "it's"),
		pane("%1", "h", "llama-server", "--api-key=hunter2", "--hf-token", "hunter2"),
		pane("%2", "h", "sh", "-c", "exec vllm serve m --api-key hunter2"),
		pane("%3", "h", "worker: key "+token),
		pane("%4", "h", "srv", "--token=hunter2", "HF_TOKEN=hunter2", "--password", "hunter2", token), // a variable is named after no value
	}}}}
	res, err := convert.Freeze(s)
	if err != nil {
		t.Fatal(err)
	}
	all := res.Recipe
	for _, n := range append(slices.Clone(res.Kept), res.Dropped...) {
		all += n.String()
	}
	if low := strings.ToLower(all); strings.Contains(low, token) || strings.Contains(low, "hunter2") {
		t.Errorf("it shows a secret:\n%s", all)
	}
	for _, want := range []string{
		`exec vllm serve m --api-key "$FROZEN_API_KEY" it\'s`, `command: exec llama-server --api-key="$FROZEN_API_KEY" --hf-token "$FROZEN_HF_TOKEN"`,
		`exec srv --token="$FROZEN_TOKEN" "$FROZEN_SECRET" --password "$FROZEN_PASSWORD" "$FROZEN_SECRET_2"`,
		"pane %1: what looks like a secret in its arguments: set FROZEN_HF_TOKEN", "pane %2: its command: what looks like a secret", "pane %3: its command: what looks like a secret",
	} {
		if !strings.Contains(res.Recipe, want) {
			t.Errorf("nowhere in it: %s", want)
		}
	}
	if _, err := recipes.LoadText("hob.yaml", []byte(res.Recipe), recipes.Options{Getenv: func(string) string { return "" }}); err == nil || !strings.Contains(err.Error(), "was not copied") {
		t.Errorf("without the secrets: %v", err)
	}
	got, err := recipes.LoadText("hob.yaml", []byte(res.Recipe), recipes.Options{Getenv: func(name string) string { return "as " + name }})
	if err != nil {
		t.Fatal(err, res.Recipe)
	}
	if len(got.Tasks) != 5 {
		t.Errorf("%d tasks", len(got.Tasks))
	}
}
