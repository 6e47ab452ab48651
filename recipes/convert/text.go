package convert

import (
	"strings"

	"hob/recipes"
)

// Dollars. A recipe reads ${…} and $$ and nothing else; a foreign text's dollars
// are for a shell, and must come through. References that are meant for hob are
// marked with characters that no text has (Unicode's noncharacters) until the
// text is written.
const (
	refOpen  = '\ufdd0'
	refClose = '\ufdd1'
)

// ref is a reference for hob within a foreign text: ref("port") is ${port}.
func ref(name string) string { return string(refOpen) + name + string(refClose) }

// reserved refuses a file that has the marks itself.
func (r *reader) reserved() error {
	for i, line := range strings.Split(r.text, "\n") {
		if at := strings.IndexFunc(line, func(c rune) bool { return c == refOpen || c == refClose }); at >= 0 {
			col := len([]rune(line[:at])) + 1
			return recipes.Errors{{File: r.file, Line: i + 1, Column: col, Msg: "a noncharacter of Unicode (U+FDD0 or U+FDD1) stands here"}}
		}
	}
	return nil
}

// escaped writes a foreign text so that hob reads it as it was, and the marked
// references as references.
func escaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		rest := s[i+1:]
		switch {
		case strings.HasPrefix(s[i:], string(refOpen)):
			b.WriteString("${")
			i += len(string(refOpen)) - 1
		case strings.HasPrefix(s[i:], string(refClose)):
			b.WriteString("}")
			i += len(string(refClose)) - 1
		case s[i] == '$' && (strings.HasPrefix(rest, "$") || strings.HasPrefix(rest, "{") || strings.HasPrefix(rest, string(refOpen))):
			b.WriteString("$$")
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

var (
	shellVar = lazy(`\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})`)
	erbTag   = lazy(`(?s)<%.*?%>`)
	erbEnv   = lazy(`^<%=\s*ENV(?:\[\s*["']([A-Za-z_][A-Za-z0-9_]*)["']\s*\]|\.fetch\(\s*["']([A-Za-z_][A-Za-z0-9_]*)["'](?:\s*,\s*["']([^"'{}$]*)["'])?\s*\))\s*-?%>$`)
)

// expanded is a text whose $NAME and ${NAME} another tool fills in from the
// environment; hob does it likewise, with nothing for what is not set.
func expanded(s string) string {
	return shellVar().ReplaceAllStringFunc(s, func(m string) string {
		g := shellVar().FindStringSubmatch(m)
		return ref(g[1] + g[2] + ":-")
	})
}

// erb takes the Ruby out of a text: what asks for a variable of the environment
// becomes that, all else is named and leaves nothing. Lines keep their numbers.
func (r *reader) erb(text string) string {
	found := 0
	return erbTag().ReplaceAllStringFunc(text, func(tag string) string {
		line := 1 + strings.Count(text[:r.next(text, tag, &found)], "\n")
		blank := strings.Repeat("\n", strings.Count(tag, "\n"))
		if g := erbEnv().FindStringSubmatch(tag); g != nil {
			r.keep(line, shortened(tag), "the variable of the environment")
			return ref(g[1]+g[2]+":-"+g[3]) + blank
		}
		switch {
		case strings.HasPrefix(tag, "<%#"):
			r.keep(line, shortened(tag), "a comment")
		case strings.HasPrefix(tag, "<%="):
			r.drop(line, shortened(tag), "ERB: hob runs no Ruby, nothing stands there now; write the value")
		default:
			r.drop(line, shortened(tag), "ERB: hob runs no Ruby; what it chose from is all there now")
		}
		return blank
	})
}

// next is where the tag stands that is found next.
func (r *reader) next(text, tag string, from *int) int {
	at := *from + strings.Index(text[*from:], tag)
	*from = at + len(tag)
	return at
}
