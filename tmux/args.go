package tmux

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// name is what hob lets be a session's name. Everything that some tmux version
// rewrites ("." and ":" become "_", so two names become one), expands ("#{…}",
// or "#(…)", which runs a program), or takes for something else ("$1", "@1",
// "%1", "=x", "-x", "x*") is left out.
var name = lazy(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$`)

// windowName is what hob lets be a window's name, which is never a target: all
// but what tmux expands (from 3.5a on) or writes otherwise.
var windowName = lazy(`^[^\x00-\x1f\x7f#\\]{1,100}$`)

var (
	sessionID = lazy(`^\$[0-9]+$`)
	windowID  = lazy(`^@[0-9]+$`)
	paneID    = lazy(`^%[0-9]+$`)
)

// checkName refuses names that would not come out of tmux as they went in.
func checkName(what, s string) error {
	if !name().MatchString(s) {
		return fmt.Errorf("%w: %s %q: letters, digits, - and _ only", ErrName, what, s)
	}
	return nil
}

// checkWindowName refuses what would not come out as it went in.
func checkWindowName(s string) error {
	if !utf8.ValidString(s) || !windowName().MatchString(s) {
		return fmt.Errorf("%w: window %q: at most 100 characters, no control characters, # or \\", ErrName, s)
	}
	return nil
}

// checkID refuses whatever is not an id, since tmux would resolve it as a name,
// by prefix and by pattern, and find another target.
func checkID(what string, id func() *regexp.Regexp, s string) error {
	if !id().MatchString(s) {
		return fmt.Errorf("%w: %s %q is no tmux id", ErrName, what, s)
	}
	return nil
}

// literal escapes an argument for the command line of the tmux program. Of all
// characters only a ";" at the very end means something there: it ends the
// command, and what follows would be run as another tmux command.
func literal(arg string) string {
	if head, ok := strings.CutSuffix(arg, ";"); ok {
		return head + `\;`
	}
	return arg
}

func literals(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = literal(a)
	}
	return out
}
