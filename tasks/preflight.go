package tasks

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"hob/recipes"
)

// ground is what preflight has seen of the host.
type ground struct {
	program func(name, dir, path string) error // is there such a command
	folder  func(dir string) error
	memory  *uint64          // free bytes; nil when it could not be read
	held    map[int]string   // ports that somebody listens on, and who
	claimed map[int]Name     // ports of tasks of other runs
	doubt   map[int]string   // ports that may be such, in words
	mine    map[int]struct{} // ports that tasks of this run, left alone, hold
	hungry  func() holds     // who has the most memory
	disk    func(dir string) (free uint64, fs string, err error)
	host    hostFacts
}

// want is what preflight needs to know of a task that is to start.
type want struct {
	task recipes.Task
	argv []string
	env  []string
	port int
	made bool // a job that it waits for may make what it needs
}

// preflight names everything that would keep the tasks from starting, and what a
// person should know that does not.
func preflight(run string, wants []want, g ground) (notes []string, err error) {
	var errs []error
	var memory int64
	for _, w := range wants {
		errs = append(errs, checkPrograms(w, g), checkPort(run, w, g))
		if err := g.folder(w.task.Dir); err != nil {
			errs = append(errs, &Problem{Msg: fmt.Sprintf("%s: its folder: %v", w.task.Name, err), Tip: "dir in the recipe names it"})
		}
		notes = append(notes, g.doubt[w.port])
		note, err := checkModel(w)
		notes, errs = append(notes, note), append(errs, err)
		memory += w.task.Needs.Memory
	}
	note, err := checkMemory(memory, g)
	notes, errs = append(notes, note), append(errs, err)
	more, err := checkDisk(wants, g)
	notes, errs = append(notes, more...), append(errs, err)
	notes = append(notes, checkExpects(wants, g.host)...)
	return slices.DeleteFunc(notes, func(s string) bool { return s == "" }), errors.Join(errs...)
}

func checkPrograms(w want, g ground) error {
	names := slices.Clone(w.task.Needs.Commands)
	if len(w.argv) > 0 && !slices.Contains(names, w.argv[0]) {
		names = append(names, w.argv[0])
	}
	for _, h := range []*recipes.Hook{w.task.Before, w.task.AfterReady, w.task.AfterStop} {
		if h != nil && len(h.Command) > 0 && !slices.Contains(names, h.Command[0]) {
			names = append(names, h.Command[0])
		}
	}
	var errs []error
	for _, name := range names {
		if (w.made || w.task.Before != nil) && strings.ContainsRune(name, filepath.Separator) {
			continue // a job, or before, may make it
		}
		if err := g.program(name, w.task.Dir, lookup(w.env, "PATH")); err != nil {
			errs = append(errs, &Problem{
				Msg: fmt.Sprintf("%s needs the command %q: %v", w.task.Name, name, err),
				Tip: "install it, name its path in the recipe, or try the recipe with --rehearse",
			})
		}
	}
	return errors.Join(errs...)
}

func checkPort(run string, w want, g ground) error {
	if w.port == 0 || w.task.Port.Auto {
		return nil
	}
	if other, ok := g.claimed[w.port]; ok {
		return &Problem{
			Msg: fmt.Sprintf("port %d of %s/%s belongs to %s", w.port, run, w.task.Name, other),
			Tip: "hob down " + other.String() + ", or give one of them another port (port: auto)",
		}
	}
	if _, ok := g.mine[w.port]; ok {
		return nil
	}
	if who, ok := g.held[w.port]; ok {
		return &Problem{
			Msg: fmt.Sprintf("port %d of %s/%s is held by %s", w.port, run, w.task.Name, who),
			Tip: "end it, or give the task another port (port: auto)",
		}
	}
	return nil
}

func checkMemory(need int64, g ground) (note string, err error) {
	switch {
	case need == 0:
		return "", nil
	case g.memory == nil:
		return fmt.Sprintf("the tasks need %s of memory, and how much is free could not be read", Bytes(need)), nil
	case uint64(need) <= *g.memory:
		return "", nil
	}
	p := &Problem{
		Msg: fmt.Sprintf("the tasks need %s of memory, and %s are free", Bytes(need), Bytes(int64(*g.memory))),
		Tip: "end something, or lower needs.memory in the recipe",
	}
	if g.hungry != nil {
		if hs := g.hungry(); len(hs) > 0 {
			p.Msg += "; most is held by " + hs.String()
			p.Tip = hs.advice(p.Tip)
		}
	}
	return "", p
}

// findProgram looks a command up as the task will: by its own PATH, and from its
// own folder.
func findProgram(name, dir, path string) error {
	if strings.ContainsRune(name, filepath.Separator) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return executable(name)
	}
	for _, folder := range filepath.SplitList(path) {
		if executable(filepath.Join(cmp.Or(folder, dir), name)) == nil {
			return nil
		}
	}
	return errors.New("it is not on PATH")
}

func executable(path string) error {
	_, err := exec.LookPath(path)
	if pathErr, ok := errors.AsType[*exec.Error](err); ok {
		return pathErr.Err
	}
	return err
}

func folderExists(dir string) error {
	fi, err := os.Stat(dir)
	if err == nil && !fi.IsDir() {
		err = fmt.Errorf("%s is not a folder", dir)
	}
	return err
}

// Bytes is a size for people: "1.5 GiB".
func Bytes(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, i := float64(n)/unit, 0
	for ; value >= unit && i < 4; i++ {
		value /= unit
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTP"[i])
}
