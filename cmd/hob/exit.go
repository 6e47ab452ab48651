package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hob/identity"
	"hob/recipes"
	"hob/sweep"
	"hob/tasks"
)

// The exit codes of all verbs.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitSurvivors   = 3
	exitUnverified  = 4
	exitRefused     = 5
	exitInterrupted = 130
)

// precedence is which code wins where several apply.
var precedence = [...]int{exitInterrupted, exitRefused, exitSurvivors, exitUnverified, exitUsage, exitFailed}

// exitCode is the code of all that went wrong.
func exitCode(err error) int {
	found := map[int]bool{}
	for _, e := range leaves(err) {
		found[codeOf(e)] = true
	}
	for _, code := range precedence {
		if found[code] && code == exitFailed {
			return ownCode(err)
		}
		if found[code] {
			return code
		}
	}
	return exitOK
}

// ownCode is the code of the work that failed, where that is asked for.
func ownCode(err error) int {
	for _, e := range leaves(err) {
		var w *workFailed
		if errors.As(e, &w) && w.code > 0 {
			return w.code
		}
	}
	return exitFailed
}

// leaves are the errors that were joined, each with the advice it carries.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || !bareJoin(err, joined.Unwrap()) {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, leaves(e)...)
	}
	return all
}

// bareJoin reports whether an error is nothing but its parts, a line each.
func bareJoin(err error, parts []error) bool {
	if _, advises := err.(interface{ Hint() string }); advises {
		return false
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Error())
	}
	return err.Error() == strings.Join(texts, "\n")
}

// codes says what kind of error gives which code; the first that matches counts.
var codes = [...]struct {
	err  error
	code int
}{
	{tasks.ErrInterrupted, exitInterrupted},
	{context.Canceled, exitInterrupted},
	{tasks.ErrRefused, exitRefused},
	{identity.ErrReused, exitRefused},
	{sweep.ErrRefused, exitRefused},
	{tasks.ErrSurvivors, exitSurvivors},
	{tasks.ErrUnverified, exitUnverified},
	{identity.ErrUnverifiable, exitUnverified},
	{sweep.ErrNotSaved, exitUnverified},
	{tasks.ErrUsage, exitUsage},
	{recipes.ErrNoRecipe, exitUsage},
	{recipes.ErrNoTask, exitUsage},
}

func codeOf(err error) int {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	var record *tasks.RecordError
	var recipe recipes.Errors
	switch {
	case errors.As(err, &record):
		return exitUnverified
	case errors.As(err, &recipe):
		return exitUsage
	}
	return exitFailed
}

// verdictError says of a task's report what its exit code follows from.
func verdictError(o tasks.Outcome) error {
	if o.Report == nil {
		return nil
	}
	switch o.Report.Verdict {
	case sweep.Survivors:
		return &tasks.Problem{Kind: tasks.ErrSurvivors, Msg: o.String() + ": survivors remain", Tip: "hob report " + o.String() + " names them"}
	case sweep.Unverified:
		return &tasks.Problem{Kind: tasks.ErrUnverified, Msg: o.String() + ": not everything could be verified", Tip: "hob report " + o.String() + " says what"}
	}
	return nil
}

// problems are the errors of all outcomes, each with its task in front. A dry
// run's reports say what is there, not what was left.
func (a *app) problems(outs []tasks.Outcome) error {
	var errs []error
	for _, o := range outs {
		for _, e := range leaves(errors.Join(o.Err, o.Hook)) {
			errs = append(errs, about(o.Name, e))
		}
		if err := verdictError(o); err != nil && !a.dryRun {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func about(n tasks.Name, err error) error {
	if n.Run == "" {
		return err
	}
	return fmt.Errorf("%s: %w", n, err)
}

// complain prints every error, then what can be done about it. The same advice
// is given once.
func (a *app) complain(err error) {
	var told []string
	for _, e := range leaves(err) {
		for _, line := range a.lines(e) {
			fmt.Fprintln(a.err, line)
		}
		if tip := hint(e); tip != "" && !slices.Contains(told, tip) {
			fmt.Fprintln(a.err, "hint:", tip)
			told = append(told, tip)
		}
	}
}

// hint is the first advice in an error's chain that says something.
func hint(err error) string {
	var h interface{ Hint() string }
	if !errors.As(err, &h) {
		return ""
	}
	if tip := h.Hint(); tip != "" {
		return tip
	}
	switch e := h.(type) {
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if tip := hint(inner); tip != "" {
				return tip
			}
		}
	case interface{ Unwrap() error }:
		return hint(e.Unwrap())
	}
	return ""
}
