package tasks

import (
	"context"
	"fmt"
	"regexp"
	"runtime/debug"
	"time"

	"hob/identity"
	"hob/recipes"
	"hob/tasks/probe"
)

// Bounds of readiness.
const (
	probeSoon     = 25 * time.Millisecond // at the very start
	watchEvery    = 10 * time.Second      // once it has answered
	completeEvery = time.Minute           // the same, where an attempt is real work
	missesBefore  = 3                     // failed attempts in a row until what was ready is not: a busy server misses one
)

// readyWatch is what the keeper knows about whether its task answers. All but
// probes belongs to the keeper's loop.
type readyWatch struct {
	at      time.Time    // of the next attempt; zero: none is to be made
	check   *probe.Check // nil: up is ready
	bad     error        // why it cannot be checked
	every   time.Duration
	later   time.Duration // once it has answered
	wait    probe.Patience
	sample  probe.Sample // when it last moved
	moved   time.Time
	cancel  context.CancelFunc // of the attempt under way
	life    int                // attempts of an earlier life are not listened to
	misses  int
	waiting bool // an attempt is under way
	probes  probeRuns
}

// prepare is called before the command is started: its first line may be the
// one that is waited for.
func (r *readyWatch) prepare(k *keeper, env []string) {
	r.end()
	check, err := checkOf(k.spec, env, k.runProbe)
	r.check, r.bad = check, err
	if check != nil {
		k.term.log.watch(check.Log, check.Fresh)
	}
}

// begin looks out for a command that has just been started. Without anything to
// ask, up is ready.
func (r *readyWatch) begin(k *keeper) {
	now := k.h.Now()
	switch {
	case r.bad != nil:
		k.rec.ReadyNote = r.bad.Error()
		return
	case r.check == nil:
		k.rec.Ready, k.rec.WasReady, k.rec.ReadyAt = true, true, &now
		k.afterReady()
		return
	}
	r.at, r.misses = now, 0
	r.sample, r.moved = probe.Sample{At: now}, time.Time{}
	r.every, r.later = paces(k.spec.Ready)
	r.wait = probe.Patience{Start: now, Timeout: recipes.ReadyTimeout}
	if k.spec.Ready != nil && k.spec.Ready.Timeout > 0 {
		r.wait.Timeout = k.spec.Ready.Timeout
	}
	k.rec.ReadyNote = "has not answered yet"
}

// checkOf turns the spec into a probe; nil means that up is ready.
func checkOf(s Spec, env []string, run probe.Runner) (*probe.Check, error) {
	if s.Ready == nil && s.Port == 0 {
		return nil, nil
	}
	c := &probe.Check{Port: s.Port, Env: env, Dir: s.Dir}
	if s.Ready == nil {
		c.TCP = true
		return c, nil
	}
	c.HTTP, c.TCP, c.Exec, c.Completion, c.Model = s.Ready.HTTP, s.Ready.TCP, s.Ready.Exec, s.Ready.Completion, s.Ready.Model
	c.Key = s.Ready.APIKey
	for _, h := range s.Ready.Headers {
		c.Headers = append(c.Headers, probe.Header(h))
	}
	c.AnyOwner = s.Ready.Listener == "any"
	c.Run = run
	var err error
	if c.Expect, err = expectOf(s.Ready); err != nil {
		return nil, err
	}
	if s.Ready.Log != "" {
		re, err := regexp.Compile(s.Ready.Log)
		if err != nil {
			return nil, fmt.Errorf("ready.log cannot be used: %w", err)
		}
		c.Log = re
	}
	return c, nil
}

// expectOf is what the answer to http must be.
func expectOf(r *Readiness) (probe.Expect, error) {
	e := probe.Expect{Status: r.Status}
	if r.Body != "" {
		re, err := regexp.Compile(r.Body)
		if err != nil {
			return e, fmt.Errorf("ready.body cannot be used: %w", err)
		}
		e.Body = re
	}
	for _, f := range r.JSON {
		e.JSON = append(e.JSON, probe.Field(f))
	}
	return e, nil
}

// paces are the intervals before and after the first answer.
func paces(r *Readiness) (every, later time.Duration) {
	every, later = recipes.ReadyInterval, watchEvery
	if r == nil {
		return every, later
	}
	if r.Completion {
		later = completeEvery
	}
	if r.Interval > 0 {
		every = r.Interval
	}
	return every, max(every, later)
}

// pace is how long the next attempt waits, before the first answer: a quarter of
// the wait so far, so that a server which starts fast is not kept waiting much
// longer than it takes. An interval that is longer than usual was chosen.
func pace(every, waited time.Duration) time.Duration {
	if every > recipes.ReadyInterval {
		return every
	}
	return min(every, max(probeSoon, waited/4))
}

// end stops asking.
func (r *readyWatch) end() {
	r.at, r.waiting = time.Time{}, false
	r.life++
	if r.cancel != nil {
		r.cancel()
		r.cancel = nil
	}
}

// move notes whether the task has moved since it last did. What is not known
// now is compared again when it is.
func (r *readyWatch) move(s probe.Sample) {
	s.Memory, s.Disk, s.Percent = known(s.Memory, r.sample.Memory), known(s.Disk, r.sample.Disk), known(s.Percent, r.sample.Percent)
	if probe.Moved(r.sample, s) != "" {
		r.moved, r.sample = s.At, s
	}
	r.sample.Memory, r.sample.Disk, r.sample.Percent = known(r.sample.Memory, s.Memory), known(r.sample.Disk, s.Disk), known(r.sample.Percent, s.Percent)
}

func known[T any](now, before *T) *T {
	if now == nil {
		return before
	}
	return now
}

// tick makes the attempt that is due, beside the loop.
func (r *readyWatch) tick(k *keeper, now time.Time) {
	if r.at.IsZero() || r.waiting || now.Before(r.at) {
		return
	}
	if !k.rec.WasReady {
		k.measure(now)
		news, percent := k.term.log.fresh()
		r.move(probe.Sample{At: now, Log: news, Memory: k.rec.MemoryBytes, Disk: k.disk, Percent: percent})
	}
	k.look(now) // the tree as it is now: a new worker may be the one that listens
	s := probe.Subject{Command: k.life.ref.PID}
	k.tree(func(pin identity.Handle) { s.Tree = append(s.Tree, pin.Ref().PID) })
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(bg)
	r.waiting = true
	check, life, line := *r.check, r.life, k.term.log.view().Matched
	go func() {
		result := probe.Once(ctx, k.h, check, s, line)
		k.post(func() {
			if r.life == life {
				r.answered(k, result, k.h.Now())
			}
		})
	}()
}

// answered takes in the result of an attempt.
func (r *readyWatch) answered(k *keeper, result probe.Result, now time.Time) {
	r.waiting = false
	r.cancel()
	r.cancel = nil
	if result.Ready {
		r.misses, r.at = 0, now.Add(r.later)
		r.nowReady(k, now)
		return
	}
	r.misses++
	r.at = now.Add(r.every)
	if !k.rec.WasReady {
		r.at = now.Add(pace(r.every, now.Sub(r.wait.Start)))
	}
	if k.rec.Ready && r.misses < missesBefore {
		return
	}
	if k.rec.Ready {
		k.note("does not answer any more: %s", result.Reason)
	}
	k.rec.Ready, k.rec.ReadyNote = false, result.Reason
	if !k.rec.WasReady && !k.rec.DeadlineHit && !now.Before(r.wait.Deadline(r.moved)) {
		k.rec.DeadlineHit = true
		k.note("not ready after %s: %s", now.Sub(r.wait.Start).Round(time.Second), result.Reason)
	}
}

func (r *readyWatch) nowReady(k *keeper, now time.Time) {
	if k.rec.Ready {
		return
	}
	k.rec.Ready, k.rec.ReadyNote, k.rec.DeadlineHit = true, "", false
	if !k.rec.WasReady {
		k.rec.WasReady, k.rec.ReadyAt = true, &now
		k.term.log.watch(nil, nil)
		debug.FreeOSMemory() // what the start took is not needed for hours
		k.afterReady()
	}
	k.note("ready after %s", now.Sub(r.wait.Start).Round(time.Millisecond))
}
