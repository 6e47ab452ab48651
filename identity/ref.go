package identity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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
var refKeys = map[string]bool{
	"machine": true, "host": true, "boot": true, "pidns": true, "timens": true,
	"pid": true, "pidfs": true, "start": true, "uid": true, "recorded_at": true,
}

// checkKeys refuses unknown and repeated fields. encoding/json would let the
// last of two "pid" win, and "PID" stand for "pid".
func checkKeys(data []byte) string {
	dec := json.NewDecoder(bytes.NewReader(data))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return "the record is not an object"
	}
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return "the record is malformed: " + clip(err.Error())
		}
		key, _ := tok.(string)
		if !refKeys[key] {
			return fmt.Sprintf("the record has a field %q that hob does not write", clip(key))
		}
		if seen[key] {
			return fmt.Sprintf("the record has %q twice", key)
		}
		seen[key] = true
		if err := skipScalar(dec); err != nil {
			return fmt.Sprintf("field %q is malformed", key)
		}
	}
	return ""
}

// skipScalar reads one value and refuses objects and arrays: a Ref is flat.
func skipScalar(dec *json.Decoder) error {
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	if _, nested := tok.(json.Delim); nested {
		return io.ErrUnexpectedEOF
	}
	return nil
}
