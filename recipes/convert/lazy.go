package convert

import (
	"regexp"
	"sync"
)

// lazy compiles an expression when it is first used: hob starts for many things
// that have nothing to do with other tools' files.
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
