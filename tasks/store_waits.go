package tasks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"hob/identity"
	"hob/identity/flock"
)

// silentWait is how long a wait for another hob needs no word.
const silentWait = time.Second

// Waiting is a wait for a lock that somebody else has had for longer than a moment.
type Waiting struct {
	Path string // of the lock
	Who  string // "hob down, pid 4711"; "" when that cannot be told
}

func (w Waiting) String() string {
	if w.Who == "" {
		return "waits for whoever holds " + w.Path + ": who that is could not be told"
	}
	return "waits for " + w.Who + ", which holds " + w.Path
}

type waitsKey struct{}

// TellWaits is ctx for whoever wants to be told of each wait for a lock under it, once a
// wait. Nil is for waits that nobody is held up by.
func TellWaits(ctx context.Context, tell func(Waiting)) context.Context {
	return context.WithValue(ctx, waitsKey{}, tell)
}

// tellWait tells of a wait for the lock on a file.
type tellWait func(f *os.File, path string)

// silently is for a lock that is held no longer than a write takes.
func silently(*os.File, string) {}

// tellOnce is what tells of a wait that may begin anew, as when the lock was moved.
func tellOnce(ctx context.Context) tellWait {
	tell, _ := ctx.Value(waitsKey{}).(func(Waiting))
	var once sync.Once
	return func(f *os.File, path string) {
		if tell != nil {
			once.Do(func() { tell(Waiting{Path: path, Who: holder(f)}) })
		}
	}
}

// holder is who holds the lock on a file, "" when that cannot be told.
func holder(f *os.File) string {
	pid, err := flock.Holder(f)
	if err != nil {
		return ""
	}
	who := fmt.Sprintf("pid %d", pid)
	h, err := identity.Local()
	if err != nil {
		return who
	}
	p, err := h.Open(pid)
	if err != nil {
		return "" // it has just ended
	}
	defer p.Close()
	row, err := p.Read(identity.WantArgs)
	if err != nil {
		return who
	}
	if what := program(row.Args); what != "" {
		who = what + ", " + who
	}
	if row.State == 'T' {
		who += fmt.Sprintf(" (stopped: kill -CONT %d lets it go on)", pid)
	}
	return who
}

// program is a command line as it can be shown to anybody: its program, and the verb
// where it is a hob.
func program(args []string) string {
	if len(args) == 0 {
		return ""
	}
	name := filepath.Base(args[0])
	if name != "hob" && name != filepath.Base(os.Args[0]) {
		return name
	}
	for i := 1; i < len(args); i++ {
		switch word := args[i]; {
		case word == "--home":
			i++
		case !strings.HasPrefix(word, "-"):
			return name + " " + word
		}
	}
	return name
}
