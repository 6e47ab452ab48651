package identity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// maxRefJSON bounds a stored Ref. A real one has about 350 bytes.
const maxRefJSON = 4096

// plainRef is Ref without its methods.
type plainRef Ref

// UnmarshalJSON reads a stored Ref. One that hob cannot have written (a field
// too many or twice, a pid that is no number, megabytes of text) is not an error
// here: the Ref keeps the text as it was, marshals to it again, and verifies as
// Unverifiable with the reason. So one bad Ref does not hide the good ones of
// the same file, and is not lost when that file is written again.
func (r *Ref) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		return nil // as encoding/json does by convention
	}
	var p plainRef
	if why := decodeRef(data, &p); why != "" {
		*r = Ref{bad: why, raw: string(data)}
		return nil
	}
	*r = Ref(p)
	return nil
}

// MarshalJSON writes a Ref; one that could not be read, as it was found.
func (r Ref) MarshalJSON() ([]byte, error) {
	if r.raw != "" {
		return []byte(r.raw), nil
	}
	return json.Marshal(plainRef(r))
}

// ParseRef reads a Ref from text that need not even be JSON. It never fails:
// what cannot be read verifies as Unverifiable with the reason.
func ParseRef(data []byte) Ref {
	var r Ref
	if !json.Valid(data) {
		return Ref{bad: "the record is not JSON"}
	}
	_ = r.UnmarshalJSON(bytes.TrimSpace(data))
	return r
}

// decodeRef decodes one flat object, and says why not.
func decodeRef(data []byte, p *plainRef) string {
	if len(data) > maxRefJSON {
		return fmt.Sprintf("a record of %d bytes is not one that hob writes", len(data))
	}
	if why := checkKeys(data); why != "" {
		return why
	}
	if err := json.Unmarshal(data, p); err != nil {
		return "the record is malformed: " + clip(err.Error())
	}
	return ""
}

// refKeys are the fields of a stored Ref.
var refKeys = [...]string{"machine", "host", "boot", "pidns", "timens", "pid", "pidfs", "start", "uid", "recorded_at"}

// checkKeys refuses unknown and repeated fields. encoding/json would let the
// last of two "pid" win, and "PID" stand for "pid". data is valid JSON, so that
// the bytes can be walked without a parser: this runs for every process that
// hob looks at.
func checkKeys(data []byte) string {
	s := scanner{data: bytes.TrimSpace(data)}
	if !s.skip('{') {
		return "the record is not an object"
	}
	var seen [len(refKeys)]bool
	for !s.skip('}') {
		key := string(s.str())
		n := slices.Index(refKeys[:], key)
		switch {
		case n < 0:
			return fmt.Sprintf("the record has a field %q that hob does not write", clip(unescaped(key)))
		case seen[n]:
			return fmt.Sprintf("the record has %q twice", key)
		case !s.skip(':') || !s.scalar():
			return fmt.Sprintf("field %q is malformed", key)
		}
		seen[n] = true
		s.skip(',')
	}
	return ""
}

// unescaped is a key for people.
func unescaped(key string) string {
	var text string
	if json.Unmarshal([]byte(`"`+key+`"`), &text) != nil {
		return key
	}
	return text
}

// scanner walks over the bytes of a valid, flat JSON object.
type scanner struct {
	data []byte
}

// skip passes over white space and then c, and reports whether it was there. At
// the end of the data everything is.
func (s *scanner) skip(c byte) bool {
	s.data = bytes.TrimLeft(s.data, " \t\r\n")
	if len(s.data) == 0 {
		return true
	}
	if s.data[0] != c {
		return false
	}
	s.data = s.data[1:]
	return true
}

// str passes over a string and returns what stands between its quotes, with
// escapes as they are: no field of a Ref is written with one.
func (s *scanner) str() []byte {
	if !s.skip('"') {
		return nil
	}
	for i := 0; i < len(s.data); i++ {
		switch s.data[i] {
		case '\\':
			i++
		case '"':
			text := s.data[:i]
			s.data = s.data[i+1:]
			return text
		}
	}
	s.data = nil
	return nil
}

// scalar passes over one value and refuses objects and arrays: a Ref is flat.
func (s *scanner) scalar() bool {
	s.data = bytes.TrimLeft(s.data, " \t\r\n")
	switch {
	case len(s.data) == 0, s.data[0] == '{', s.data[0] == '[':
		return false
	case s.data[0] == '"':
		s.str()
		return true
	}
	end := bytes.IndexAny(s.data, ",} \t\r\n")
	if end < 0 {
		end = len(s.data)
	}
	s.data = s.data[end:]
	return true
}
