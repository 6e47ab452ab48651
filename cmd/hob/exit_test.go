package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"hob/identity"
	"hob/recipes"
	"hob/sweep"
	"hob/tasks"
)

func TestExitCodes(t *testing.T) {
	plain := errors.New("plain")
	survivors := &tasks.Problem{Kind: tasks.ErrSurvivors, Msg: "left"}
	blind := &tasks.Problem{Kind: tasks.ErrUnverified, Msg: "blind"}
	refused := &tasks.Problem{Kind: tasks.ErrRefused, Msg: "no"}
	torn := &tasks.RecordError{Path: "task.json", Kind: tasks.Torn, Err: plain}
	recipe := recipes.Errors{{File: "hob.yaml", Line: 1, Column: 2, Msg: "wrong"}}
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"nothing", nil, 0},
		{"any error", plain, 1},
		{"usage", usage("", "wrong"), 2},
		{"recipe", recipe, 2},
		{"recipe, wrapped", fmt.Errorf("the recipe of x: %w", recipe), 2},
		{"no recipe", recipes.ErrNoRecipe, 2},
		{"survivors", survivors, 3},
		{"unverified", blind, 4},
		{"a record that cannot be trusted", fmt.Errorf("x/y: %w", torn), 4},
		{"a process that cannot be verified", fmt.Errorf("x: %w", identity.ErrUnverifiable), 4},
		{"refused", refused, 5},
		{"another process", fmt.Errorf("x: %w", identity.ErrReused), 5},
		{"interrupted", tasks.ErrInterrupted, 130},
		{"cancelled", context.Canceled, 130},
		{"5 before 3", join(plain, blind, survivors, refused), 5},
		{"3 before 4", join(plain, torn, survivors), 3},
		{"4 before 1", join(plain, blind), 4},
		{"130 before all", join(refused, fmt.Errorf("x: %w", tasks.ErrInterrupted)), 130},
		{"joins in joins", join(join(plain, join(survivors)), blind), 3},
	}
	for _, tt := range tests {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestReportsDecideTheCode(t *testing.T) {
	outcome := func(v sweep.Verdict, err error) tasks.Outcome {
		return tasks.Outcome{Name: tasks.Name{Run: "r", Task: "t"}, Report: &sweep.Report{Verdict: v}, Err: err}
	}
	tests := []struct {
		outs []tasks.Outcome
		want int
	}{
		{[]tasks.Outcome{outcome(sweep.Clean, nil)}, 0},
		{[]tasks.Outcome{outcome(sweep.Clean, nil), outcome(sweep.Survivors, nil)}, 3},
		{[]tasks.Outcome{outcome(sweep.Unverified, nil), outcome(sweep.Survivors, nil)}, 3},
		{[]tasks.Outcome{outcome(sweep.Unverified, nil)}, 4},
		{[]tasks.Outcome{outcome(sweep.Survivors, errors.New("disk full"))}, 3},
	}
	for i, tt := range tests {
		if got := exitCode((&app{}).problems(tt.outs)); got != tt.want {
			t.Errorf("%d: got %d, want %d", i, got, tt.want)
		}
	}
}

func TestComplain(t *testing.T) {
	var out bytes.Buffer
	a := &app{err: &out}
	tip := &tasks.Problem{Msg: "port 1 is held", Tip: "end it"}
	recipe := recipes.Errors{{File: "a.yaml", Line: 3, Column: 7, Msg: "unknown key", Hint: "did you mean args?"}, {File: "a.yaml", Line: 9, Column: 1, Msg: "cycle"}}
	a.complain(join(fmt.Errorf("chat/llm: %w", tip), tip, errors.New("plain"), recipe))
	want := `hob: chat/llm: port 1 is held
hint: end it
hob: port 1 is held
hob: plain
hob: a.yaml:3:7: unknown key
hint: did you mean args?
hob: a.yaml:9:1: cycle
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[31mred\x1b[0m text":  "red text",
		"a\tb\r":                   "a b",
		"\x1b[2K\x1b[1Aover \x07x": "over x",
		"héllo":                    "héllo",
	} {
		if got := plain(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// After Ctrl-C each thing that was cut stands on a line of its own.
func TestInterrupted(t *testing.T) {
	var out strings.Builder
	err := interrupted(errors.Join(errors.New("chat/a: the stop was cut"), errors.New("chat/a: survivors remain")))
	(&app{err: &out}).complain(err)
	if want := "hob: interrupted\nhob: chat/a: the stop was cut\nhob: chat/a: survivors remain\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if code := exitCode(err); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	if err := interrupted(tasks.ErrInterrupted); err.Error() != "interrupted" {
		t.Errorf("said twice: %v", err)
	}
}
