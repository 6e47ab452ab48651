package tasks

import (
	"testing"
	"time"

	"hob/recipes"
	"hob/sweep"
)

func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name string
		s    sight
		want move
	}{
		{"runs", sight{}, doNothing},
		{"runs, the lock is not needed any more", sight{lock: lockHeld}, doLetGo},
		{"could not be started", sight{unstarted: true, ended: true, empty: true}, doQuit},

		{"asked to stop", sight{want: "hangup"}, doAskLock},
		{"asked to stop, waits for the lock", sight{want: "hangup", lock: lockAsked}, doNothing},
		{"asked to stop, has the lock", sight{want: "hangup", lock: lockHeld}, doStopAll},
		{"stops", sight{want: "hangup", lock: lockHeld, stopping: true}, doNothing},
		{"stops, and the tree is empty", sight{want: "hangup", lock: lockHeld, stopping: true, ended: true, empty: true}, doNothing},
		{"has stopped, something is stuck", sight{want: "hangup", stopped: true, reported: true}, doNothing},
		{"the after_stop alone, and something outlives its stop", sight{ended: true, afterOnly: true, stopped: true, reported: true, lock: lockHeld}, doQuit},
		{"has stopped, only spared ones live", sight{want: "hangup", stopped: true, reported: true, spared: true}, doQuit},
		{"has stopped", sight{want: "hangup", stopped: true, reported: true, ended: true, empty: true}, doQuit},

		{"another hob stops", sight{theirs: true}, doAskLock},
		{"another hob stops, and asked us too", sight{theirs: true, want: "terminated", lock: lockAsked}, doNothing},
		{"another hob was killed while it stopped", sight{theirs: true, lock: lockHeld}, doStopAll},
		{"another hob has emptied the tree", sight{theirs: true, ended: true, empty: true, lock: lockAsked}, doQuit},
		{"another hob has, before we looked", sight{theirs: true, ended: true, empty: true}, doTryLock},
		{"another hob has, and holds the lock", sight{theirs: true, ended: true, empty: true, lock: lockRefused}, doQuit},
		{"another hob has, and was killed", sight{theirs: true, ended: true, empty: true, lock: lockHeld}, doStopAll},
		{"another hob's stop left something stuck", sight{settled: true, lock: lockHeld, ended: true, graceOver: true}, doLetGo},
		{"then its pane is killed", sight{settled: true, want: "hangup", ended: true, graceOver: true}, doNothing},
		{"another hob's stop left what is spared", sight{settled: true, spared: true}, doQuit},
		{"another hob's stop is over", sight{settled: true, ended: true, empty: true}, doQuit},

		{"the command has ended, others have the grace", sight{ended: true}, doNothing},
		{"the grace is over", sight{ended: true, graceOver: true}, doAskLock},
		{"the grace is over, has the lock", sight{ended: true, graceOver: true, lock: lockHeld}, doStopLeft},
		{"a stop within the grace", sight{ended: true, theirs: true}, doAskLock},
		{"they are ended, one is stuck", sight{ended: true, graceOver: true, reported: true}, doNothing},
		{"what a person left in a shell", sight{kind: sweep.Shell, ended: true, graceOver: true, reported: true, spared: true}, doQuit},
		{"one is stuck, then asked to stop", sight{ended: true, graceOver: true, reported: true, want: "terminated"}, doAskLock},

		{"all have ended", sight{ended: true, empty: true}, doAskLock},
		{"all have ended, somebody has the lock", sight{ended: true, empty: true, lock: lockAsked}, doNothing},
		{"and keeps it", sight{ended: true, empty: true, lock: lockAsked, gaveUp: true}, doQuit},
		{"all have ended, has the lock", sight{ended: true, empty: true, lock: lockHeld}, doStopLeft},
		{"all is written down", sight{ended: true, empty: true, reported: true}, doQuit},

		{"waits to start again", sight{ended: true, empty: true, reported: true, restart: true}, doNothing},
		{"is to start again", sight{ended: true, empty: true, reported: true, restart: true, due: true}, doAskLock},
		{"starts again", sight{ended: true, empty: true, reported: true, restart: true, due: true, lock: lockHeld}, doRestart},
		{"is to start again, but is asked to stop", sight{ended: true, empty: true, reported: true, restart: true, due: true, lock: lockHeld, want: "terminated"}, doQuit},
		{"is to start again, but another hob stops", sight{ended: true, empty: true, reported: true, restart: true, due: true, theirs: true}, doTryLock},
		{"is not to start again before it is empty", sight{ended: true, graceOver: true, reported: true, restart: true, due: true}, doNothing},

		{"before runs", sight{pending: true}, doNothing},
		{"before has ended well", sight{pending: true, prepared: true, empty: true}, doAskLock},
		{"and the lock is had", sight{pending: true, prepared: true, empty: true, lock: lockHeld}, doStart},
		{"before has left something, which lives on", sight{pending: true, prepared: true, lock: lockHeld}, doStart},
		{"asked to stop while before runs", sight{pending: true, want: "hangup"}, doAskLock},
		{"asked to stop while before runs, has the lock", sight{pending: true, want: "hangup", lock: lockHeld}, doStopAll},
		{"asked to stop just before the start", sight{pending: true, prepared: true, empty: true, want: "hangup", lock: lockHeld}, doStopAll},
		{"another hob stops while before runs", sight{pending: true, theirs: true}, doAskLock},
		{"another hob stops just before the start", sight{pending: true, prepared: true, empty: true, theirs: true, lock: lockAsked}, doQuit},
		{"another hob has stopped before", sight{pending: true, settled: true, empty: true}, doQuit},
		{"has stopped before", sight{pending: true, stopped: true, empty: true}, doQuit},
		{"before has failed", sight{unstarted: true, ended: true, empty: true}, doQuit},

		{"is over, after_stop is due", sight{ended: true, empty: true, reported: true, after: true}, doAskLock},
		{"is over, has the lock for after_stop", sight{ended: true, empty: true, reported: true, after: true, lock: lockHeld}, doAfter},
		{"is over, and the lock is not to be had", sight{ended: true, empty: true, reported: true, after: true, lock: lockAsked, gaveUp: true}, doQuit},
		{"after_stop runs", sight{ended: true, reported: true, hooking: true, lock: lockHeld}, doNothing},
		{"after_stop runs, and a signal comes", sight{ended: true, reported: true, hooking: true, want: "terminated", lock: lockHeld}, doNothing},
		{"after_stop has ended", sight{ended: true, empty: true, reported: true, leftover: true, lock: lockHeld}, doQuit},
		{"after_stop has left something", sight{ended: true, graceOver: true, leftover: true, lock: lockHeld}, doStopLeft},
		{"after_stop has left something, after a stop", sight{ended: true, want: "hangup", stopped: true, leftover: true, lock: lockHeld}, doStopLeft},
		{"what it left is stuck", sight{ended: true, graceOver: true, leftover: true, reported: true}, doNothing},
		{"has stopped, after_stop is due", sight{want: "hangup", stopped: true, reported: true, ended: true, empty: true, after: true, lock: lockHeld}, doAfter},
		{"another hob has stopped it, and runs after_stop", sight{settled: true, ended: true, empty: true, after: true}, doQuit},
		{"is to start again, after_stop is not due yet", sight{ended: true, empty: true, reported: true, restart: true}, doNothing},
	} {
		if got := decide(c.s); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestNeverSignalsWithoutTheLock tries every combination.
func TestNeverSignalsWithoutTheLock(t *testing.T) {
	for bits := range 1 << 18 {
		on := func(n int) bool { return bits>>n&1 == 1 }
		for _, lock := range []lockState{lockFree, lockAsked, lockRefused, lockHeld} {
			s := sight{
				unstarted: on(0), ended: on(1), empty: on(2), graceOver: on(3), spared: on(4), stopping: on(5), stopped: on(6),
				reported: on(7), restart: on(8), due: on(9), gaveUp: on(10), theirs: on(11), settled: on(12), lock: lock,
				pending: on(13), prepared: on(14), after: on(15), hooking: on(16), leftover: on(17),
			}
			for _, s.want = range []string{"", "terminated"} {
				m := decide(s)
				if (m == doStopAll || m == doStopLeft || m == doRestart || m == doStart || m == doAfter) && lock != lockHeld {
					t.Fatalf("%+v: %s", s, m)
				}
				if m == doRestart && (s.want != "" || s.theirs || s.settled || s.stopped || !s.empty) {
					t.Fatalf("%+v: a restart after a stop, or over what lives", s)
				}
				if m == doStart && (s.want != "" || s.theirs || s.settled || s.stopped || !s.prepared) {
					t.Fatalf("%+v: a start after a stop, or before it may be", s)
				}
				if m == doAfter && (s.settled || s.theirs) {
					t.Fatalf("%+v: after_stop while another hob stops the task", s)
				}
				if m == doQuit && !s.empty && !s.spared {
					t.Fatalf("%+v: leaves what lives", s)
				}
			}
		}
	}
}

func TestPlanRestart(t *testing.T) {
	code := func(n int) Exit { return Exit{Code: &n} }
	for _, c := range []struct {
		name  string
		r     Restart
		e     Exit
		fails int
		lived time.Duration
		again bool
		pause time.Duration
	}{
		{"no policy", Restart{}, code(1), 0, 0, false, 0},
		{"no", Restart{Policy: "no"}, code(1), 0, 0, false, 0},
		{"on-failure, succeeded", Restart{Policy: "on-failure"}, code(0), 0, 0, false, 0},
		{"on-failure, failed", Restart{Policy: "on-failure"}, code(1), 0, 0, true, time.Second},
		{"on-failure, signal", Restart{Policy: "on-failure"}, Exit{Signal: "KILL"}, 0, 0, true, time.Second},
		{"always, succeeded", Restart{Policy: "always"}, code(0), 0, 0, true, time.Second},
		{"could not be started", Restart{Policy: "always"}, Exit{Error: "x"}, 0, 0, false, 0},
		{"doubled", Restart{Policy: "always", Backoff: 3 * time.Second}, code(1), 2, 0, true, 12 * time.Second},
		{"bounded", Restart{Policy: "always", Max: 100}, code(1), 50, 0, true, time.Minute},
		{"longer than the bound", Restart{Policy: "always", Max: 9, Backoff: time.Hour}, code(1), 2, 0, true, time.Hour},
		{"the last one", Restart{Policy: "always", Max: 3}, code(1), 2, 0, true, 4 * time.Second},
		{"one too many", Restart{Policy: "always", Max: 3}, code(1), 3, 0, false, 0},
		{"has an end without max", Restart{Policy: "always"}, code(1), recipes.RestartMax, 0, false, 0},
		{"a long life begins a new count", Restart{Policy: "always", Max: 3}, code(1), 3, time.Hour, true, time.Second},
		{"not long for its backoff", Restart{Policy: "always", Max: 3, Backoff: time.Hour}, code(1), 3, 2 * time.Hour, false, 0},
	} {
		p := planRestart(c.r, c.e, c.fails, c.lived)
		if p.again != c.again || p.pause != c.pause {
			t.Errorf("%s: %+v", c.name, p)
		}
		if !p.again && c.r.Policy == "always" && p.why == "" {
			t.Errorf("%s: does not say why", c.name)
		}
	}
}

func TestEndState(t *testing.T) {
	zero, one := 0, 1
	good, bad := &Exit{Code: &zero}, &Exit{Code: &one}
	for _, c := range []struct {
		kind sweep.Kind
		from sweep.Step
		e    *Exit
		v    sweep.Verdict
		want State
	}{
		{sweep.Server, sweep.StepAll, good, sweep.Clean, Stopped},
		{sweep.Server, sweep.StepAll, bad, sweep.Clean, Stopped},
		{sweep.Server, sweep.StepAll, nil, sweep.Survivors, Survivors},
		{sweep.Server, sweep.StepTerm, good, sweep.Clean, Exited},
		{sweep.Server, sweep.StepTerm, bad, sweep.Clean, Failed},
		{sweep.Server, sweep.StepTerm, &Exit{Signal: "SEGV"}, sweep.Clean, Failed},
		{sweep.Job, sweep.StepTerm, good, sweep.Clean, Completed},
		{sweep.Job, sweep.StepTerm, good, sweep.Survivors, Survivors},
		{sweep.Shell, sweep.StepTerm, good, sweep.Unverified, Unverified},
	} {
		if got := endState(c.kind, c.from, c.e, c.v); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestStartAfter: a restart waits for what the life before held, and not for ever.
func TestStartAfter(t *testing.T) {
	for _, c := range []struct {
		waited time.Duration
		holder string
		start  bool
		note   string
	}{
		{0, "", true, ""},
		{time.Hour, "", true, ""},
		{0, "port 80 is still held", false, "restart waits, 5m0s at most: port 80 is still held"},
		{restartPatience - 1, "x", false, "restart waits, 5m0s at most: x"},
		{restartPatience, "x", true, "restart has waited 5m0s, and waits no longer: x"},
	} {
		if start, note := startAfter(c.waited, c.holder); start != c.start || note != c.note {
			t.Errorf("%v, %q: %t, %q", c.waited, c.holder, start, note)
		}
	}
}
