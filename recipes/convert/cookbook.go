package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What a Cookbook keeps: cookbook_state.json, with the tasks that it started in
// tmux sessions of the person's own server, and the commands that it was given.
// There is neither a pid nor a start token in it, so nothing of it is ever proof.

// The errors of ReadCookbook.
var (
	ErrTorn     = errors.New("it is cut, or no JSON")
	ErrNotOne   = errors.New("it is no cookbook_state.json: it has neither tasks nor presets")
	ErrNewState = errors.New("it is of a newer version than hob knows")
)

// State is what such a file says.
type State struct {
	Entries []Entry `json:"entries"`
	Dropped []Note  `json:"dropped"` // what is not taken over, and why
}

// Entry is a task or a preset of it.
type Entry struct {
	What   string    `json:"what"`   // "tasks[0]"
	ID     string    `json:"id"`     // name of its tmux session; "" of a preset
	Name   string    `json:"name"`   //
	Kind   string    `json:"kind"`   // serve, download, preset
	Model  string    `json:"model"`  //
	Was    string    `json:"was"`    // its status, as the file has it
	Host   string    `json:"host"`   // the machine that it ran on; "" is this one
	Port   int       `json:"port"`   // 0: not known
	Since  time.Time `json:"since"`  // zero: not said
	PID    int       `json:"pid"`    // 0, as in all that is known; what another version may have written
	Start  string    `json:"start"`  //
	Args   []string  `json:"-"`      // of its command: they may hold secrets
	Recipe *Made     `json:"recipe"` // nil: none could be made
}

// Made is a recipe that was made of an entry.
type Made struct {
	Name    string `json:"name"`
	Text    string `json:"-"`
	Secrets string `json:"-"`       // text of the env_file beside it; "" without any
	Moved   int    `json:"secrets"` // how many stand there
	Dropped []Note `json:"dropped"`
}

// SecretsFile is the name of that env_file.
const SecretsFile = "secrets.env"

// ReadCookbook reads the file's text. Like all here it reads no file and looks at
// no process.
func ReadCookbook(file string, text []byte) (*State, error) {
	var top map[string]any
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
	dec.UseNumber()
	if err := dec.Decode(&top); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, ErrNotOne
		}
		return nil, fmt.Errorf("%w: %w", ErrTorn, err)
	}
	if dec.More() {
		return nil, fmt.Errorf("%w: more stands behind its end", ErrTorn)
	}
	b := &book{file: file, names: map[string]bool{}, state: &State{Entries: []Entry{}, Dropped: []Note{}}}
	return b.state, b.read(object{"", top, map[string]bool{}})
}

// book is a file that is being read.
type book struct {
	file  string
	state *State
	names map[string]bool
	past  bool // there is some that is not taken over
}

func (b *book) drop(what, why string) {
	b.state.Dropped = append(b.state.Dropped, Note{What: what, Says: why})
}

// knownVersion is the highest number that a file may give itself. None does.
const knownVersion = 1

func (b *book) read(top object) error {
	for _, key := range []string{"version", "schema", "schema_version", "schemaVersion"} {
		if n, err := strconv.Atoi(top.text(key)); err == nil && n > knownVersion {
			return fmt.Errorf("%w (%s %d)", ErrNewState, key, n)
		}
	}
	tasks, hasTasks := top.list("tasks")
	presets, hasPresets := top.list("presets")
	if !hasTasks && !hasPresets {
		return ErrNotOne
	}
	for i, v := range tasks {
		b.entry(fmt.Sprintf("tasks[%d]", i), v, false)
	}
	for i, v := range presets {
		b.entry(fmt.Sprintf("presets[%d]", i), v, true)
	}
	if b.past {
		b.drop("tasks", "what they say of their past (output, progress, flags)")
	}
	b.environment(top)
	for _, key := range top.rest() {
		b.drop(key, reason(key))
	}
	return nil
}

// reasons say of what is dropped why; by the key's own name.
var reasons = map[string]string{
	"serveState": "what the form showed last", "scheduler": "hob starts and stops when it is told: use cron or a timer",
	"_scheduledStopAtMs": "hob stops when it is told: use at, cron or a timer with hob down", "_dep": "what it waited for: say it with depends_on",
	"servers": "other machines: hob runs where it is", "remoteHost": "another machine: hob runs where it is", "hfToken": "it is encrypted there: put HF_TOKEN in the environment of hob up, or in an env_file",
	"_fields": "the form's fields: the command that they made is what is taken over", "fields": "the form's fields: the command that they made is what is taken over",
	"sshPort": "of another machine", "ssh_port": "of another machine",
}

func reason(key string) string {
	if why, ok := reasons[key]; ok {
		return why
	}
	return "hob does not know what it is"
}

// environment names what the file says for all tasks together.
func (b *book) environment(top object) {
	env, ok := top.object("env")
	if !ok {
		return
	}
	for _, key := range env.rest() {
		if v := env.m[key]; v == nil || fmt.Sprint(v) == "" || fmt.Sprint(v) == "[]" || fmt.Sprint(v) == "none" {
			continue
		}
		why := reason(key)
		if key == "env" || key == "envPath" || key == "gpus" || key == "platform" {
			why = "what new tasks were given: each recipe has its own"
		}
		b.drop("env."+key, why)
	}
}

// history is what a task says of its own past.
var history = []string{"output", "progress", "status", "ts", "created", "updated", "label", "endpoint", "autoSaved", "confirmed"}

// entry reads a task or a preset.
func (b *book) entry(what string, v any, preset bool) {
	m, ok := v.(map[string]any)
	if !ok {
		b.drop(what, "it is no task")
		return
	}
	o := object{what, m, map[string]bool{}}
	p, _ := o.object("payload")
	say := func(keys ...string) string { return firstText(keys, o, p) }
	e := Entry{What: what, ID: say("sessionId", "id"), Name: say("name", "label"), Kind: say("type"), Was: say("status"),
		Model: say("modelId", "repoId", "repo_id", "model"), Host: say("remoteHost", "remote_host", "host"), Start: say("start_token", "startToken")}
	if e.Kind == "" {
		e.Kind = "serve"
	}
	if slices.Contains([]string{"local", "localhost", "127.0.0.1"}, e.Host) {
		e.Host = ""
	}
	if preset {
		e.ID, e.Kind = "", "preset"
		if !strings.Contains(e.Host, "@") { // of a preset it may be where it listens
			e.Host = ""
		}
	}
	e.PID, _ = strconv.Atoi(say("pid"))
	if ms, err := strconv.ParseInt(say("ts"), 10, 64); err == nil && ms > 0 {
		e.Since = time.UnixMilli(ms).UTC()
	}
	c := cooked{command: say("_cmd", "cmd", "command"), gpus: say("_gpus", "gpus"), env: say("_env", "env"), path: say("_envPath", "envPath"),
		platform: say("platform"), port: say("port"), entry: &e, book: b}
	c.made()
	left := append(prefixed("", o.rest()), prefixed("payload.", p.rest())...)
	for _, key := range left {
		bare := strings.TrimPrefix(key, "payload.")
		if slices.Contains(history, bare) || strings.HasPrefix(bare, "_") && reasons[bare] == "" {
			b.past = true
			continue
		}
		b.drop(what+"."+key, reason(bare))
	}
	b.state.Entries = append(b.state.Entries, e)
}

func prefixed(prefix string, keys []string) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = prefix + k
	}
	return out
}

// object is a mapping of the file, and which of its keys were asked for.
type object struct {
	path string
	m    map[string]any
	used map[string]bool
}

func (o object) text(key string) string {
	if o.used != nil {
		o.used[key] = true
	}
	switch v := o.m[key].(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// firstText is the first of the keys that says something, in either mapping. All
// of them are taken for read.
func firstText(keys []string, of ...object) string {
	found := ""
	for _, key := range keys {
		for _, o := range of {
			if v := o.text(key); found == "" {
				found = v
			}
		}
	}
	return found
}

func (o object) list(key string) ([]any, bool) {
	v, ok := o.m[key].([]any)
	if ok {
		o.used[key] = true
	}
	return v, ok
}

func (o object) object(key string) (object, bool) {
	v, ok := o.m[key].(map[string]any)
	if ok {
		o.used[key] = true
	}
	return object{key, v, map[string]bool{}}, ok
}

// rest are the keys that nobody asked for and that say something.
func (o object) rest() []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(o.m)) {
		if !o.used[key] && o.m[key] != nil {
			keys = append(keys, key)
		}
	}
	return keys
}
