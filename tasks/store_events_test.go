package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
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

// TestEventsAtEveryCut: wherever a crash has cut the file, the lines before can be
// read, what comes next is not spoilt, and whoever follows gets each once.
func TestEventsAtEveryCut(t *testing.T) {
	r, _ := newTask(t)
	for i := range 3 {
		if err := r.Append(Event{Verb: "up", What: fmt.Sprint("event ", i)}); err != nil {
			t.Fatal(err)
		}
	}
	path := r.file("events.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range whole {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		ended := strings.Count(string(whole[:cut]), "\n")
		var read eventsRead
		before, err := r.newEvents(&read)
		if err != nil || len(before) != ended {
			t.Fatalf("cut at %d: %d events are followed, %v", cut, len(before), err)
		}
		if err := r.Append(Event{What: "after"}); err != nil {
			t.Fatal(err)
		}
		events, torn, err := r.Events()
		if n := len(events); err != nil || n+torn < ended+1 || n > ended+2 || torn > 1 || events[n-1].What != "after" {
			t.Fatalf("cut at %d: %v, %d torn, %v", cut, events, torn, err)
		}
		next, err := r.newEvents(&read)
		if err != nil || len(before)+len(next) != len(events) {
			t.Fatalf("cut at %d: followed %d and %d of %d, %v", cut, len(before), len(next), len(events), err)
		}
	}
}

// TestFollowedEventsSurviveATrim: also one after which the file has grown past
// what it was.
func TestFollowedEventsSurviveATrim(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, between := range []int{1, 400, 800, 1200, 3000} {
		r, _ := newTask(t)
		n := 0
		add := func(times int) {
			for range times {
				n++
				if err := r.Append(Event{At: time.Unix(int64(n), 0), What: fmt.Sprint(n, " ", long)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		var got []Event
		var read eventsRead
		follow := func() {
			events, err := r.newEvents(&read)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, events...)
		}
		add(900) // near the bound
		follow()
		for range 4 {
			add(between)
			follow()
		}
		for i := 1; i < len(got); i++ {
			if gap := got[i].At.Sub(got[i-1].At); gap <= 0 || gap > time.Second && between <= 400 {
				t.Fatalf("%d between: after %v came %v", between, got[i-1].At.Unix(), got[i].At.Unix())
			}
		}
		if last := got[len(got)-1].At.Unix(); last != int64(n) {
			t.Errorf("%d between: the last is %d of %d", between, last, n)
		}
	}
}

// TestFollowEvents goes on by what is written, and ends with its context.
func TestFollowEvents(t *testing.T) {
	r, _ := newTask(t)
	m := &Manager{Store: r.store}
	if err := r.Append(Event{What: "first"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	enough := errors.New("enough")
	more := []string{"second", "third"}
	err := m.Events(t.Context(), []Selection{{Run: r}}, EventsOptions{Follow: true}, func(run string, e Event) error {
		got = append(got, run+" "+e.What)
		if len(more) == 0 {
			return enough
		}
		next := more[0]
		more = more[1:]
		return r.Append(Event{What: next})
	})
	if !errors.Is(err, enough) || !slices.Equal(got, []string{"chat first", "chat second", "chat third"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestFollowEventsOfTheNextRun: a name is used again while its events are followed:
// those that the earlier run wrote last are told, and then those of the next.
func TestFollowEventsOfTheNextRun(t *testing.T) {
	r, _ := newTask(t)
	m := &Manager{Store: r.store}
	write := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
	}
	write(r.Write(Run{Name: "chat", ID: "first"}), r.Append(Event{What: "first"}))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var got []string
	enough := errors.New("enough")
	err := m.Events(ctx, []Selection{{Run: r}}, EventsOptions{Follow: true, All: true}, func(_ string, e Event) error {
		got = append(got, e.What)
		switch e.What {
		case "first":
			write(r.Append(Event{What: "last"}))
			_, err := r.Archive()
			write(err, r.Create(), r.Write(Run{Name: "chat", ID: "second"}), r.Append(Event{What: "second"}))
		case "second":
			write(r.Append(Event{What: "third"}))
		case "third":
			write(r.Remove(), r.Create(), r.Write(Run{Name: "chat", ID: "third"}), r.Append(Event{What: "fourth"}))
		case "fourth":
			other := r.store.Run("other") // that nobody knew of
			write(other.Create(), other.Write(Run{Name: "other", ID: "o"}), other.Append(Event{What: "fifth"}))
		case "fifth":
			write(r.store.Run("other").Append(Event{What: "sixth"}))
		case "sixth":
			return enough
		}
		return nil
	})
	if want := []string{"first", "last", "second", "third", "fourth", "fifth", "sixth"}; !errors.Is(err, enough) || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}
