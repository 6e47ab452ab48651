package recipes

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Defaults of the language; the tables say them to people.
const (
	hookTimeout = 5 * time.Minute

	stopHookTimeout = time.Minute // whoever stops a task waits for it

	stopGrace     = 30 * time.Second
	stopTermGrace = 5 * time.Second
)

// What readiness, restart and retries come to when the recipe does not say; the keeper knows
// no others.
const (
	ReadyTimeout  = 5 * time.Minute        // to become ready
	ReadyInterval = 250 * time.Millisecond // between two looks before that, and less at first

	RestartMax  = 3           // ends in a row
	RestartWait = time.Second // before the first, doubled each time
)

// finish makes the task of a draft that was checked.
func (l *loader) finish(d *draft) {
	t := &d.task
	t.Name, t.Kind, t.Line, t.Column = d.name, d.kind, d.key.line, d.key.col
	if d.engine != nil {
		t.Engine = d.engine.name
	}
	t.Model = l.home(d.node.get("model").str())
	t.ModelAt = l.modelAt(d)
	t.DependsOn, t.Replica, t.Groups = []Dependency{}, d.node.replica, d.node.get("groups").words()
	if t.Host = d.node.get("host").str(); d.engine != nil {
		t.Host = d.own.own["host"]
	}
	if t.Dir = l.path(d.node.get("dir"), d.node.src.dir); l.rehearsed(d) && !isDir(t.Dir) {
		t.Dir = d.node.src.dir // it is on the machine that is rehearsed for
	}
	l.command(d)
	l.slips(d)
	if instead := l.words(d.node.get("rehearse"), d.scope); l.rehearsed(d) && instead != nil {
		t.Command = instead
	} else if l.rehearsed(d) {
		t.Command = l.rehearsal(d)
	}
	l.hooks(d)
	l.gpus(d)
	l.env(d)
	t.Ready = l.ready(d)
	t.Stop = l.stop(d)
	t.Restart, t.Expects = restart(d), l.expects(d)
	if !l.rehearsed(d) {
		t.Needs = needs(l.fact(d, "needs", needsRule))
	}
	l.checkTask(d)
}

// hooks reads the commands that go with a task's life. A rehearsal has none: they
// are for the machine that is rehearsed for.
func (l *loader) hooks(d *draft) {
	before, ready, stop := l.hook(d, "before", hookTimeout), l.hook(d, "after_ready", hookTimeout), l.hook(d, "after_stop", stopHookTimeout)
	if !l.rehearsed(d) {
		d.task.Before, d.task.AfterReady, d.task.AfterStop = before, ready, stop
	}
}

func (l *loader) hook(d *draft, key string, timeout time.Duration) *Hook {
	n := d.node.get(key)
	if n == nil {
		return nil
	}
	what := n
	if n.form == mapping {
		timeout = n.get("timeout").duration(timeout)
		if what = n.get("command"); what == nil {
			if !n.strange && !n.anyBad("command") {
				l.errs.add(n, "add command: what it runs", "%s has nothing to run", key)
			}
			return nil
		}
	}
	return &Hook{l.words(what, d.scope), timeout}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// fact is what the task says about something, laid over what its engine says.
func (l *loader) fact(d *draft, key string, r *rule) *node {
	var base *node
	if d.engine != nil {
		base = l.filled(d.engine.tree.get(key), d.own)
		if key == "needs" && base != nil && d.node.has("command") {
			base = base.without("commands") // the engine's program is not what runs
		}
	}
	return merge(base, d.node.any(key), r)
}

// checkTask is what no table can say.
func (l *loader) checkTask(d *draft) {
	t := &d.task
	if len(t.Command) == 0 && !d.node.bad && !d.node.strange && !d.node.anyBad("engine", "command", "shell", "args") {
		l.errs.add(d.key, "say engine or command", "%s %s has nothing to run", d.kind, d.name)
	}
	if d.engine != nil && d.engine.text("model", "required") == "required" && !d.node.has("model") && !d.node.has("command") && !d.node.anyBad("engine") {
		l.errs.add(d.key, "add model: NAME", "%s: the engine %s needs a model", d.name, d.engine.name)
	}
	if r := t.Ready; r != nil && (r.HTTP != "" || r.TCP || r.Completion) && t.Port == (Port{}) && !d.node.anyBad("port") {
		l.errs.add(d.node.any("ready"), "add port: auto, and ${port} where the command takes it", "%s has no port that could answer", d.name)
	}
}

// modelAt says where a model must be found before the task starts.
func (l *loader) modelAt(d *draft) string {
	switch model := d.task.Model; {
	case d.engine == nil || model == "" || l.rehearsed(d) || d.node.has("command"):
		return ""
	case modelForm(model) == "file":
		return "path"
	case strings.Count(model, "/") == 1:
		return d.engine.text("cache", "")
	}
	return ""
}

// home is a path with ~ written out, as a shell would: no program does.
func (l *loader) home(path string) string {
	if h := l.getenv("HOME"); h != "" && strings.HasPrefix(path, "~/") {
		return filepath.Join(h, path[1:])
	}
	return path
}

// path is a file or folder, from where its recipe stands.
func (l *loader) path(n *node, base string) string {
	p := n.str()
	if p == "~" || strings.HasPrefix(p, "~/") {
		home := l.getenv("HOME")
		if home == "" {
			l.errs.add(n, "write the whole path", "~ is nowhere: HOME is not set")
		}
		p = filepath.Join(home, p[1:])
	}
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(base, p)
}

func (l *loader) stop(d *draft) Stop {
	n := l.fact(d, "stop", stopRule)
	signal, detached := "TERM", "kill"
	if d.kind == "shell" {
		signal, detached = "HUP", "report"
	}
	return Stop{
		Signal: n.get("signal").or(signal), Detached: n.get("detached").or(detached),
		Grace: n.get("grace").duration(stopGrace), TermGrace: n.get("term_grace").duration(stopTermGrace),
		Spare: n.get("spare").words(),
	}
}

func restart(d *draft) Restart {
	r := Restart{Policy: "no", Backoff: RestartWait}
	if n := d.node.get("retries"); n != nil && n.number() > 0 {
		return Restart{Policy: "on-failure", Max: n.number(), Backoff: RestartWait}
	}
	n := d.node.get("restart")
	if n == nil {
		return r
	}
	if r.Policy = n.str(); n.form == mapping {
		r.Policy = n.get("policy").or("on-failure")
	}
	if r.Policy == "no" {
		return r
	}
	r.Max, r.Backoff = RestartMax, n.get("backoff").duration(RestartWait)
	if m := n.get("max"); m != nil {
		r.Max = m.number()
	}
	if r.Max == 0 { // to whoever starts it again 0 is "not said"
		return Restart{Policy: "no", Backoff: RestartWait}
	}
	return r
}

func needs(n *node) Needs {
	return Needs{Commands: n.get("commands").words(), Memory: n.get("memory").size(), GPUMemory: n.get("gpu_memory").size(), Disk: n.get("disk").size()}
}
