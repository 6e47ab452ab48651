// Package probe finds out whether a task answers, and whether the one that
// answers is ours.
//
// An answer alone proves nothing: an orphan of an earlier run may hold the port,
// or a stranger share it by SO_REUSEPORT and take half of the connections. So
// the connection that the probe itself holds must have been accepted by a socket
// that a process of the task has open, and every listener that could take the
// next one must be the task's too. Who could not be looked up is not ours, and
// the reason says so.
package probe

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"hob/identity"
)

// Check is one probe as the recipe gives it. Exactly one of HTTP, TCP, Log,
// Exec, Completion is set; the zero value with a Port means TCP.
type Check struct {
	Port       int
	HTTP       string         // path or loopback URL
	Expect     Expect         // of the answer to HTTP
	TCP        bool           //
	Log        *regexp.Regexp //
	Exec       []string
	Env        []string // of Exec
	Dir        string   // of Exec
	Run        Runner   // runs Exec
	Completion bool
	Model      string        // for Completion; "" is the first that /v1/models names
	Key        string        // that HTTP and Completion ask with, as a bearer; "" for none
	Headers    []Header      // that go with what HTTP and Completion ask
	AnyOwner   bool          // listener: any
	Timeout    time.Duration // of one attempt, at least 5 s: a busy server needs a second an answer
}

// Header is a header of a request. Its value is told to nobody but the task's own port.
type Header struct{ Name, Value string }

// Runner runs a program to its end and returns its exit code; an error means
// that it could not be started, was ended by a signal, or by ctx. The keeper
// provides it: the program must be started, reaped and, when ctx is done, ended
// by the one that owns wait and by what identity has pinned.
type Runner func(ctx context.Context, argv, env []string, dir string) (code int, err error)

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

// The shortest time that one attempt may have. A first completion may compile
// kernels and read weights, and giving up on it makes the server drop the work.
const (
	minAttempt    = 5 * time.Second
	minCompletion = 30 * time.Second
)

// Once makes one attempt. log is the text of the task's log so far (for Log).
// That the command lives is the caller's to know.
func Once(ctx context.Context, h identity.Host, c Check, s Subject, log []byte) Result {
	ctx, cancel := context.WithTimeout(ctx, c.attempt())
	defer cancel()
	err := attempt{host: h, check: c, subject: s}.run(ctx, log)
	if err == nil {
		return Result{Ready: true}
	}
	r := Result{Reason: err.Error()}
	if held := (*strangerError)(nil); errors.As(err, &held) {
		r.Stranger = held.pid
	}
	return r
}

// attempt is how long one attempt may take.
func (c Check) attempt() time.Duration {
	if c.Completion {
		return max(c.Timeout, minCompletion)
	}
	return max(c.Timeout, minAttempt)
}

// attempt is one try. Its errors are the reasons for not being ready.
type attempt struct {
	host    identity.Host
	check   Check
	subject Subject
}

func (a attempt) run(ctx context.Context, log []byte) error {
	c := a.check
	switch {
	case c.HTTP != "":
		return a.http(ctx)
	case c.Completion:
		return a.completion(ctx)
	case c.Log != nil:
		if !c.Log.Match(log) {
			return fmt.Errorf("the log does not show %q yet", c.Log)
		}
	case len(c.Exec) > 0:
		if err := a.exec(ctx); err != nil {
			return err
		}
	case c.TCP && c.Port == 0:
		return errors.New("there is no port to connect to")
	}
	return a.port(ctx, c.Port)
}

// exec asks the recipe's own program.
func (a attempt) exec(ctx context.Context) error {
	c := a.check
	if c.Run == nil {
		return fmt.Errorf("nobody here can run %s", c.Exec[0])
	}
	code, err := c.Run(ctx, c.Exec, c.Env, c.Dir)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s did not end within %v", c.Exec[0], c.attempt())
	case err != nil:
		return fmt.Errorf("run %s: %w", c.Exec[0], err)
	case code != 0:
		return fmt.Errorf("%s ended with exit code %d", c.Exec[0], code)
	}
	return nil
}
