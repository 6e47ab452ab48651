package probe

import (
	"fmt"
	"net/http"
	"regexp"

	"github.com/tidwall/gjson"
)

// Expect is what an HTTP answer must be, beyond being one.
type Expect struct {
	Status int            // 0: any 2xx
	Body   *regexp.Regexp // must match somewhere in the body; nil: anything
	JSON   []Field        // of its body; all must be so
}

// Field is what must stand at a place of a JSON text.
type Field struct {
	Path  string  // in the syntax of github.com/tidwall/gjson: models.0.status
	Value *string // as text; nil: anything but null, false, 0, "" and what is empty
}

// match says what is wrong with the answer, beginning with its status.
func (e Expect) match(a answer) error {
	switch {
	case e.Status != 0 && a.status != e.Status, e.Status == 0 && !a.ok():
		return fmt.Errorf("%s%s", status(a.status), a.quoted())
	case e.Body != nil && !e.Body.Match(a.body):
		return fmt.Errorf("%s, and its body does not show %q%s", status(a.status), e.Body, a.quoted())
	case len(e.JSON) > 0 && !gjson.ValidBytes(a.body):
		return fmt.Errorf("%s, and its body is no JSON%s", status(a.status), a.quoted())
	}
	for _, f := range e.JSON {
		if err := f.match(a); err != nil {
			return err
		}
	}
	return nil
}

func (f Field) match(a answer) error {
	found := gjson.GetBytes(a.body, f.Path)
	switch {
	case !found.Exists():
		return fmt.Errorf("%s, and its JSON has no %s%s", status(a.status), f.Path, a.quoted())
	case f.Value != nil && found.String() != *f.Value:
		return fmt.Errorf("%s, and its JSON has %s = %s, not %s", status(a.status), f.Path, a.brief([]byte(found.Raw)), *f.Value)
	case f.Value == nil && hollow(found):
		return fmt.Errorf("%s, and its JSON has %s = %s", status(a.status), f.Path, a.brief([]byte(found.Raw)))
	}
	return nil
}

// hollow reports whether a value says no: null, false, 0, "", [] or {}.
func hollow(v gjson.Result) bool {
	switch v.Type {
	case gjson.Null, gjson.False:
		return true
	case gjson.Number:
		return v.Num == 0
	case gjson.String:
		return v.Str == ""
	case gjson.JSON:
		empty := true
		v.ForEach(func(_, _ gjson.Result) bool { empty = false; return false })
		return empty
	}
	return false
}

func status(code int) string {
	if text := http.StatusText(code); text != "" {
		return fmt.Sprintf("%d %s", code, text)
	}
	return fmt.Sprint(code)
}
