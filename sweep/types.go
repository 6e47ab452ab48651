package sweep

import (
	"syscall"
	"time"

	"hob/identity"
)

// Evidence is why a process is believed to be ours, or to look like ours.
type Evidence string

// The evidence and its grade. A to C permit a signal; D and E never do, however many.
const (
	Captured Evidence = "captured" // A: recorded before the kill by parent chain from a verified root
	Adopted  Evidence = "adopted"  // B: below our verified, living keeper
	Cgroup   Evidence = "cgroup"   // B: member of a cgroup that the run made, holding nothing else
	Child    Evidence = "child"    // C: found later below a verified owned process
	Session  Evidence = "sid"      // C with a living, captured anchor in that kernel session; else D
	Marker   Evidence = "marker"   // D
	Command  Evidence = "command"  // D
	Port     Evidence = "port"     // D
	GPU      Evidence = "gpu"      // D
	Stamp    Evidence = "stamp"    // D: it descends from the keeper, nobody can say through whose hands
	Taken    Evidence = "taken"    // a person named it by its exact id: a listed look-alike, or the pane that it was adopted from
)

// Fate is what became of a captured process.
type Fate string

// The fates.
const (
	Exited       Fate = "exited"       // ended without a signal of ours
	Terminated   Fate = "terminated"   // ended after our stop signal or TERM
	Killed       Fate = "killed"       // ended after our KILL
	Survived     Fate = "survived"     // lives, and is ours
	ForeignFate  Fate = "foreign"      // the number is another process's now: ours has ended
	Unverifiable Fate = "unverifiable" // could not tell
	Spared       Fate = "spared"       // left alone on purpose (boundary, stop.spare, detached)
)

// Kind of a task.
type Kind string

// The kinds.
const (
	Server Kind = "server"
	Job    Kind = "job"
	Shell  Kind = "shell"
)

// Capture is the whole process tree of a task as last seen: capture.json. It is
// on disk before the first signal and only grows during a stop.
type Capture struct {
	Schema  int       `json:"schema"`
	Run     string    `json:"run"`
	Task    string    `json:"task"`
	TakenAt time.Time `json:"taken_at"`
	Phase   string    `json:"phase"` // "rolling" while up, "stop" once a stop has begun
	Members []Member  `json:"members"`
	Notes   []string  `json:"notes,omitempty"` // what could not be seen
	// Cgroup is the one that the keeper made and started the command in; null
	// where it could make none.
	Cgroup *identity.CgroupRef `json:"cgroup,omitempty"`
	// Guests were seen in the cgroup and are not the task's to end, or not started
	// by it at all: since then being in it proves nothing.
	Guests []identity.Ref `json:"guests,omitempty"`
	// FrozenAt is when a stop began to freeze the cgroup; null once that has thawed it.
	FrozenAt *time.Time `json:"frozen_at,omitempty"`
}

// Member is one captured process.
type Member struct {
	Ref      identity.Ref `json:"ref"`
	Parent   int          `json:"parent"`
	SID      int          `json:"sid"`
	PGID     int          `json:"pgid"`
	Args     []string     `json:"args"`
	Evidence []Evidence   `json:"evidence"`
	SeenAt   time.Time    `json:"seen_at"`
	Signals  []Sent       `json:"signals,omitempty"`
	Fate     Fate         `json:"fate,omitempty"`
	EndedAt  *time.Time   `json:"ended_at,omitempty"`
	Detached bool         `json:"detached,omitempty"` // at first capture adopted by the keeper, in another session than the command's, or below such a one
	Boundary string       `json:"boundary,omitempty"` // a tmux server, another hob's keeper, or below one: never signalled
	Spare    string       `json:"spare,omitempty"`    // stop.spare names it, or something above it: left alone
	Note     string       `json:"note,omitempty"`
}

// Sent is a signal that was sent, and when.
type Sent struct {
	Signal string    `json:"signal"` // "TERM", "KILL", …
	At     time.Time `json:"at"`
}

// Target is a task as a stop or a sweep needs to know it. All Refs are claims
// until verified.
type Target struct {
	Run, Task string
	Kind      Kind
	Marker    string         // the run's HOB_RUN_ID
	Args      []string       // the command line as the recipe gives it
	Ports     []int          // the task's ports
	Keeper    *identity.Ref  // nil: there never was one
	Command   *identity.Ref  // nil: it was never started
	Stamp     uint64         // that the keeper gave itself and its tree (child.Stamp); 0: none
	Server    *identity.Ref  // hob's tmux server, whose pane it runs in; nil: not known
	Spared    []identity.Ref // never signalled: hob's tmux server, the caller, …
	Stop      StopPolicy
}

// StopPolicy is the recipe's `stop` (design: signal, grace, term_grace, detached, spare).
type StopPolicy struct {
	Signal    syscall.Signal `json:"signal"`
	Grace     time.Duration  `json:"grace"`
	TermGrace time.Duration  `json:"term_grace"`
	Detached  string         `json:"detached"`        // "kill" or "report"
	Spare     []string       `json:"spare,omitempty"` // command names (base of argv[0]) that are left alone with all below them
}

// Verdict of a report.
type Verdict string

// The verdicts of a report.
const (
	Clean      Verdict = "clean"
	Survivors  Verdict = "survivors"
	Unverified Verdict = "unverified"
)

// Report is the last sweep of a task: report.json, and an element of --json.
// Its JSON is a contract. Numbers that are not known are null with a note.
type Report struct {
	Schema     int            `json:"schema"`
	Run        string         `json:"run"`
	Task       string         `json:"task"`
	Reason     string         `json:"reason"` // down, restart, exited, hangup, terminated, sweep, reap, owner
	StartedAt  time.Time      `json:"started_at"`
	EndedAt    time.Time      `json:"ended_at"`
	Host       ReportHost     `json:"host"`
	Members    []ReportMember `json:"members"`
	Lookalikes []Lookalike    `json:"lookalikes"`
	Ports      []PortState    `json:"ports"`
	Verdict    Verdict        `json:"verdict"`
	// DryRun: nothing was done. Members that live have no fate, their note says what
	// they would get, and the verdict is what the stop would come to as far as can be told.
	DryRun bool `json:"dry_run,omitempty"`

	living bool // the task is at work: what is its own is not listed
}

// ReportHost says how much of the host was seen.
type ReportHost struct {
	OS         string   `json:"os"`
	Boot       string   `json:"boot"`
	Inspection string   `json:"inspection"` // full, partial, none
	Notes      []string `json:"notes"`
}

// ReportMember is a captured process and its fate.
type ReportMember struct {
	PID      int            `json:"pid"`
	Start    identity.Token `json:"start"`
	Parent   int            `json:"parent"`
	Args     []string       `json:"args"`
	Evidence []Evidence     `json:"evidence"`
	Signals  []string       `json:"signals"`
	Fate     Fate           `json:"fate"`
	GPUBytes *int64         `json:"gpu_bytes"`
	Note     string         `json:"note,omitempty"`
	// MemoryBytes is what it had resident when this stop first saw it.
	MemoryBytes *int64     `json:"memory_bytes"`
	Sent        []Sent     `json:"sent,omitempty"`     // Signals, with the time of each
	EndedAt     *time.Time `json:"ended_at,omitempty"` // when its end was seen
}

// Lookalike is a process outside the capture with grade D evidence: named, never signalled.
type Lookalike struct {
	PID       int            `json:"pid"`
	Start     identity.Token `json:"start"`
	Args      []string       `json:"args"`
	User      string         `json:"user"`
	StartedAt *time.Time     `json:"started_at"`
	Why       []string       `json:"why"` // "marker", "command", "port 8000", "sid", "gpu 0", "stamp"
	Note      string         `json:"note,omitempty"`
	Keeper    *Kept          `json:"keeper,omitempty"` // a living keeper of another task has it

	vague bool // whether one has could not be told
}

// PortState is a port of the task after the stop.
type PortState struct {
	Port  int    `json:"port"`
	State string `json:"state"` // free, held, unknown
	PID   *int   `json:"pid"`
	Note  string `json:"note,omitempty"`
}
