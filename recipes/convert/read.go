package convert

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hob/recipes"
)

// reader collects, while a file is read, what was kept, dropped, and is wrong.
type reader struct {
	file   string
	text   string
	away   string
	beside func(name string) ([]byte, error)

	kept, dropped []Note
	errs          recipes.Errors
}

func (r *reader) keep(line int, what, as string) { r.kept = append(r.kept, Note{line, what, as}) }
func (r *reader) drop(line int, what, why string) {
	r.dropped = append(r.dropped, Note{line, what, why})
}

// wrong reports a value that cannot be what the format says.
func (r *reader) wrong(v *recipes.Value, format string, args ...any) {
	r.fault(v, fmt.Sprintf(format, args...), r.line(v.Line))
}

// wrongSecret is wrong for a place whose line may hold a secret.
func (r *reader) wrongSecret(v *recipes.Value, format string, args ...any) {
	r.fault(v, fmt.Sprintf(format, args...), "")
}

func (r *reader) fault(v *recipes.Value, msg, text string) {
	const most = 200
	if len(r.errs) < most {
		r.errs = append(r.errs, &recipes.Error{File: r.file, Line: v.Line, Column: v.Column, Msg: msg, Text: text})
	}
}

// line is a line of the file, as it stands there.
func (r *reader) line(n int) string {
	lines := strings.Split(r.text, "\n")
	if n < 1 || n > len(lines) {
		return ""
	}
	return lines[n-1]
}

// notes sorts by line: what was found last is not what stands last.
func notes(list []Note) []Note {
	slices.SortStableFunc(list, func(a, b Note) int { return cmp.Compare(a.Line, b.Line) })
	if list == nil {
		return []Note{}
	}
	return list
}

// section is a mapping of the file whose keys are taken one by one. What was not
// taken at its end is named as dropped.
type section struct {
	r    *reader
	path string // "windows[0]."
	v    *recipes.Value
	used map[string]bool
}

// section opens a mapping; nil, and an error, for what is none.
func (r *reader) section(path string, v *recipes.Value) *section {
	if v.Form != recipes.FormMapping {
		r.wrong(v, "%s must be a mapping, not %s", nameOf(path), v.Form)
		return nil
	}
	if path != "" {
		path += "."
	}
	return &section{r: r, path: path, v: v, used: map[string]bool{}}
}

func nameOf(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}

// take is the value of a key, which is then accounted for; nil if it is not there
// or empty.
func (s *section) take(key, as string) *recipes.Value {
	v := s.v.Get(key)
	if v == nil || s.used[key] {
		return nil
	}
	s.used[key] = true
	if v.Form == recipes.FormNull {
		s.r.keep(v.Line, s.path+key, "it is empty")
		return nil
	}
	if as != "" {
		s.r.keep(v.Line, s.path+key, as)
	}
	return v
}

// text is a key that holds one text or number; blanks alone say nothing.
func (s *section) text(key, as string) string {
	v := s.take(key, as)
	if v == nil {
		return ""
	}
	if !v.Scalar() {
		s.r.wrong(v, "%s%s must be text, not %s", s.path, key, v.Form)
		return ""
	}
	if strings.TrimSpace(v.Text) == "" {
		return ""
	}
	return v.Text
}

// number is a key that holds a whole number; 0 and false without it.
func (s *section) number(key, as string) (int, bool) {
	v := s.take(key, as)
	if v == nil {
		return 0, false
	}
	n, err := strconv.Atoi(v.Text)
	if err != nil || !v.Scalar() {
		s.r.wrong(v, "%s%s must be a whole number", s.path, key)
		return 0, false
	}
	return n, true
}

// port is a key that holds the number of a port.
func (s *section) port(key, as string) (int, bool) {
	n, ok := s.number(key, as)
	if ok && (n < 1 || n > 65535) {
		s.r.wrong(s.v.Get(key), "%s%s must be a port, from 1 to 65535", s.path, key)
		return 0, false
	}
	return n, ok
}

// yes is a key that holds true or false.
func (s *section) yes(key, as string) bool {
	v := s.take(key, as)
	if v == nil {
		return false
	}
	if v.Form != recipes.FormBool && v.Text != "true" && v.Text != "false" {
		s.r.wrong(v, "%s%s must be true or false", s.path, key)
	}
	return v.Text == "true"
}

// texts is a key that holds a text or a list of texts.
func (s *section) texts(key, as string) []string {
	v := s.take(key, as)
	if v == nil {
		return nil
	}
	return s.r.textsOf(s.path+key, v)
}

// textsOf are the texts of a value that is one, or a list of them.
func (r *reader) textsOf(path string, v *recipes.Value) []string {
	if v.Scalar() {
		return []string{v.Text}
	}
	if v.Form != recipes.FormList {
		r.wrong(v, "%s must be text or a list of texts, not %s", path, v.Form)
		return nil
	}
	var all []string
	for _, item := range v.Items {
		switch {
		case item.Scalar():
			all = append(all, item.Text)
		case item.Form != recipes.FormNull:
			r.wrong(item, "%s must be a list of texts, and this is %s", path, item.Form)
		}
	}
	return all
}

// list is a key that holds a list.
func (s *section) list(key string) []*recipes.Value {
	v := s.take(key, "")
	if v == nil {
		return nil
	}
	if v.Form != recipes.FormList {
		s.r.wrong(v, "%s%s must be a list, not %s", s.path, key, v.Form)
	}
	return v.Items
}

// below is the mapping that a key holds; nil if it is not there or none.
func (s *section) below(key string) *section {
	v := s.take(key, "")
	if v == nil {
		return nil
	}
	return s.r.section(s.path+key, v)
}

// pairs are the entries of a mapping of names to texts, like an environment.
func (s *section) pairs(key, as string) []pair {
	v := s.take(key, as)
	if v == nil {
		return nil
	}
	if v.Form != recipes.FormMapping {
		s.r.wrongSecret(v, "%s%s must be a mapping, not %s", s.path, key, v.Form)
		return nil
	}
	var all []pair
	for _, p := range v.Pairs {
		switch {
		case p.Value.Form == recipes.FormNull:
			all = append(all, pair{p.Key.Text, ""})
		case !p.Value.Scalar():
			s.r.wrongSecret(p.Value, "%s%s.%s must be text, not %s", s.path, key, p.Key.Text, p.Value.Form)
		default:
			all = append(all, pair{p.Key.Text, p.Value.Text})
		}
	}
	return all
}

type pair struct{ name, value string }

// refuse names keys, where they are there, as dropped for one reason.
func (s *section) refuse(why string, keys ...string) {
	for _, key := range keys {
		if v := s.v.Get(key); v != nil && !s.used[key] {
			s.used[key] = true
			s.r.drop(s.keyLine(key), s.path+key, why)
		}
	}
}

func (s *section) keyLine(key string) int {
	for _, p := range s.v.Pairs {
		if p.Key.Text == key {
			return p.Key.Line
		}
	}
	return 0
}

// end names what nobody asked for.
func (s *section) end() {
	if s == nil {
		return
	}
	for _, p := range s.v.Pairs {
		if !s.used[p.Key.Text] {
			s.used[p.Key.Text] = true
			s.r.drop(p.Key.Line, s.path+shortened(p.Key.Text), "hob has nothing like it, or does not know it")
		}
	}
}

// shortened is a key of a stranger's file as a note names it.
func shortened(s string) string {
	const most = 60
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return '?'
		}
		return c
	}, s)
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
