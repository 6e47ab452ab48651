package tasks

import (
	"os"
	"strings"
	"testing"
)

func TestEventsAfterACrash(t *testing.T) {
	r, _ := newTask(t)
	if events, torn, err := r.Events(); len(events) != 0 || torn != 0 || err != nil {
		t.Errorf("before the first: %v, %d, %v", events, torn, err)
	}
	for _, what := range []string{"first", "second"} {
		if err := r.Append(Event{Verb: "up", What: what}); err != nil {
			t.Fatal(err)
		}
	}
	path := r.file("events.jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data[:len(data)-5], 0o600); err != nil { // cut in the second line
		t.Fatal(err)
	}
	if err := r.Append(Event{Verb: "down", What: "third"}); err != nil {
		t.Fatal(err)
	}
	events, torn, err := r.Events()
	if err != nil || torn != 1 || len(events) != 2 || events[0].What != "first" || events[1].What != "third" {
		t.Errorf("got %v, %d torn, %v", events, torn, err)
	}
}

func TestEventsAreBounded(t *testing.T) {
	r, _ := newTask(t)
	long := strings.Repeat("ü", maxWhat)
	for range 3 * maxEvents / maxWhat {
		if err := r.Append(Event{What: long}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Append(Event{What: "last"}); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(r.file("events.jsonl"))
	if err != nil || fi.Size() > maxEvents+2*maxWhat {
		t.Errorf("%d bytes, %v", fi.Size(), err)
	}
	events, torn, err := r.Events()
	if err != nil || torn != 0 || events[len(events)-1].What != "last" {
		t.Errorf("%d events, %d torn, %v", len(events), torn, err)
	}
}
