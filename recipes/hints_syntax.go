package recipes

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kballard/go-shellquote"
)

// bareReference is a text with variables and without quotes.
var bareReference = lazy(`[^][{}\s,"']*\$\{[^}\s]*\}[^][{}\s,"']*`)

// hintSyntax is what is usually wrong where the parser says so.
func (s *source) hintSyntax(what string, n, col int) string {
	line := s.line(n)
	before := line[:byteColumn(line, col)]
	switch {
	case strings.HasPrefix(what, "did not find expected ',' or "):
		switch text := bareReference().FindString(inQuotes().ReplaceAllString(line, "")); {
		case text != "" && s.private[n]:
			return `within brackets and braces ${…} needs quotes`
		case text != "":
			return fmt.Sprintf("within brackets and braces it needs quotes: %q", cut(text))
		}
		return "close the bracket; a text with brackets, braces or a comma in it needs quotes"
	case strings.HasPrefix(what, "mapping values are not allowed") && s.deeper(n):
		return "the line stands further right than the one before it: the keys of one mapping begin in one column"
	case strings.HasPrefix(what, "mapping values are not allowed"):
		return `a text with ": " in it needs quotes`
	case what == "did not find expected key" && strings.Contains(before, "'"):
		return "within single quotes a single quote is written twice"
	case what == "did not find expected key":
		return "the keys of one mapping begin in one column"
	case strings.HasSuffix(what, "unexpected end of stream"):
		return "a quote is not closed"
	case strings.Contains(what, "cannot start any token"):
		return "a text that begins with @, ` or % needs quotes"
	case strings.Contains(what, "alphabetic or numeric character"), strings.HasPrefix(what, "unknown anchor"):
		return "a text that begins with * or & needs quotes"
	case strings.HasPrefix(what, "block sequence entries are not allowed"):
		return "a list with dashes begins on the next line; a text that begins with a dash and a space needs quotes"
	case strings.HasPrefix(what, "could not find expected ':'"):
		return "after a key comes a colon and a space"
	}
	return ""
}

// deeper reports whether a line stands further right than the one before it, which
// has a value already.
func (s *source) deeper(n int) bool {
	before := s.line(n - 1)
	said := strings.TrimSpace(before)
	return said != "" && !strings.HasSuffix(said, ":") && indent(s.line(n)) > indent(before)
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// flowWords are the words of a text, as they stand in a YAML list.
func flowWords(s string) string {
	all, err := shellquote.Split(s)
	if err != nil || len(all) == 0 {
		all = []string{s}
	}
	for i, w := range all {
		all[i] = flowWord(w)
	}
	return strings.Join(all, ", ")
}

// flowWord is a word as it stands within a YAML list or mapping.
func flowWord(s string) string {
	if plainWord().MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}

// plainWord needs no quotes.
var plainWord = lazy(`^[A-Za-z0-9_./+=~-]+( [A-Za-z0-9_./+=~-]+)*$`)
