package child

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Limits are what a command inherits of whoever starts it besides environment,
// folder and files: the umask ("umask": "0027"), the resource limits, each as
// SOFT:HARD ("nofile": "1024:unlimited"), and on Linux its nice level ("priority":
// "10") and the processors that it may run on ("cpus": "0-3+8"). What is not known is
// not there.
//
// A command in a pane would inherit those of the tmux server, and so of whoever
// started that first; people expect their own shell's.
type Limits map[string]string

// Names of limits that are treated in their own way.
const (
	umaskName  = "umask"
	nofileName = "nofile"
	unlimited  = "unlimited"

	priorityName = "priority" // "nice" is a resource limit, of how far it may be raised
	cpusName     = "cpus"
)

// lowFiles is the number of open files below which a limit is not even for a
// moment put on a process of ours, which has some open itself.
const lowFiles = 256

// Beyond are the limits that differ from what a command of ours gets anyway, and
// the soft limit of open files to give it by [Command.NoFile] (0: none). Go
// raises that one in every program of ours, so that it always differs.
func (l Limits) Beyond(own Limits) (rest Limits, nofile uint64) {
	for name, want := range l {
		have, known := own[name]
		if !known || have == want && name != nofileName {
			continue
		}
		if name == nofileName {
			soft, hard, err := bounds(want)
			if _, most, _ := bounds(have); err == nil && hard == most && soft >= lowFiles && soft <= most {
				nofile = soft
				continue
			}
		}
		if rest == nil {
			rest = Limits{}
		}
		rest[name] = want
	}
	return rest, nofile
}

// Soft is the soft limit of a resource, and whether it is known.
func (l Limits) Soft(name string) (uint64, bool) {
	soft, _, err := bounds(l[name])
	return soft, err == nil
}

// Hard is the hard one: what a program may raise its own to.
func (l Limits) Hard(name string) (uint64, bool) {
	_, hard, err := bounds(l[name])
	return hard, err == nil
}

// text is for the command line of With: names in order.
func (l Limits) text() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(l)) {
		words = append(words, name+"="+l[name])
	}
	return strings.Join(words, ",")
}

func limitsOf(text string) Limits {
	l := Limits{}
	for word := range strings.SplitSeq(text, ",") {
		if name, value, ok := strings.Cut(word, "="); ok {
			l[name] = value
		}
	}
	return l
}

// Through is the command line of a program of ours, self, that takes the limits
// and then becomes the command: see [With].
func (l Limits) Through(self, path string, argv []string) []string {
	return append([]string{self, WithVerb, l.text(), path}, argv...)
}

// WithVerb is the argument by which a program of ours is to call [With] with the
// arguments that follow it.
const WithVerb = "with"

// bounds reads SOFT:HARD.
func bounds(text string) (soft, hard uint64, err error) {
	a, b, ok := strings.Cut(text, ":")
	if !ok {
		return 0, 0, fmt.Errorf("%.60q is not SOFT:HARD", text)
	}
	if soft, err = amount(a); err == nil {
		hard, err = amount(b)
	}
	return soft, hard, err
}

func amount(text string) (uint64, error) {
	if text == unlimited {
		return infinity, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return min(n, infinity), err
}

func amountText(n uint64) string {
	if n >= infinity {
		return unlimited
	}
	return strconv.FormatUint(n, 10)
}

// settle is what can be had of a wanted limit where the hard one cannot be raised.
func settle(soft, hard, most uint64) (uint64, uint64) {
	hard = min(hard, most)
	return min(soft, hard), hard
}
