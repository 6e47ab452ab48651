package convert

import (
	"path"
	"strings"
)

// folder is a folder as the recipe names it: from where the recipe will stand.
func (r *reader) folder(s string) string {
	switch {
	case s == "" && r.away == "":
		return ""
	case s == "" || s == ".":
		return r.away
	case strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") || strings.HasPrefix(s, string(refOpen)):
		return s
	case r.away == "":
		return path.Clean(s)
	}
	return path.Join(r.away, s)
}

// within is a folder from another one, or from where the recipe will stand.
func (r *reader) within(base, s string) string {
	if base == "" {
		return r.folder(s)
	}
	if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") || strings.HasPrefix(s, string(refOpen)) {
		return s
	}
	return strings.TrimSuffix(base, "/") + strings.TrimSuffix("/"+path.Clean(s), "/.")
}

// jobBefore makes a job of what runs before everything else.
func (r *reader) jobBefore(d *draft, name, dir string, lines []string, waiting []string) {
	t := d.add("jobs", name)
	t.about = append(t.about, "Ran before all else; what it leaves behind is ended with it.")
	t.set("command", literal(strings.Join(lines, "\n"))).set("shell", yes())
	if dir != "" {
		t.set("dir", literal(dir))
	}
	for _, one := range d.tasks {
		for _, w := range waiting {
			if one.name == w {
				one.wait(t.name)
			}
		}
	}
}

// wait adds a task to those that must be there first.
func (t *task) wait(name string) {
	if n := t.get("depends_on"); n != nil {
		n.Content = append(n.Content, plain(name))
		return
	}
	t.set("depends_on", words([]string{name}))
}
