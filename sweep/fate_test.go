package sweep

import (
	"testing"

	"hob/identity"
)

func sent(names ...string) []Sent {
	var out []Sent
	for _, n := range names {
		out = append(out, Sent{Signal: n})
	}
	return out
}

func TestFateOf(t *testing.T) {
	own := identity.Finding{Verdict: identity.Owned}
	gone := identity.Finding{Verdict: identity.Gone}
	table := []struct {
		name  string
		found identity.Finding
		sent  []Sent
		spare spare
		want  Fate
	}{
		{"ended untouched", gone, nil, spare{}, Exited},
		{"ended after CONT, which ends nothing", gone, sent("CONT"), spare{}, Exited},
		{"ended after TERM", gone, sent("TERM"), spare{}, Terminated},
		{"ended after the recipe's INT", gone, sent("INT", "CONT"), spare{}, Terminated},
		{"ended after KILL", gone, sent("TERM", "KILL"), spare{}, Killed},
		{"a zombie has ended", identity.Finding{Verdict: identity.Gone, Zombie: true}, sent("TERM"), spare{}, Terminated},
		{"number reused", identity.Finding{Verdict: identity.Foreign}, sent("TERM"), spare{}, ForeignFate},
		{"could not look", identity.Finding{Verdict: identity.Unverifiable}, sent("KILL"), spare{}, Unverifiable},
		{"lives", own, sent("TERM", "KILL"), spare{}, Survived},
		{"lives, left alone", own, nil, spare{why: "stop.spare"}, Spared},
		{"a boundary below a server", own, nil, spare{why: tmuxBoundary, counts: true}, Survived},
		{"left alone and ended by itself", gone, nil, spare{why: "stop.spare"}, Exited},
		{"no look at all", identity.Finding{}, nil, spare{}, Unverifiable},
	}
	for _, row := range table {
		if got := fateOf(row.found, row.sent, row.spare); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

func TestVerdictOf(t *testing.T) {
	table := []struct {
		name       string
		fates      []Fate
		inspection string
		blind      bool
		want       Verdict
	}{
		{"nothing captured", nil, inspectedFull, false, Clean},
		{"all ended", []Fate{Exited, Terminated, Killed, ForeignFate}, inspectedFull, false, Clean},
		{"spared ones change nothing", []Fate{Spared, Exited}, inspectedFull, false, Clean},
		{"a partial search for look-alikes changes nothing", []Fate{Exited}, inspectedPartial, false, Clean},
		{"one lives", []Fate{Exited, Survived}, inspectedFull, false, Survivors},
		{"one unknown", []Fate{Exited, Unverifiable}, inspectedFull, false, Unverified},
		{"survivors outrank the unknown", []Fate{Unverifiable, Survived}, inspectedNone, true, Survivors},
		{"no view of the host", []Fate{Exited}, inspectedNone, false, Unverified},
		{"something below us could not be read", []Fate{Exited}, inspectedFull, true, Unverified},
	}
	for _, row := range table {
		var members []ReportMember
		for _, f := range row.fates {
			members = append(members, ReportMember{Fate: f})
		}
		if got := verdictOf(members, row.inspection, row.blind); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}
