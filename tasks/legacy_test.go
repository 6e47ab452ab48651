package tasks

import (
	"errors"
	"strings"
	"testing"

	"hob/identity"
)

// TestDecideLegacy: a record without proof is never ours.
func TestDecideLegacy(t *testing.T) {
	found := func(v identity.Verdict) *identity.Finding { return &identity.Finding{Verdict: v, Reason: string(v)} }
	for _, c := range []struct {
		name string
		s    legacySeen
		want identity.Verdict
		why  string
	}{
		{"another machine", legacySeen{elsewhere: "me@box", session: "a"}, identity.Unverifiable, "me@box"},
		{"another machine, and its number is free here", legacySeen{elsewhere: "me@box", found: found(identity.Gone)}, identity.Unverifiable, "me@box"},
		{"its number is nobody's", legacySeen{found: found(identity.Gone), session: "a", panes: 1, living: 1}, identity.Gone, "gone"},
		{"its number is another's", legacySeen{found: found(identity.Foreign)}, identity.Foreign, "foreign"},
		{"its number lives", legacySeen{found: found(identity.Unverifiable)}, identity.Unverifiable, "unverifiable"},
		{"ours is never said", legacySeen{found: found(identity.Owned)}, identity.Unverifiable, "nothing recorded"},
		{"nothing is recorded", legacySeen{}, identity.Unverifiable, "nothing is recorded"},
		{"tmux could not be asked", legacySeen{session: "a", asked: errors.New("no")}, identity.Unverifiable, "could not be asked: no"},
		{"no session", legacySeen{session: "a"}, identity.Gone, "no tmux session"},
		{"a dead one", legacySeen{session: "a", panes: 2}, identity.Gone, "every pane in it is dead"},
		{"one that lives", legacySeen{session: "a", panes: 2, living: 1}, identity.Unverifiable, "nothing recorded proves"},
	} {
		v, why := decideLegacy(c.s)
		if v != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%s: %s, %q", c.name, v, why)
		}
	}
}
