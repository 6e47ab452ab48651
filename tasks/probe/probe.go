// Package probe finds out whether a task answers, and whether the one that
// answers is ours.
package probe

import (
	"context"
	"regexp"
	"time"

	"hob/identity"
)

// Check is one probe as the recipe gives it. Exactly one of HTTP, TCP, Log,
// Exec, Completion is set; the zero value with a Port means TCP.
type Check struct {
	Port       int
	HTTP       string // path or loopback URL
	TCP        bool
	Log        *regexp.Regexp
	Exec       []string
	Env        []string // of Exec
	Dir        string   // of Exec
	Completion bool
	Model      string
	AnyOwner   bool          // listener: any
	Timeout    time.Duration // of one attempt, at least 5 s: a busy server needs a second an answer
}

// Subject is whom the answer must come from.
type Subject struct {
	Command int   // pid of the task's command, whose network namespace is read
	Tree    []int // pids of the task's whole tree, verified by the caller
}

// Result of one attempt.
type Result struct {
	Ready  bool
	Reason string // why not, in words ("port 8000 is held by pid 12 (python3 server.py), not by this task")
	// Stranger is the pid that holds the port, when it is known and not ours.
	Stranger int
}

// Once makes one attempt. log is the text of the task's log so far (for Log).
func Once(ctx context.Context, h identity.Host, c Check, s Subject, log []byte) Result {
	panic("not written yet")
}
