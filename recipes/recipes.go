// Package recipes is hob's language: it loads, interpolates and validates a
// recipe and says, with file, line and column, what is wrong with it: all of it.
//
// A file is parsed into a tree that keeps every value's place (source, tree), put
// together with what it includes and extends (compose), checked against tables
// while its variables are filled in (rules, table, walk, interpolate), and read
// into tasks (draft, task, env, order). The same tables make the JSON Schema, the
// hints and the key reference. Engines are files of data in the same language.
// Of the rest, find, list and write are for recipes that have a name, select is for
// tasks that are named, bind fills in what is only known at a start, rehearse puts
// the pilot in, and diagnose explains log lines.
//
// language.md is the language for those who write recipes (`hob help language`).
package recipes

import "time"

// Recipe is a recipe as resolved: engines filled in, variables interpolated, all
// but what is bound at the start of each task (${port} where it is auto).
type Recipe struct {
	Name   string   `json:"name"`
	File   string   `json:"file"` // "gallery:NAME" for one that has none
	Dir    string   `json:"dir"`
	Tasks  []Task   `json:"tasks"` // in start order: dependencies first, then as written
	Layout []Window `json:"layout"`
	Notes  []string `json:"notes,omitempty"` // what a person should know and is no error
}

// Task is one server, job or shell.
type Task struct {
	Name      string       `json:"name"`
	Kind      string       `json:"kind"` // server, job, shell
	Groups    []string     `json:"groups,omitempty"`
	Replica   int          `json:"replica,omitempty"` // which of several, from 1
	Engine    string       `json:"engine,omitempty"`
	Model     string       `json:"model,omitempty"`
	ModelAt   string       `json:"model_at,omitempty"` // "path": a file or folder; "huggingface": that hub's cache; "": the engine knows
	Command   []string     `json:"command"`            // argv; "${port}" still stands where the port is auto
	Dir       string       `json:"dir"`
	Env       []EnvVar     `json:"-"` // engine, env_file, env in this order; values are never printed
	EnvNames  []string     `json:"env"`
	Host      string       `json:"host,omitempty"` // where an engine listens
	Port      Port         `json:"port"`
	GPUs      string       `json:"gpus,omitempty"` // "0,1", "all", "none", "auto", "" (not said)
	GPUAuto   *GPUAuto     `json:"gpu_auto,omitempty"`
	Ready     *Ready       `json:"ready"`
	Stop      Stop         `json:"stop"`
	Restart   Restart      `json:"restart"`
	DependsOn []Dependency `json:"depends_on"`
	Needs     Needs        `json:"needs"`
	Expects   []Expect     `json:"expects,omitempty"`
	// Hooks are commands that go with the task's life.
	Before     *Hook `json:"before,omitempty"`      // must end with 0 before each start
	AfterReady *Hook `json:"after_ready,omitempty"` // once it answers
	AfterStop  *Hook `json:"after_stop,omitempty"`  // once it is over

	Line   int `json:"-"`
	Column int `json:"-"`
}

// Hook is a command that goes with a task's life, and how long it may take.
type Hook struct {
	Command []string      `json:"command"`
	Timeout time.Duration `json:"timeout"`
}

// EnvVar is one variable of a task's environment; Value may be a secret and may
// hold "${port}" where the port is auto.
type EnvVar struct{ Name, Value string }

// Port of a task: none (zero), a number, or auto.
type Port struct {
	Number int  `json:"number,omitempty"`
	Auto   bool `json:"auto,omitempty"`
}

// GPUAuto is what a task wants of GPUs that are chosen when it starts.
type GPUAuto struct {
	Count  int   `json:"count"`
	Memory int64 `json:"memory,omitempty"` // free bytes on each
}

// Ready is how the task shows that it answers; exactly one kind is set.
type Ready struct {
	HTTP       string        `json:"http,omitempty"`
	Status     int           `json:"status,omitempty"` // of the answer to HTTP; 0: any 2xx
	Body       string        `json:"body,omitempty"`   // regular expression that its body matches
	JSON       []JSONField   `json:"json,omitempty"`   // that its body has
	TCP        bool          `json:"tcp,omitempty"`
	Log        string        `json:"log,omitempty"`
	Exec       []string      `json:"exec,omitempty"`
	Completion bool          `json:"completion,omitempty"`
	APIKey     string        `json:"-"`                   // never printed
	Headers    []Header      `json:"-"`                   // that HTTP and Completion send; never printed
	Names      []string      `json:"headers,omitempty"`   // of Headers
	KeyEnv     []string      `json:"key_env,omitempty"`   // variables that the engine takes its key from
	KeyFlags   []string      `json:"key_flags,omitempty"` // flags that it takes it from
	Listener   string        `json:"listener,omitempty"`  // "", any
	Timeout    time.Duration `json:"timeout"`
	Interval   time.Duration `json:"interval"`
}

// Header is one header of a request; Value may be a secret, and may hold "${port}"
// where the port is auto.
type Header struct{ Name, Value string }

// JSONField is what must stand at a place of a JSON text.
type JSONField struct {
	Path  string  `json:"path"`
	Value *string `json:"value,omitempty"` // nil: anything but null, false, 0, "" and what is empty
}

// Stop is how the task is ended.
type Stop struct {
	Signal    string        `json:"signal"` // "TERM"
	Grace     time.Duration `json:"grace"`
	TermGrace time.Duration `json:"term_grace"`
	Detached  string        `json:"detached"` // kill, report
	Spare     []string      `json:"spare,omitempty"`
}

// Restart is what the keeper does when the command ends by itself.
type Restart struct {
	Policy  string        `json:"policy"` // no, on-failure, always
	Max     int           `json:"max"`
	Backoff time.Duration `json:"backoff"`
}

// Dependency on another task of the recipe.
type Dependency struct {
	Task      string `json:"task"`
	Condition string `json:"condition"` // started, ready, completed
}

// Needs is what the host must have before the task is started. Zero: not asked for.
type Needs struct {
	Commands  []string `json:"commands,omitempty"`
	Memory    int64    `json:"memory,omitempty"`     // bytes
	GPUMemory int64    `json:"gpu_memory,omitempty"` // bytes
	Disk      int64    `json:"disk,omitempty"`       // bytes
}

// Window of the layout.
type Window struct {
	Name  string   `json:"window"`
	Split string   `json:"split,omitempty"` // a tmux layout name
	Focus string   `json:"focus,omitempty"` // the pane that has the cursor; "" for the first
	Panes []string `json:"panes"`
}

// Options of Load.
type Options struct {
	Getenv    func(string) string // for ${VAR}; nil: os.Getenv
	EngineDir string              // a person's own engines, which take precedence; "" for none
	Set       map[string]string   // values of vars, which win over the file's
	Profiles  []string            // of the recipe, laid over it in this order
	Rehearse  bool                // every engine is replaced by the pilot in that engine's shape
	Dir       string              // where a gallery recipe runs; "" is the current folder
	Self      string              // path of the hob program, for the built-in engine
}
