package pilot

import (
	"regexp"
	"sync"
)

// lazy compiles an expression when it is first used: every keeper and every
// `hob ps` would else pay for all of them, in memory and at its start.
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
