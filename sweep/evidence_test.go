package sweep

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPermits(t *testing.T) {
	table := []struct {
		evidence []Evidence
		grade    Grade
		want     bool
	}{
		{[]Evidence{Captured}, 'A', true},
		{[]Evidence{Adopted}, 'B', true},
		{[]Evidence{Cgroup}, 'B', true},
		{[]Evidence{Child}, 'C', true},
		{[]Evidence{Session}, 'C', true},
		{[]Evidence{Taken}, 'C', true},
		{[]Evidence{Marker}, 'D', false},
		{[]Evidence{Command}, 'D', false},
		{[]Evidence{Port}, 'D', false},
		{[]Evidence{GPU}, 'D', false},
		{[]Evidence{"told by a newer hob"}, 'E', false},
		{[]Evidence{""}, 'E', false},
		{[]Evidence{Marker, Command, Port, GPU, Marker}, 'D', false},
		{[]Evidence{Marker, Child}, 'D', true},
	}
	for _, row := range table {
		if got := row.evidence[0].Grade(); got != row.grade {
			t.Errorf("grade of %q is %c, want %c", row.evidence[0], got, row.grade)
		}
		if got := Permits(row.evidence); got != row.want {
			t.Errorf("Permits(%v) = %v", row.evidence, got)
		}
	}
	if Permits(nil) {
		t.Error("no evidence permits a signal")
	}
}

func TestHintsNeverAddUp(t *testing.T) {
	hints := rapid.SliceOf(rapid.OneOf(
		rapid.SampledFrom([]Evidence{Marker, Command, Port, GPU}),
		rapid.Map(rapid.StringMatching(`x[a-z]*`), func(s string) Evidence { return Evidence(s) })))
	rapid.Check(t, func(t *rapid.T) {
		if e := hints.Draw(t, "evidence"); Permits(e) {
			t.Fatalf("%v permits a signal", e)
		}
	})
}
