package recipes

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// rule says what may stand at one place of a file. One table of rules checks
// recipes, gives the hints, makes the JSON Schema and prints the key reference:
// so these cannot disagree.
type rule struct {
	says     string // what it must be: "a duration, like 30s or 5m"
	forms    form
	words    []string            // the only texts there are
	check    func(string) error  // of a scalar, with its variables filled in
	pattern  string              // of a text, for the schema: no stricter than check
	min, max int                 // of a number, for the schema
	item     *rule               // of a sequence
	keys     []key               // of a mapping with keys of ours
	each     *rule               // of a mapping with names of the person's own
	named    pattern             // what such names look like
	namesAre string              // the same in words
	oneOf    []string            // keys that exclude each other
	with     map[string][]string // keys that only mean something beside one of others
	raw      bool                // filled in by whoever reads it, not by the walk
	secret   bool                // values below are never shown
	plain    bool                // ${port} and ${model} do not mean the task's own here
	task     string              // the kind of task that each is
	foreign  map[string]string   // what others call it → the hint
}

// key of a mapping.
type key struct {
	name     string
	rule     *rule
	doc      string // for the reference and the schema
	standard string // what holds without it
}

func (r *rule) key(name string) *key {
	for i := range r.keys {
		if r.keys[i].name == name {
			return &r.keys[i]
		}
	}
	return nil
}

// Names of runs and tasks.
const nameExpr = `^[a-z0-9][a-z0-9_-]{0,40}$`

var taskName = lazy(nameExpr)

const taskNameSays = "a name is a to z, 0 to 9, _ and -, at most 41 of them, and begins with a letter or number"

var (
	varsName = lazy(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	envName  = lazy(`^[A-Za-z_][A-Za-z0-9_.]*$`)
)

var (
	anyText    = &rule{says: "text", forms: text, check: notEmpty, pattern: `\S`}
	word       = &rule{says: "text or a number", forms: scalars}
	words_     = &rule{says: "a list of words", forms: sequence, item: word}
	yesNo      = &rule{says: "true or false", forms: boolean}
	taskRef    = &rule{says: "the name of a task", forms: text, check: validName, pattern: nameExpr}
	duration   = &rule{says: "a duration, like 30s or 5m", forms: text, check: validDuration, pattern: `^([0-9]*\.?[0-9]+(ns|us|µs|ms|s|m|h))+$|^0$`}
	size       = &rule{says: "a size, like 18GiB or 500MB", forms: text, check: validSize, pattern: `^[0-9][0-9., ]*[A-Za-z]*$`}
	count      = &rule{says: "a number, 0 or more", forms: integer, check: validCount, max: 1_000_000}
	positive   = &rule{says: "a number, 1 or more", forms: integer, check: validPositive, min: 1, max: 1_000_000}
	httpStatus = &rule{says: "a status, like 200", forms: integer, check: validStatus, min: 100, max: 599}
	expr       = &rule{says: "a regular expression", forms: text, check: validRegexp}
	httpPath   = &rule{says: "a path that begins with /", forms: text, check: validPath, pattern: `^/`}
	dirRule    = &rule{says: "a folder", forms: text, check: notEmpty, pattern: `\S`}
	modelRule  = &rule{says: "the name or path of a model", forms: text, check: notEmpty, pattern: `\S`, plain: true}
)

func notEmpty(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("empty")
	}
	return nil
}

func validName(s string) error {
	if !taskName().MatchString(s) {
		return errors.New(taskNameSays)
	}
	return nil
}

// validHeader refuses what no header can hold: a line break would begin another.
func validHeader(s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return errors.New("not on one line")
	}
	return notEmpty(s)
}

func validDuration(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > 366*24*time.Hour {
		return errors.New("not a duration")
	}
	return nil
}

func validSize(s string) error {
	if n, err := humanize.ParseBytes(s); err != nil || n > 1<<60 {
		return errors.New("not a size")
	}
	return nil
}

func validCount(s string) error {
	if n, err := strconv.Atoi(s); err != nil || n < 0 || n > 1_000_000 {
		return errors.New("not a count")
	}
	return nil
}

func validPositive(s string) error {
	if s == "0" {
		return errors.New("not a count")
	}
	return validCount(s)
}

func validStatus(s string) error {
	if n, err := strconv.Atoi(s); err != nil || n < 100 || n > 599 {
		return errors.New("not a status")
	}
	return nil
}

func validReplicas(s string) error {
	if n, err := strconv.Atoi(s); err != nil || n < 1 || n > maxReplicas {
		return errors.New("not a count")
	}
	return nil
}

func validPort(s string) error {
	if n, err := strconv.Atoi(s); s != "auto" && (err != nil || n < 1 || n > 65535) {
		return errors.New("not a port")
	}
	return nil
}

func validRegexp(s string) error {
	if _, err := regexp.Compile(s); err != nil {
		return err
	}
	return notEmpty(s)
}

func validPath(s string) error {
	if !strings.HasPrefix(s, "/") || strings.ContainsAny(s, " \t\r\n") {
		return errors.New("not a path")
	}
	return nil
}

const gpuExpr = `^(?:[0-9]{1,3}|(?:GPU|MIG)-[0-9A-Za-z/-]{4,80})$`

var gpuWord = lazy(gpuExpr)

func validGPU(s string) error {
	if !gpuWord().MatchString(s) {
		return errors.New("not a GPU")
	}
	return nil
}

func validGPUs(s string) error {
	if s == "all" || s == "none" || s == "auto" {
		return nil
	}
	for one := range strings.SplitSeq(s, ",") {
		if err := validGPU(strings.TrimSpace(one)); err != nil {
			return err
		}
	}
	return nil
}

// validWindow refuses what tmux would expand in a window's name, or write otherwise.
func validWindow(s string) error {
	if len([]rune(s)) > 100 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '#' || r == '\\' }) {
		return errors.New("not a window's name")
	}
	return notEmpty(s)
}

func validHost(s string) error {
	if s == "" || strings.ContainsAny(s, " \t\r\n/") {
		return errors.New("not a host")
	}
	return nil
}
