package identity

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

const goodRef = `{"machine":"m1","host":"box","boot":"11111111-2222-4333-8444-555555555555","pidns":"4026531836:1","timens":"4026531834:2","pid":4321,"pidfs":99,"start":"linux:777","uid":1000,"recorded_at":"2023-11-14T22:13:20Z"}`

func TestRefKeepsItsForm(t *testing.T) {
	b, err := json.Marshal(ourRef())
	if err != nil || string(b) != goodRef {
		t.Errorf("written %s, %v", b, err)
	}
	if r := ParseRef(b); !reflect.DeepEqual(r, ourRef()) {
		t.Errorf("read %+v", r)
	}
	bare, _ := json.Marshal(Ref{PID: 1})
	if !strings.Contains(string(bare), `"pidfs":null`) || !strings.Contains(string(bare), `"uid":null`) {
		t.Errorf("unknown numbers are null: %s", bare)
	}
}

// hostile is what a state folder may hold that hob never wrote.
var hostile = map[string]string{
	"empty":             ``,
	"not JSON":          `{"pid":4321`,
	"two values":        goodRef + goodRef,
	"a number":          `4321`,
	"a list":            `[4321]`,
	"text":              `"4321"`,
	"pid is text":       edit(`"pid":4321`, `"pid":"4321"`),
	"pid is a fraction": edit(`"pid":4321`, `"pid":4321.5`),
	"pid is huge":       edit(`"pid":4321`, `"pid":99999999999999999999999`),
	"pid by exponent":   edit(`"pid":4321`, `"pid":4e300`),
	"pid past 32 bits":  edit(`"pid":4321`, `"pid":4294971617`),
	"pid past the max":  edit(`"pid":4321`, `"pid":4194305`),
	"pid negative":      edit(`"pid":4321`, `"pid":-4321`),
	"pid zero":          edit(`"pid":4321`, `"pid":0`),
	"pid missing":       edit(`"pid":4321,`, ``),
	"pid null":          edit(`"pid":4321`, `"pid":null`),
	"pid twice":         edit(`"pid":4321`, `"pid":1,"pid":4321`),
	"pid in capitals":   edit(`"pid":4321`, `"PID":4321`),
	"pid nested":        edit(`"pid":4321`, `"pid":{"pid":4321}`),
	"pidfs negative":    edit(`"pidfs":99`, `"pidfs":-1`),
	"pidfs is text":     edit(`"pidfs":99`, `"pidfs":"99"`),
	"an extra field":    edit(`"pid":4321`, `"force":true,"pid":4321`),
	"an extra object":   edit(`"pid":4321`, `"x":{"y":[{}]},"pid":4321`),
	"another system":    edit(`linux:777`, `freebsd:777`),
	"bad token":         edit(`linux:777`, `linux:+777`),
	"token is a number": edit(`"linux:777"`, `777`),
	"long host":         edit(`box`, strings.Repeat("x", 300)),
	"10 MB host":        edit(`box`, strings.Repeat("x", 10<<20)),
	"10 MB of fields":   edit(`"pid":4321`, strings.Repeat(`"x":1,`, 10<<20/6)+`"pid":4321`),
	"10 MB of depth":    strings.Repeat("[", 5<<20) + strings.Repeat("]", 5<<20),
	"bad time":          edit(`2023-11-14T22:13:20Z`, `yesterday`),
	"NUL in the boot":   edit(`"11111111-`, `"\u00001111111-`),
}

func edit(from, to string) string { return strings.Replace(goodRef, from, to, 1) }

func TestHostileRefs(t *testing.T) {
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			r := ParseRef([]byte(text))
			h, f := ourKernel().verifier(ourFacts()).verify(r)
			if h != nil || f.Verdict != Unverifiable || f.Reason == "" || len(f.Reason) > 500 {
				t.Errorf("%v %+v", h, f)
			}
			if r.bad != "" && f.Reason != r.bad {
				t.Errorf("the reason is %q, not %q", f.Reason, r.bad)
			}
			if len(text) > maxRefJSON && r.bad == "" {
				t.Error("it was read all the same")
			}
		})
	}
}

// TestHostileRefHidesNoOther: one bad Ref among good ones of a file is kept as
// it was and does not cost the others.
func TestHostileRefHidesNoOther(t *testing.T) {
	for name, bad := range hostile {
		if !json.Valid([]byte(bad)) || len(bad) > 1<<20 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var file struct{ Members []Ref }
			text := `{"Members":[` + goodRef + `,` + bad + `,` + goodRef + `]}`
			if err := json.Unmarshal([]byte(text), &file); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(file.Members[0], ourRef()) || !reflect.DeepEqual(file.Members[2], ourRef()) {
				t.Errorf("neighbours: %+v", file.Members)
			}
			again, err := json.Marshal(file)
			if err != nil {
				t.Fatal(err)
			}
			if file.Members[1].bad != "" && string(again) != text {
				t.Errorf("rewritten as %s", again)
			}
		})
	}
}

func TestNullRefIsNoRef(t *testing.T) {
	var file struct{ Keeper, Command *Ref }
	if err := json.Unmarshal([]byte(`{"Keeper":null,"Command":`+goodRef+`}`), &file); err != nil || file.Keeper != nil || file.Command == nil {
		t.Errorf("%+v, %v", file, err)
	}
}
