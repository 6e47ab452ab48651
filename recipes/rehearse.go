package recipes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// rehearsed reports whether something stands in for the task: the pilot for its
// engine, or what it says itself. All else runs as it is.
func (l *loader) rehearsed(d *draft) bool {
	return l.opts.Rehearse && (d.node.has("rehearse") || d.engine != nil && d.engine.name != pilotEngine)
}

// piloted reports whether it is the pilot that stands in for the task.
func (l *loader) piloted(d *draft) bool { return l.rehearsed(d) && !d.node.has("rehearse") }

const pilotEngine = "pilot"

// rehearsal is the pilot's command line in the shape of the task's engine. What
// the engine would have been started with stands after "--": the pilot takes from
// it what shapes the tree (tensor parallelism).
func (l *loader) rehearsal(d *draft) []string {
	port := "${port}"
	if p, ok := d.own.own["port"]; ok {
		port = p
	}
	shape := d.engine.tree.get("rehearse").words()
	if d.kind == "job" { // what it would do is only named
		return append(shape, d.task.Command...)
	}
	model := d.node.get("model").or(d.name)
	argv := []string{l.opts.self(), "pilot", "serve", "--host", d.own.own["host"], "--port", port, "--model", model}
	argv = append(argv, shape...)
	for _, line := range d.engine.tree.get("says").words() {
		argv = append(argv, "--ready-line", line)
	}
	for _, name := range d.engine.tree.get("api_key").get("env").words() {
		argv = append(argv, "--key-env="+name)
	}
	for _, name := range d.engine.tree.get("api_key").get("flags").words() {
		argv = append(argv, "--key-flag="+name)
	}
	if path := d.node.get("ready").get("http").str(); plainRoute().MatchString(path) {
		argv = append(argv, "--also", path)
	}
	return append(append(argv, "--"), d.task.Command...)
}

// plainRoute is a path that the pilot can be told to answer.
var plainRoute = lazy(`^(/[A-Za-z0-9._-]+)+$`)

// rehearsable leaves out of a task's readiness what its rehearsal cannot show, and
// says so: the pilot answers and logs in words of its own.
func (l *loader) rehearsable(d *draft, r *Ready) {
	if !l.piloted(d) {
		return
	}
	var left []string
	if r.Status != 0 {
		left = append(left, "status")
	}
	if r.Body != "" {
		left = append(left, "body")
	}
	if len(r.JSON) > 0 {
		left = append(left, "json")
	}
	if len(left) > 0 {
		r.Status, r.Body, r.JSON = 0, "", nil
		l.note("%s: ready's %s: not rehearsed, the pilot answers in words of its own", d.name, strings.Join(left, " and "))
	}
	says := d.engine.tree.get("says").words()
	if len(says) == 0 {
		says = []string{"ready"}
	}
	re, err := regexp.Compile(r.Log)
	if r.Log == "" || err != nil || slices.ContainsFunc(says, re.MatchString) {
		return
	}
	l.note("%s: ready's log: not rehearsed, of what is known of %s, which the pilot says (%s), nothing matches %q", d.name, d.engine.name, quotedList(says), r.Log)
	r.Log = ""
	if engine := d.engine.tree.get("ready"); engine.get("http") != nil {
		r.HTTP = engine.get("http").str()
	}
}

func quotedList(lines []string) string {
	var all []string
	for _, line := range lines {
		all = append(all, fmt.Sprintf("%q", line))
	}
	return strings.Join(all, ", ")
}

func (l *loader) note(format string, args ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}
