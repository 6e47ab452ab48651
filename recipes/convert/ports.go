package convert

import (
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"hob/recipes"
)

// distinct sees to it that no two servers have one port. There what runs at other
// times, or on the same port by mistake, may share one; hob refuses that.
func (d *draft) distinct(r *reader) {
	taken := map[int]string{}
	for _, t := range d.tasks {
		port, said := t.portNumber()
		if port == 0 {
			continue
		}
		other := taken[port]
		if other == "" {
			taken[port] = t.name
			continue
		}
		if t.rebind(port, said) {
			r.drop(t.line, t.name, fmt.Sprintf("port %d: %s has it; any free one now", port, other))
			continue
		}
		t.forget("port", "ready", "engine", "host")
		r.drop(t.line, t.name, fmt.Sprintf("port %d: %s has it, and the command does not show how to say another", port, other))
		t.about = append(t.about, fmt.Sprintf("It listens on port %d as %s does: give it one of its own, and say it here.", port, other))
	}
}

// portNumber is the port that hob would take the task to have.
func (t *task) portNumber() (port int, said bool) {
	if n := t.get("port"); n != nil {
		k, _ := strconv.Atoi(n.Value)
		return k, true
	}
	if n := t.get("engine"); n != nil {
		return recipes.EnginePort(n.Value), false
	}
	return 0, false
}

// rebind has the command take whichever port hob gives it, and reports whether
// that could be done.
func (t *task) rebind(port int, said bool) bool {
	c := t.get("command")
	if c == nil { // the engine's own, which names the port
		t.set("port", plain("auto"))
		return true
	}
	if c.Kind != yaml.SequenceNode || !said {
		return false
	}
	found := false
	for i, w := range c.Content {
		number := strconv.Itoa(port)
		if text := portFlag().ReplaceAllStringFunc(w.Value, func(m string) string {
			if head, ok := strings.CutSuffix(m, number); ok {
				return head + "${port}"
			}
			return m
		}); text != w.Value {
			w.Value, found = text, true
			continue
		}
		switch {
		case w.Value == number && i > 0 && strings.HasPrefix(c.Content[i-1].Value, "-"):
			w.Value, found = "${port}", true
		case strings.Contains(w.Value, "${port}"):
			found = true
		}
	}
	if found {
		t.set("port", plain("auto"))
	}
	return found
}

// portFlag is a port as an option says it, within a text or as one word.
var portFlag = lazy(`--(?:server-)?port[ =][0-9]+`)

func (t *task) forget(keys ...string) {
	var kept []field
	for _, f := range t.fields {
		drop := false
		for _, k := range keys {
			drop = drop || f.key == k
		}
		if !drop {
			kept = append(kept, f)
		}
	}
	t.fields = kept
}
