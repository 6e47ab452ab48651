package tasks

import (
	"errors"
	"strings"

	"hob/recipes"
)

// Why is what is known of how a task is. Its JSON is a contract.
type Why struct {
	Run      string            `json:"run"`
	Task     string            `json:"task"`
	Engine   string            `json:"engine"`
	State    State             `json:"state"`
	Note     string            `json:"note"`     // why it is in that state, as the evidence has it
	Findings []recipes.Finding `json:"findings"` // what its log means
	Lines    []string          `json:"lines"`    // the last of its log
	Log      string            `json:"log"`

	Err    error `json:"-"` // a record that cannot be trusted
	failed bool  // its after_stop
}

// Name of the task.
func (w Why) Name() Name { return Name{w.Run, w.Task} }

// WhyOptions of Why.
type WhyOptions struct {
	EngineDir string // a person's own engines, whose rules count first
	Troubled  bool   // only tasks that are not as they should be
}

// How much of the end of a log is searched. A server of many workers ends in many
// tracebacks, of which the first has the reason.
const (
	whyBytes = 256 << 10
	whyLines = 2000
	whyShown = 5
)

// Why says of each task of the selection why it is as it is.
func (m *Manager) Why(sel []Selection, o WhyOptions) ([]Why, error) {
	list := []Why{}
	var errs []error
	for _, s := range sel {
		errs = append(errs, s.Err)
		for _, task := range s.Tasks {
			w, err := m.whyOf(s.Run.Task(task), o.EngineDir, o.Troubled)
			errs = append(errs, err)
			if !o.Troubled || !w.Fine() {
				list = append(list, w)
			}
		}
	}
	return list, errors.Join(errs...)
}

// WhyOf is Why of one task. What cannot be read is not known.
func (m *Manager) WhyOf(n Name, engineDir string) Why {
	w, _ := m.whyOf(m.Store.Run(n.Run).Task(n.Task), engineDir, false)
	return w
}

func (m *Manager) whyOf(t *TaskDir, engineDir string, troubled bool) (Why, error) {
	seen := m.look(t)
	d := Derive(seen)
	w := Why{Run: t.Run, Task: t.Name, State: d.State, Note: d.Note,
		Findings: []recipes.Finding{}, Lines: []string{}, Log: t.LogPath(), Err: errors.Join(seen.Trouble, m.amiss(t, seen))}
	w.failed = d.HookFailed
	if seen.Task != nil {
		w.Engine = seen.Task.Engine
	}
	if troubled && w.Fine() {
		return w, w.Err
	}
	lines := tail(t.LogPath(), whyBytes, whyLines)
	if !w.Fine() {
		w.Findings = recipes.DiagnoseIn(engineDir, w.Engine, lines)
	}
	if len(w.Findings) == 0 {
		w.Findings = append(w.Findings, ofSignal(seen.Exit)...)
	}
	for _, line := range lines[max(0, len(lines)-whyShown):] {
		w.Lines = append(w.Lines, strings.TrimRight(line, "\r"))
	}
	return w, w.Err
}

// Fine reports whether the task is as it should be.
func (w Why) Fine() bool {
	switch w.State {
	case Stopped, Stopping, Exited, Completed:
		return !w.failed
	case Starting, Up, Ready:
		return w.Note == ""
	}
	return false
}

// ofSignal explains a command that was ended by a signal and left no word.
func ofSignal(e *Exit) []recipes.Finding {
	if e == nil {
		return nil
	}
	f := recipes.Finding{Line: "ended by " + e.Signal, Source: "https://man7.org/linux/man-pages/man7/signal.7.html"}
	switch e.Signal {
	case "KILL":
		f.Cause, f.Fix = "something killed it by force; where hob did not, it is mostly the kernel, for want of memory", "look for it: dmesg | grep -i 'out of memory'; then give it less to load, or needs: {memory: …} to be told before"
	case "ILL":
		f.Cause, f.Fix = "the program was built for another processor than this one", "install a build without AVX-512 or what else this one lacks (lscpu names what it has)"
	case "BUS":
		f.Cause, f.Fix = "memory that it had been given was not there: mostly /dev/shm is full or too small", "look at df -h /dev/shm; in a container give it --shm-size or --ipc=host"
	case "SEGV", "ABRT", "FPE":
		f.Cause, f.Fix = "the program failed by a fault of its own", "try another version of it, and its own log for the lines before"
	default:
		return nil
	}
	return []recipes.Finding{f}
}
