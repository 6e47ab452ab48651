package tasks

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"hob/identity"
	"hob/sweep"
)

// records are the types behind the files of the state folder, by their heading in doc.go.
var records = map[string]reflect.Type{
	"cgroup":             reflect.TypeFor[identity.CgroupRef](),
	"ref":                reflect.TypeFor[identity.Ref](),
	"run.json":           reflect.TypeFor[Run](),
	"server.json":        reflect.TypeFor[Server](),
	"events.jsonl":       reflect.TypeFor[Event](),
	"task.json":          reflect.TypeFor[Task](),
	"spec.json":          reflect.TypeFor[Spec](),
	"keeper.json":        reflect.TypeFor[Keeper](),
	"left/<cgroup>.json": reflect.TypeFor[LeftCgroup](),
	".gpu.json":          reflect.TypeFor[gpuRecord](),
	"exit.json":          reflect.TypeFor[Exit](),
	"stop.json":          reflect.TypeFor[StopRequest](),
	"capture.json":       reflect.TypeFor[sweep.Capture](),
	"report.json":        reflect.TypeFor[sweep.Report](),
}

// TestEveryFieldIsDocumented fails when a record has a field that doc.go does
// not name, or doc.go names one that is not there.
func TestEveryFieldIsDocumented(t *testing.T) {
	documented := documentedFields(t)
	for name, typ := range records {
		fields := map[string]bool{}
		jsonFields(t, typ, "", fields)
		for f := range fields {
			if !documented[name][f] {
				t.Errorf("%s: field %q is not documented in doc.go", name, f)
			}
		}
		for f := range documented[name] {
			if !fields[f] {
				t.Errorf("%s: doc.go names %q, which is no field", name, f)
			}
		}
	}
	for name := range documented {
		if records[name] == nil {
			t.Errorf("doc.go documents %q, which this test does not know", name)
		}
	}
}

func documentedFields(t *testing.T) map[string]map[string]bool {
	t.Helper()
	data, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]bool{}
	heading := ""
	for line := range strings.Lines(string(data)) {
		if h, ok := strings.CutPrefix(line, "// # "); ok {
			heading = strings.TrimSpace(h)
			continue
		}
		if f, ok := strings.CutPrefix(line, "//\t"); ok && heading != "The state folder" {
			name, meaning, _ := strings.Cut(f, " ")
			if strings.TrimSpace(meaning) == "" {
				t.Errorf("%s: %q has no meaning", heading, name)
			}
			if out[heading] == nil {
				out[heading] = map[string]bool{}
			}
			out[heading][name] = true
		}
	}
	return out
}

// jsonFields collects the JSON names of a type, with dots for what is nested. A
// Ref and a CgroupRef inside a record have their own headings.
func jsonFields(t *testing.T, typ reflect.Type, prefix string, into map[string]bool) {
	t.Helper()
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() || prefix != "" && (typ == reflect.TypeFor[identity.Ref]() || typ == reflect.TypeFor[identity.CgroupRef]()) {
		return
	}
	for f := range typ.Fields() {
		if !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			t.Errorf("%s.%s has no JSON name", typ, f.Name)
			continue
		}
		into[prefix+name] = true
		jsonFields(t, f.Type, prefix+name+".", into)
	}
}
