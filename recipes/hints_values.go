package recipes

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// hintText is for a text that its check refused.
func (r *rule) hintText(s string) string {
	switch r {
	case portRule:
		return hintPort(s)
	case duration:
		return hintDuration(s)
	case gpusRule, gpusRule.item:
		if m := gpuNamed().FindStringSubmatch(s); m != nil {
			return "write " + m[1]
		}
	case httpPath:
		return hintPath(s)
	}
	return ""
}

// gpuNamed is a GPU as frameworks call it.
var gpuNamed = lazy(`^(?i:cuda|gpu|device)[: =]?([0-9]{1,3})$`)

// hintDuration is a duration in the words of people.
func hintDuration(s string) string {
	m := inWords().FindStringSubmatch(strings.ToLower(s))
	if m == nil {
		return ""
	}
	return "write " + m[1] + m[2][:1]
}

var inWords = lazy(`^([0-9]+) ?(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)$`)

func hintPath(s string) string {
	if path := urlPath(s); path != "" {
		return "write the path alone: " + path
	}
	if !strings.ContainsAny(s, " \t\r\n:") && s != "" {
		return "write /" + s
	}
	return ""
}

// hintPort is for a port that is mapped to another, as containers' are.
func hintPort(s string) string {
	if i := strings.LastIndexByte(s, ':'); i >= 0 && s[i+1:] != "auto" && validPort(s[i+1:]) == nil {
		return "a program listens on the host itself: write " + s[i+1:]
	}
	return ""
}

// hintBareName is for a value that is a shell's way to name a variable.
func hintBareName(n *node) string {
	name, ok := strings.CutPrefix(n.raw, "$")
	if !ok || n.secret || n.literal || !varsName().MatchString(name) {
		return ""
	}
	return "write ${" + name + "}"
}

// hintRefs is for what should be the name of one task.
func (l *loader) hintRefs(n *node) string {
	if n.filled() {
		return taskNameSays
	}
	if slices.Contains(l.names, slug(n.text)) {
		return "write " + slug(n.text)
	}
	several := strings.FieldsFunc(n.text, func(r rune) bool { return r == ' ' || r == ',' })
	for _, name := range several {
		if !slices.Contains(l.names, name) {
			return taskNameSays
		}
	}
	return "put a comma between them: " + strings.Join(several, ", ")
}

// urlPath is the path of an address of a server; "" if it is none.
func urlPath(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	return cmp.Or(u.RequestURI(), "/")
}

// hintReady is the mapping that was probably meant.
func hintReady(s string) string {
	switch path := cmp.Or(urlPath(s), s); strings.ToLower(s) {
	case "tcp", "completion":
		return fmt.Sprintf("write {%s: true}", strings.ToLower(s))
	case "http", "https":
		return "write {http: /health}, or where it answers"
	default:
		if validPath(path) == nil {
			return "write {http: " + flowWord(path) + "}"
		}
	}
	return ""
}

func hintStop(s string) string {
	name := strings.ToUpper(s)
	if w := signalRule.foreign[name]; w != "" {
		name = w
	}
	switch {
	case slices.Contains(signalRule.words, name):
		return "write {signal: " + name + "}"
	case validDuration(s) == nil && s != "0":
		return "write {grace: " + s + "}"
	case validCount(s) == nil:
		return "write {grace: " + s + "s}"
	}
	return ""
}

// hintName says what names are, and what this one could be.
func hintName(namesAre, name string) string {
	foreign := strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf })
	if s := slug(name); namesAre == taskNameSays && s != "" && !foreign {
		return fmt.Sprintf("write %s: %s", s, namesAre)
	}
	return namesAre
}
