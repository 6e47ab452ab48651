package tasks

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"hob/identity"
	"hob/recipes"
	"hob/sweep"
)

// TestDecideReap: a task is never stopped for being old, and what cannot be told
// is left as it is.
func TestDecideReap(t *testing.T) {
	up, over, cut := Derived{State: Ready}, Derived{State: Failed}, Derived{State: Unverified}
	tests := []struct {
		name  string
		life  Lifetime
		owner identity.Verdict
		claim State
		seen  Derived
		want  reaping
	}{
		{"contained, its owner lives", Contained, identity.Owned, Up, up, reapNothing},
		{"contained, its owner is gone", Contained, identity.Gone, Up, up, reapStop},
		{"contained, its owner's number is a stranger's", Contained, identity.Foreign, Up, up, reapStop},
		{"contained, its owner cannot be told", Contained, identity.Unverifiable, Up, up, reapLeave},
		{"contained, survivors, its owner is gone", Contained, identity.Gone, Survivors, Derived{State: Survivors}, reapStop},
		{"contained, over, its owner is gone", Contained, identity.Gone, Failed, over, reapNothing},
		{"contained, over since, its owner is gone", Contained, identity.Gone, Up, over, reapCorrect},
		{"detached, up", Detached, "", Up, up, reapNothing},
		{"detached, ended while nobody looked", Detached, "", Up, over, reapCorrect},
		{"detached, its keeper still sees to it", Detached, "", Up, Derived{State: Failed, Tended: true}, reapNothing},
		{"detached, recorded as it is", Detached, "", Failed, over, reapNothing},
		{"detached, cannot be told", Detached, "", Up, cut, reapLeave},
		{"detached, known to be unverified", Detached, "", Unverified, cut, reapNothing},
		{"detached, survivors", Detached, "", Survivors, Derived{State: Survivors}, reapNothing},
	}
	for _, tt := range tests {
		if got := decideReap(tt.life, tt.owner, tt.claim, tt.seen); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestStateAfterAStop: a stop that is not clean is never recorded as stopped.
func TestStateAfterAStop(t *testing.T) {
	zero, seven := 0, 7
	exit := func(code *int) *Exit { return &Exit{Code: code} }
	tests := []struct {
		name    string
		seen    Seen
		verdict sweep.Verdict
		want    State
	}{
		{"a server that was up", Seen{Task: &Task{State: Up}}, sweep.Clean, Stopped},
		{"survivors", Seen{Task: &Task{State: Up}}, sweep.Survivors, Survivors},
		{"not everything was seen", Seen{Task: &Task{State: Up}}, sweep.Unverified, Unverified},
		{"a report without a verdict", Seen{Task: &Task{State: Up}}, "", Unverified},
		{"a job that had completed", Seen{Task: &Task{State: Up, Kind: sweep.Job}, Exit: exit(&zero)}, sweep.Clean, Completed},
		{"one that had failed", Seen{Task: &Task{State: Up}, Exit: exit(&seven)}, sweep.Clean, Failed},
		{"one that had failed and left survivors", Seen{Task: &Task{State: Up}, Exit: exit(&seven)}, sweep.Survivors, Survivors},
		{"a stop that was cut after the exit it had caused", Seen{Task: &Task{State: Stopping, Reason: "down"}, Exit: exit(&seven)}, sweep.Clean, Stopped},
	}
	for _, tt := range tests {
		s := stopper{seen: tt.seen, byItself: endedByItself(tt.seen)}
		if got := s.stateAfter(sweep.Report{Verdict: tt.verdict}); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestEndings(t *testing.T) {
	zero, three := 0, 3
	tests := []struct {
		e    Ending
		good bool
		code int
	}{
		{Ending{State: Completed, Code: &zero}, true, 0},
		{Ending{State: Stopped, Sig: "TERM"}, true, 143},
		{Ending{State: Stopped}, true, 0},
		{Ending{State: Failed, Code: &three}, false, 3},
		{Ending{State: Failed, Sig: "KILL"}, false, 137},
		{Ending{State: Lost}, false, 1},
		{Ending{State: Survivors, Code: &zero}, false, 0},
	}
	for _, tt := range tests {
		if tt.e.Good() != tt.good || tt.e.ExitCode() != tt.code {
			t.Errorf("%+v: good %t, code %d", tt.e, tt.e.Good(), tt.e.ExitCode())
		}
	}
}

func TestGoal(t *testing.T) {
	u := &upRun{recipe: nil}
	task := func(name, kind string) *upTask {
		t := &upTask{}
		t.Name, t.Kind = name, kind
		return t
	}
	fetch, lone, llm, app := task("fetch", "job"), task("lone", "job"), task("llm", "server"), task("app", "server")
	llm.DependsOn = append(llm.DependsOn, dependency("fetch", condCompleted))
	app.DependsOn = append(app.DependsOn, dependency("llm", condStarted))
	u.tasks = []*upTask{fetch, lone, llm, app}
	for name, want := range map[*upTask]string{fetch: condCompleted, lone: condStarted, llm: condReady, app: condReady} {
		if got := u.goal(name); got != want {
			t.Errorf("%s: got %s, want %s", name.Name, got, want)
		}
	}
}

func dependency(task, condition string) recipes.Dependency {
	return recipes.Dependency{Task: task, Condition: condition}
}

// A start that was cut since the work is done is no interruption; one that
// somebody has interrupted is.
func TestCutStartsOfAContainedRun(t *testing.T) {
	outs := func() []Outcome {
		return []Outcome{{Err: fmt.Errorf("start long: %w", context.Canceled)}, {Err: errors.New("no such program")}}
	}
	if got := notCut(t.Context(), outs()); got[0].Err != nil || got[1].Err == nil {
		t.Errorf("the work is done: %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := notCut(ctx, outs()); got[0].Err == nil {
		t.Errorf("interrupted: %v", got)
	}
}
