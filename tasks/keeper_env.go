package tasks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"hob/sweep"
)

// environment is what the command gets: the spec's, without what belongs to
// other terminals and processes, and with the run's marker.
//
// TMUX and TMUX_PANE never come from the caller, who may sit in a tmux of their
// own. A shell gets those of its pane, since the person in it expects `tmux
// split-window` and `hob attach` to work; a server or job gets none, so that a
// program that drives tmux does not land on hob's server. TERM is the pane's:
// the pane draws what the command sends.
func environment(s Spec, home string, getenv func(string) string) []string {
	set := []string{
		"HOB_RUN=" + s.Run,
		"HOB_TASK=" + s.Task,
		"HOB_RUN_ID=" + s.RunID,
		"HOB_HOME=" + home,
		"SPT_NOENV=1", // Python's setproctitle else overwrites the environment, and the marker with it
		"PWD=" + s.Dir,
		"TERM=" + orElse(getenv("TERM"), "screen"),
	}
	if s.Kind == sweep.Shell {
		for _, name := range []string{"TMUX", "TMUX_PANE"} {
			if v := getenv(name); v != "" {
				set = append(set, name+"="+v)
			}
		}
	}
	drop := map[string]bool{"TMUX": true, "TMUX_PANE": true, "OLDPWD": true}
	for _, kv := range set {
		drop[varName(kv)] = true
	}
	return append(lastOfEach(s.Env, drop), set...)
}

// lastOfEach keeps the last value of every variable that is not dropped.
func lastOfEach(env []string, drop map[string]bool) []string {
	last := map[string]int{}
	for i, kv := range env {
		last[varName(kv)] = i
	}
	var out []string
	for i, kv := range env {
		if name := varName(kv); name != "" && !drop[name] && last[name] == i && strings.Contains(kv, "=") {
			out = append(out, kv)
		}
	}
	return out
}

func varName(kv string) string {
	name, _, _ := strings.Cut(kv, "=")
	return name
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// valueOf is the value of a variable in an environment.
func valueOf(env []string, name string) string {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// startError is why a command could not be started, with the exit code that a
// shell would give: 127 not found, 126 found and not executable.
type startError struct {
	code int
	err  error
}

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// resolve finds the program of a command: in PATH of its own environment,
// relative paths from its own folder.
func resolve(argv0, dir string, env []string) (string, error) {
	if argv0 == "" {
		return "", &startError{127, errors.New("the command is empty")}
	}
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return "", &startError{126, fmt.Errorf("folder %s: %w", dir, notFolder(err))}
	}
	if strings.Contains(argv0, "/") {
		path := inDir(dir, argv0)
		return path, canExecute(path)
	}
	var denied error
	for _, p := range filepath.SplitList(valueOf(env, "PATH")) {
		path := filepath.Join(inDir(dir, p), argv0)
		err := canExecute(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && denied == nil {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", &startError{127, fmt.Errorf("%s: command not found in PATH (%s)", argv0, valueOf(env, "PATH"))}
}

func notFolder(err error) error {
	if err == nil {
		return syscall.ENOTDIR
	}
	return errors.Unwrap(err)
}

func inDir(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func canExecute(path string) error {
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return &startError{127, fmt.Errorf("%s: %w", path, fs.ErrNotExist)}
	case err != nil:
		return &startError{126, err}
	case fi.IsDir():
		return &startError{126, fmt.Errorf("%s is a folder", path)}
	case fi.Mode()&0o111 == 0:
		return &startError{126, fmt.Errorf("%s is not executable", path)}
	}
	return nil
}

// execError words a failed fork or exec of a program that is there.
func execError(path string, err error) *startError {
	switch {
	case errors.Is(err, syscall.ENOENT):
		err = fmt.Errorf("%s cannot be executed: the interpreter or loader that it names is missing: %w", path, err)
	case errors.Is(err, syscall.ENOEXEC):
		err = fmt.Errorf("%s cannot be executed: it is no program for this machine, and has no #! line: %w", path, err)
	case errors.Is(err, syscall.E2BIG):
		err = fmt.Errorf("%s cannot be executed: its arguments and environment are too long: %w", path, err)
	default:
		err = fmt.Errorf("%s cannot be executed: %w", path, err)
	}
	return &startError{126, err}
}
