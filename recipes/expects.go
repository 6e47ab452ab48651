package recipes

import (
	"slices"
	"strconv"
	"strings"
)

// Expect is what an engine expects of the host, and can be told beforehand: that it
// is not there is worth a note, and keeps nothing from starting.
type Expect struct {
	Engine  string `json:"engine"`
	What    string `json:"what"`     // cuda, shm, files, memlock
	AtLeast string `json:"at_least"` // a version, a size, a number, or unlimited
}

var expectsRule = &rule{
	says: "a list of what it expects", forms: sequence, item: &rule{
		says: "a mapping, like {what: shm, at_least: 1GiB}", forms: mapping, keys: []key{
			{"what", &rule{says: "cuda, shm, files or memlock", forms: text, words: []string{"cuda", "shm", "files", "memlock"}}, "the CUDA version that the driver runs, free space in /dev/shm, open files, locked memory", ""},
			{"at_least", &rule{says: "a version, a size, a number, or unlimited", forms: scalars, check: validExpected}, "how much", ""},
			{"when", words_, "flags that make it so: with a number above 1 behind them, or with none", "always"},
		},
	},
}

func validExpected(s string) error {
	if s == "unlimited" {
		return nil
	}
	return validSize(s) // a version reads as one
}

// expects are what the task's engine expects of the host, as the task starts it.
func (l *loader) expects(d *draft) (list []Expect) {
	if d.engine == nil || l.rehearsed(d) {
		return nil
	}
	n := d.engine.tree.get("expects")
	if n == nil {
		return nil
	}
	for _, item := range n.items {
		if item.get("what").str() == "cuda" && d.task.GPUs == "none" {
			continue
		}
		when := item.get("when").words()
		if len(when) == 0 || flagged(d.task.Command, when) {
			list = append(list, Expect{d.engine.name, item.get("what").str(), item.get("at_least").str()})
		}
	}
	return list
}

// flagged reports whether a command line has one of the flags, and not with 1 or 0.
func flagged(argv, flags []string) bool {
	value, found := FlagValue(argv, flags)
	n, err := strconv.Atoi(value)
	return found && (err != nil || n > 1)
}

// FlagValue finds the first of some flags in a command line, and what stands behind
// it: after an equals sign, or as the next word, which may be another flag.
func FlagValue(argv, flags []string) (value string, found bool) {
	for i, arg := range argv {
		name, value, joined := strings.Cut(arg, "=")
		if !slices.Contains(flags, name) {
			continue
		}
		if !joined && i+1 < len(argv) {
			value = argv[i+1]
		}
		return value, true
	}
	return "", false
}
