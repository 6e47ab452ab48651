package identity

import (
	"testing"
	"time"
)

// TestSystemsWithoutPins: macOS and the BSDs run the unpinned way for every
// record, with the same rows before it.
func TestSystemsWithoutPins(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*scene)
		want Finding
	}{
		{"lives", func(*scene) {}, Finding{Verdict: Owned, Row: "8", Unpinned: true}},
		{"token differs", func(s *scene) { s.ref.Start = "freebsd:778" }, Finding{Verdict: Foreign, Row: "8", Unpinned: true}},
		{"token of Linux", func(s *scene) { s.ref.Start = "linux:777" }, Finding{Verdict: Unverifiable, Row: "1"}},
		{"absent", func(s *scene) { s.kernel.rows = []rowAnswer{{err: ErrGone}} }, Finding{Verdict: Gone, Row: "8", Unpinned: true}},
		{"not read", func(s *scene) { s.kernel.rows = []rowAnswer{{err: ErrUnverifiable}} }, Finding{Verdict: Unverifiable, Row: "8", Unpinned: true}},
		{"zombie", func(s *scene) { s.kernel.rows[0].p.State = 'Z' }, Finding{Verdict: Gone, Row: "8", Unpinned: true, Zombie: true, ZombieOf: 17}},
		{"corpse without a start", func(s *scene) { s.kernel.rows[0].p.State, s.kernel.rows[0].p.Start = 'Z', "" }, Finding{Verdict: Gone, Row: "8", Unpinned: true, Zombie: true, ZombieOf: 17}},
		{"others are hidden: absent, another's", func(s *scene) { s.facts.HidePID, s.kernel.rows = true, []rowAnswer{{err: ErrGone}} }, Finding{Verdict: Unverifiable, Row: "8", Unpinned: true}},
		{"others are hidden: absent, nobody's", func(s *scene) {
			s.facts.HidePID, s.ref.UID, s.kernel.rows = true, nil, []rowAnswer{{err: ErrGone}}
		}, Finding{Verdict: Unverifiable, Row: "8", Unpinned: true}},
		{"others are hidden: absent, ours", func(s *scene) {
			s.facts.HidePID, s.facts.UID, s.kernel.rows = true, 1000, []rowAnswer{{err: ErrGone}}
		}, Finding{Verdict: Gone, Row: "8", Unpinned: true}},
		{"last boot", func(s *scene) { s.ref.Boot = "b0" }, Finding{Verdict: Gone, Row: "3"}},
		{"another jail", func(s *scene) { s.ref.PIDNS = "jail:3" }, Finding{Verdict: Unverifiable, Row: "4"}},
		{"legacy", func(s *scene) { s.ref = Ref{PID: ourPID, Start: "freebsd:777"} }, Finding{Verdict: Unverifiable, Row: "legacy"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := bsdScene()
			c.set(s)
			w := bareWay{sys: s.kernel, facts: s.facts, row: "8"}
			h, got := w.verify(s.ref)
			if got.Reason = ""; got != c.want {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
			checkHandle(t, s.kernel, h, got)
		})
	}
}

func bsdScene() *scene {
	f := Facts{OS: "freebsd", Machine: "m1", Host: "box", Boot: "b1", InitPIDNS: true}
	r := f.newRef(ourPID, time.Now())
	r.Start, r.UID = "freebsd:777", ptr(1000)
	k := ourKernel()
	k.rows[0].p.Start = "freebsd:777"
	return &scene{r, f, k}
}
