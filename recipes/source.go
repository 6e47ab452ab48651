package recipes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// What a file may be at most. A recipe of 200 servers has 60 KB and 4,000 values;
// what is far beyond that is a mistake or an attack, and refused before it costs.
const (
	maxBytes = 1 << 20
	maxNodes = 100_000 // with every alias written out
	maxDepth = 64
)

// source is the text of one file, kept to point into it.
type source struct {
	name  string // as errors name it
	dir   string // what relative paths in it start from
	lines []string
	order int // errors of the file that was asked for come first

	private map[int]bool // lines on which a value of an environment stands
}

func newSource(name, dir string, text []byte) *source {
	return &source{name: name, dir: dir, lines: splitLines(string(text))}
}

// readSource reads a file, bounded, and the folder that it stands in.
func readSource(file string) (*source, []byte, error) {
	text, err := ReadInput(file, maxBytes+1)
	if err != nil {
		return nil, nil, fmt.Errorf("read recipe: %w", err)
	}
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, nil, fmt.Errorf("folder of recipe %s: %w", file, err)
	}
	return newSource(file, filepath.Dir(abs), text), text, nil
}

// ReadInput reads a file that a person has named, up to a number of bytes. It may be a
// pipe (`hob check <(generate)`), but not one that nobody has open to write to: to
// open that would wait for ever (fifo(7)).
func ReadInput(file string, most int64) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	how, pipe := os.O_RDONLY, info.Mode()&fs.ModeNamedPipe != 0
	if pipe {
		how |= syscall.O_NONBLOCK
	}
	f, err := os.OpenFile(file, how, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err == nil && pipe && len(text) == 0 {
		err = fmt.Errorf("%s is a pipe, and nothing was written to it", file)
	}
	return text, err
}

// line is the text of line n (from 1), without the end of line.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	return s.lines[n-1]
}

// shown is line n as an error shows it: not where it may hold a secret, be the
// error about another value of that line.
func (s *source) shown(n int) string {
	if s.private[n] {
		return ""
	}
	return s.line(n)
}

// hide finds the lines on which the values of environments stand, also of those
// under a key that only means one. An alias hides what it stands for.
func (s *source) hide(doc *yaml.Node) {
	type visit struct {
		node  *yaml.Node
		below bool // of an environment
	}
	s.private = map[int]bool{}
	seen := map[visit]bool{}
	var walk func(v visit)
	walk = func(v visit) {
		if v.node == nil || seen[v] || seen[visit{v.node, true}] {
			return
		}
		seen[v] = true
		if y := v.node; v.below && y.Kind == yaml.ScalarNode {
			for n := range 1 + strings.Count(y.Value, "\n") {
				s.private[y.Line+n] = true
			}
		}
		walk(visit{v.node.Alias, v.below})
		for i, child := range v.node.Content {
			below := v.below
			if v.node.Kind == yaml.MappingNode && i%2 == 1 {
				name := v.node.Content[i-1].Value
				meant := name == "env_file" && child.Kind == yaml.MappingNode // for env
				below = below || meant || secretKey(name)
			}
			walk(visit{child, below})
		}
	}
	walk(visit{node: doc})
}

// guard finds out whether a line of a text that is no YAML may hold a secret: by its
// words, and those of the lines that it stands under.
func (s *source) guard(n int) {
	right := len(s.line(n)) + 1
	for i := n; i > 0 && right > 0; i-- {
		line := s.line(i)
		in := indent(line)
		if strings.HasPrefix(line[in:], "\t") { // no YAML: it stands under whatever is above
			in = len(line)
		}
		if strings.TrimSpace(line) != "" && in < right {
			right = in
			if slices.ContainsFunc(keyLike().FindAllString(line, -1), secretKey) {
				s.private = map[int]bool{n: true}
				return
			}
		}
	}
}

var keyLike = lazy(`[A-Za-z_-]+["']? *:`)

// secretKey reports whether values below a key of that name are not to be shown, however
// it is written.
func secretKey(name string) bool {
	name = strings.ToLower(strings.TrimRight(name, `"' :`))
	return name == "env" || taskWords[name] == "env" || secretOfReady(name) || secretOfReady(readyWords[name])
}

// secretOfReady reports whether readiness has secrets there.
func secretOfReady(name string) bool { return name == "api_key" || name == "headers" }

// lineEnds are what the parser takes for the end of a line: YAML 1.1, section 4.2.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

func splitLines(text string) []string { return strings.Split(lineEnds.Replace(text), "\n") }

// parse turns the text of a file into its tree; nil if there is none, and then
// errs says why.
func (s *source) parse(text []byte, errs *list) *node {
	if !s.readable(text, errs) {
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	switch err := decode(dec, &doc); {
	case errors.Is(err, io.EOF):
		s.empty(errs)
		return nil
	case err != nil:
		s.syntax(text, err, errs)
		return nil
	}
	switch err := decode(dec, &second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		s.syntax(text, err, errs)
		return nil
	default:
		errs.at(s, second.Line, second.Column, "a second document begins here", "a recipe is one document: put the other into a file of its own")
		return nil
	}
	if root := doc.Content[0]; root.Kind == yaml.ScalarNode && root.Value == "" && root.ShortTag() == "!!null" {
		s.empty(errs)
		return nil
	}
	s.hide(doc.Content[0])
	t := tree{src: s, errs: errs, open: map[*yaml.Node]bool{}}
	return t.build(doc.Content[0], 0)
}

func (s *source) empty(errs *list) {
	errs.at(s, 1, 1, "the file is empty", "write at least one server: servers: {chat: {engine: pilot, port: auto}}")
}

// readable reports whether the text is one that the parser should see at all.
func (s *source) readable(text []byte, errs *list) bool {
	if len(text) > maxBytes {
		errs.at(s, 1, 1, fmt.Sprintf("the file is larger than %d bytes", maxBytes), "is this a recipe?")
		return false
	}
	if !utf8.Valid(text) {
		line, col := firstInvalid(text)
		errs.at(s, line, col, "the text is not UTF-8", "save the file as UTF-8")
		return false
	}
	return true
}

func firstInvalid(text []byte) (line, col int) {
	at := 0
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	lines := splitLines(string(text[:at]))
	return len(lines), utf8.RuneCountInString(lines[len(lines)-1]) + 1
}

// decode guards against a parser that panics on hostile text: it takes the text
// of strangers, and this package never panics.
func decode(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: %v", p)
		}
	}()
	return dec.Decode(n)
}

// syntax reports what is no YAML. yaml.v3 names at best the line where the
// surrounding construct began. The parser reads forward only, so the shortest
// beginning of the file that fails with the same words ends where it stumbled.
func (s *source) syntax(text []byte, err error, errs *list) {
	what := says(err)
	low, high := 0, len(text) // text[:high] fails so, text[:low] does not
	for high-low > 1 {
		mid := low + (high-low)/2
		var doc yaml.Node
		e := decodeAll(text[:mid], &doc)
		if e != nil && says(e) == what {
			high = mid
		} else {
			low = mid
		}
	}
	line, col := position(text, high)
	if s.guard(line); s.private[line] && strings.HasPrefix(what, "unknown anchor ") {
		what = "unknown anchor referenced" // its name is the value
	}
	hint := s.hintSyntax(what, line, col)
	if tab := leadingTab(s.line(line)); tab > 0 {
		col, hint = tab, "indent with spaces: YAML does not allow tabs there"
	}
	errs.at(s, line, col, "not YAML: "+what, hint)
}

func decodeAll(text []byte, n *yaml.Node) error {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		if err := decode(dec, n); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// says is what the parser says, without its name and line.
func says(err error) string {
	s := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.HasPrefix(s, "line ") {
		if _, rest, ok := strings.Cut(s, ": "); ok {
			return rest
		}
	}
	return s
}

// position is the place of the last byte of text[:end] that is no white space.
func position(text []byte, end int) (line, col int) {
	head := bytes.TrimRight(text[:end], " \r\n")
	if len(head) == 0 {
		return 1, 1
	}
	lines := splitLines(string(head))
	return len(lines), max(1, utf8.RuneCountInString(lines[len(lines)-1]))
}

// leadingTab is the column of a tab in the indentation; 0 if there is none.
func leadingTab(line string) int {
	for i := range len(line) {
		switch line[i] {
		case '\t':
			return i + 1
		case ' ':
		default:
			return 0
		}
	}
	return 0
}
