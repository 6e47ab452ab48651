package tasks

import (
	"encoding/json"
	"time"

	"hob/identity"
	"hob/identity/child"
	"hob/sweep"
)

// State of a task. It is derived from evidence at every look (Derive), not
// trusted from the file.
type State string

// The states.
const (
	Starting   State = "starting"
	Up         State = "up"         // the process exists
	Ready      State = "ready"      // it answers, and the listener is ours
	Unready    State = "unready"    // it was ready, or its deadline has passed, and it does not answer
	Stopping   State = "stopping"   //
	Stopped    State = "stopped"    // by a stop, clean
	Exited     State = "exited"     // ended by itself, code 0 (servers, shells)
	Completed  State = "completed"  // a job that ended with code 0
	Failed     State = "failed"     // ended with another code or a signal, or never started
	Survivors  State = "survivors"  // ended, and something of it lives
	Unverified State = "unverified" // ended, and hob could not tell what of it lives
	Lost       State = "lost"       // the record says it runs; keeper and command are gone, and nobody wrote how
)

// Lifetime of a run.
type Lifetime string

// The lifetimes.
const (
	Contained Lifetime = "contained" // belongs to the hob process that started it
	Detached  Lifetime = "detached"  // meant to outlive hob
)

// Run is run.json: one start of a recipe.
type Run struct {
	Schema    int               `json:"schema"`
	Name      string            `json:"name"`
	ID        string            `json:"id"` // 128 random bits, hex: HOB_RUN_ID, the marker
	Lifetime  Lifetime          `json:"lifetime"`
	Owner     *identity.Ref     `json:"owner"`              // of a contained run
	Starter   *identity.Ref     `json:"starter"`            // the hob that last brought it up; while that lives the run does
	Recipe    string            `json:"recipe"`             // path or gallery name
	Dir       string            `json:"dir"`                // the recipe's folder
	Resolved  json.RawMessage   `json:"resolved"`           // the recipe as resolved, environment values left out
	Digest    string            `json:"digest"`             // of the resolved recipe: "the recipe differs"
	Rehearse  bool              `json:"rehearse"`           // the pilot stands in for every engine
	Set       map[string]string `json:"set,omitempty"`      // variables that were given on the command line
	Profiles  []string          `json:"profiles,omitempty"` // of the recipe, that were laid over it
	Tasks     []string          `json:"tasks"`              // in start order
	Ports     map[string]int    `json:"ports"`              // of each task that has one, from before it is started
	Tmux      TmuxServer        `json:"tmux"`
	CreatedAt time.Time         `json:"created_at"`
	UpdatedAt time.Time         `json:"updated_at"`
	HobBin    string            `json:"hob"` // version that wrote it

	// GPUs are those of each task that was given some, or names its own.
	GPUs map[string]GPUGrant `json:"gpus,omitempty"`
}

// TmuxServer is where a run's panes are.
type TmuxServer struct {
	Socket  string        `json:"socket"`
	Session string        `json:"session"` // "$3"; ids restart with a new server, so only together with Server
	Server  *identity.Ref `json:"server"`
}

// Pane is where a task's keeper runs.
type Pane struct {
	Window string `json:"window"` // "@4"
	Pane   string `json:"pane"`   // "%7"
	TTY    string `json:"tty"`
	PID    int    `json:"pid"` // of the keeper, as tmux named it

	// Server is whose ids these are; null in records of before it was written down:
	// then it is the run's.
	Server *identity.Ref `json:"server"`
}

// Server is server.json: the tmux server that was last used. The runs say so too,
// but one that is archived or removed may have been the last to know of it.
type Server struct {
	Schema    int          `json:"schema"`
	Socket    string       `json:"socket"`
	Server    identity.Ref `json:"server"`
	UpdatedAt time.Time    `json:"updated_at"`
}

// Task is task.json. Only the holder of the task's op.lock writes it.
type Task struct {
	Schema    int        `json:"schema"`
	Run       string     `json:"run"`
	Task      string     `json:"task"`
	Kind      sweep.Kind `json:"kind"`
	Engine    string     `json:"engine,omitempty"`
	State     State      `json:"state"`            // starting, up, stopping, stopped, exited, completed, failed, survivors, unverified: a claim
	Nonce     string     `json:"nonce"`            // the keeper starts nothing unless it equals the spec's
	Reason    string     `json:"reason,omitempty"` // of the stop that is under way or was last
	Pane      *Pane      `json:"pane"`
	Port      *int       `json:"port"`
	URL       string     `json:"url,omitempty"`
	Error     string     `json:"error,omitempty"` // why it failed to start
	StartedAt *time.Time `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
	UpdatedAt time.Time  `json:"updated_at"`

	AfterStop *time.Time `json:"after_stop,omitempty"` // when the hook was begun: it runs once

	// Adopted says where a task comes from that hob did not start.
	Adopted *Adoption `json:"adopted,omitempty"`
}

// Adoption is how a server that a person had started by hand came under hob's
// care. It has no keeper, and its pane and tmux server are only read: they stand
// here, apart from what hob closes and ends.
type Adoption struct {
	Command identity.Ref `json:"command"` // what a person asked for by its pane
	First   identity.Ref `json:"first"`   // the first process of the pane: a shell that stays, or the command itself
	Pane    Pane         `json:"pane"`
	Tmux    TmuxServer   `json:"tmux"`
	At      time.Time    `json:"at"`
}

// Spec is spec.json: what the keeper starts. It may hold secrets (0600); its
// environment appears nowhere else.
type Spec struct {
	Schema   int              `json:"schema"`
	Run      string           `json:"run"`
	Task     string           `json:"task"`
	RunID    string           `json:"run_id"`
	Nonce    string           `json:"nonce"`
	Kind     sweep.Kind       `json:"kind"`
	Engine   string           `json:"engine,omitempty"`
	Args     []string         `json:"args"`
	Dir      string           `json:"dir"`
	Env      []string         `json:"env"` // the whole environment, without the HOB_* that the keeper sets
	Port     int              `json:"port"`
	Ready    *Readiness       `json:"ready"`
	Stop     sweep.StopPolicy `json:"stop"`
	Restart  Restart          `json:"restart"`
	Log      LogPolicy        `json:"log"`
	Lifetime Lifetime         `json:"lifetime"`
	Owner    *identity.Ref    `json:"owner"`
	Limits   child.Limits     `json:"limits,omitempty"` // the caller's umask and resource limits

	Before     *Hook `json:"before,omitempty"`      // must end with 0 before each start of the command
	AfterReady *Hook `json:"after_ready,omitempty"` // once it answers
	AfterStop  *Hook `json:"after_stop,omitempty"`  // once the task is over
}

// Hook is a command that goes with a task's life, and how long it may take.
type Hook struct {
	Args    []string      `json:"args"`
	Timeout time.Duration `json:"timeout"`
}

// Readiness is how the keeper finds out whether the task answers. Exactly one
// of HTTP, TCP, Log, Exec, Completion is set.
type Readiness struct {
	HTTP       string        `json:"http,omitempty"`   // path, or a whole loopback URL
	Status     int           `json:"status,omitempty"` // of the answer to HTTP; 0: any 2xx
	Body       string        `json:"body,omitempty"`   // regular expression that its body must match
	JSON       []JSONField   `json:"json,omitempty"`   // that its body must have
	TCP        bool          `json:"tcp,omitempty"`
	Log        string        `json:"log,omitempty"` // regular expression
	Exec       []string      `json:"exec,omitempty"`
	Completion bool          `json:"completion,omitempty"` // a real one-token completion
	APIKey     string        `json:"api_key,omitempty"`    // a secret: nowhere but in spec.json and on loopback
	Headers    []Header      `json:"headers,omitempty"`    // likewise
	Model      string        `json:"model,omitempty"`      // for Completion
	Listener   string        `json:"listener,omitempty"`   // "" (ours) or "any"
	Timeout    time.Duration `json:"timeout"`
	Interval   time.Duration `json:"interval"`
}

// Header goes with what the keeper asks by HTTP.
type Header struct {
	Name  string `json:"name"`
	Value string `json:"value"` // a secret
}

// JSONField is what must stand at a place of a JSON text.
type JSONField struct {
	Path  string  `json:"path"`
	Value *string `json:"value"` // null: anything but null, false, 0, "" and what is empty
}

// Restart is the recipe's restart policy.
type Restart struct {
	Policy  string        `json:"policy"` // no, on-failure, always
	Max     int           `json:"max"`
	Backoff time.Duration `json:"backoff"`
}

// LogPolicy bounds the task's log.
type LogPolicy struct {
	MaxBytes int64 `json:"max_bytes"` // rotate at this size
	Keep     int   `json:"keep"`      // log.1 … log.N
}

// Keeper is keeper.json. Only the keeper writes it.
type Keeper struct {
	Schema      int           `json:"schema"`
	Nonce       string        `json:"nonce"`
	Protocol    int           `json:"protocol"`
	Version     string        `json:"version"` // of the hob that the keeper is
	Keeper      identity.Ref  `json:"keeper"`
	Command     *identity.Ref `json:"command"` // null until started, and between restarts
	Pane        string        `json:"pane"`    // $TMUX_PANE
	Tmux        *identity.Ref `json:"tmux"`    // whose id that is; null when it is not known
	Ready       bool          `json:"ready"`
	WasReady    bool          `json:"was_ready"`
	ReadyAt     *time.Time    `json:"ready_at"`
	ReadyNote   string        `json:"ready_note,omitempty"` // why it is not ready
	DeadlineHit bool          `json:"deadline_hit"`         // the readiness deadline has passed
	Restarts    int           `json:"restarts"`
	StartedAt   *time.Time    `json:"started_at"`
	Hook        string        `json:"hook,omitempty"`      // the hook that is under way: before, after_ready, after_stop
	HookNote    string        `json:"hook_note,omitempty"` // why the last one failed
	LastLog     *time.Time    `json:"last_log"`
	LastLine    string        `json:"last_line,omitempty"`
	MemoryBytes *int64        `json:"memory_bytes"` // of the tree; null when unknown
	GPUBytes    *int64        `json:"gpu_bytes"`
	GPUAt       *time.Time    `json:"gpu_at"`             // when that was read
	GPUNote     string        `json:"gpu_note,omitempty"` // why it is not known
	MeasuredAt  *time.Time    `json:"measured_at"`
	Empty       bool          `json:"empty"` // wait said ECHILD: the tree in our pid namespace is empty
	Left        bool          `json:"left"`  // it has ended, and all that lived below it was left alone on purpose
	Stamp       uint64        `json:"stamp"` // that it and all below it bear (identity.Process.Stamp); 0: none
	// Cgroup is the one that the command is started in; null where none can be
	// made, and once it is removed.
	Cgroup     *identity.CgroupRef `json:"cgroup"`
	CgroupNote string              `json:"cgroup_note,omitempty"` // why there is none
	UpdatedAt  time.Time           `json:"updated_at"`
}

// Exit is exit.json, written by the keeper by rename.
type Exit struct {
	Schema int       `json:"schema"`
	Nonce  string    `json:"nonce"`
	Code   *int      `json:"code"`            // null when ended by a signal
	Signal string    `json:"signal"`          // "KILL", "" when it exited
	Error  string    `json:"error,omitempty"` // why it could not be started
	At     time.Time `json:"at"`
	// RestartAt is when the keeper starts the command again; null when it does not.
	RestartAt *time.Time `json:"restart_at,omitempty"`
}

// StopRequest is stop.json: left by a `hob down` typed below the task's own keeper.
type StopRequest struct {
	Schema int       `json:"schema"`
	Nonce  string    `json:"nonce"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Event is a line of events.jsonl.
type Event struct {
	At   time.Time `json:"at"`
	Verb string    `json:"verb"` // up, down, keeper, …
	Task string    `json:"task,omitempty"`
	PID  int       `json:"pid"` // of the hob that wrote it
	What string    `json:"what"`
}
