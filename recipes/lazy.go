package recipes

import (
	"regexp"
	"sync"
)

// pattern is an expression that is compiled when it is first used.
type pattern func() *regexp.Regexp

// lazy compiles an expression when it is first used: every keeper and every
// `hob ps` would else pay for all of them, in memory and at its start.
func lazy(expr string) pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
