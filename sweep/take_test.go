//go:build unix

package sweep

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"hob/identity"
	"hob/identity/sim"
)

func TestTake(t *testing.T) {
	setup := func(t *testing.T) (*stage, *sim.Process, *sim.Process) {
		s := newStage(t, Server, sim.Options{})
		s.observe()
		like := s.w.Init().Fork(sim.Proc{Comm: "like", Args: []string{"server", "--port", "8000"}, Stranger: true})
		kid := like.Fork(sim.Proc{Comm: "kid", Args: []string{"kid"}, Stranger: true})
		s.cmd.Exit()
		s.w.Pass(time.Second)
		return s, like, kid
	}
	sweepIt := func(s *stage, living bool, takes ...Take) (Report, error) {
		return Sweep(context.Background(), s.w.Host(), s.target, s.disk, s, living, Options{Reason: "sweep", Take: takes})
	}
	of := func(p *sim.Process) Take { return Take{p.PID(), p.Ref().Start} }

	t.Run("the one that was listed is ended, and what is below it", func(t *testing.T) {
		s, like, kid := setup(t)
		r, err := sweepIt(s, false, of(like))
		if m := s.member(r, like); err != nil || m.Fate != Terminated || !slices.Equal(m.Evidence, []Evidence{Command, Taken}) || kid.Alive() || r.Verdict != Clean {
			t.Errorf("%v, %+v, kid alive %v", err, m, kid.Alive())
		}
	})
	refused := map[string]func(s *stage, like, kid *sim.Process) (Report, error){
		"its number is another's now": func(s *stage, like, _ *sim.Process) (Report, error) {
			return sweepIt(s, false, Take{like.PID(), "linux:7"})
		},
		"no look-alike":       func(s *stage, _, kid *sim.Process) (Report, error) { return sweepIt(s, false, of(kid)) },
		"one of two is wrong": func(s *stage, like, kid *sim.Process) (Report, error) { return sweepIt(s, false, of(like), of(kid)) },
		"of a living task":    func(s *stage, like, _ *sim.Process) (Report, error) { return sweepIt(s, true, of(like)) },
		"it has become a tmux": func(s *stage, like, _ *sim.Process) (Report, error) {
			like.Exec("tmux: server", "server", "--port", "8000")
			return sweepIt(s, false, of(like))
		},
		"it is hob's own": func(s *stage, like, _ *sim.Process) (Report, error) {
			s.target.Spared = append(s.target.Spared, like.Ref())
			return sweepIt(s, false, of(like))
		},
	}
	for name, take := range refused {
		t.Run(name, func(t *testing.T) {
			s, like, kid := setup(t)
			_, err := take(s, like, kid)
			if !errors.Is(err, ErrRefused) || !like.Alive() || !kid.Alive() || len(s.w.Ledger().Deliveries) > 0 {
				t.Errorf("%v; %v", err, s.w.Ledger().Deliveries)
			}
		})
	}
}

func TestTakeOfOneThatHasEnded(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	s.observe()
	like := s.w.Init().Fork(sim.Proc{Comm: "like", Args: []string{"server", "--port", "8000"}, Stranger: true})
	take := Take{like.PID(), like.Ref().Start}
	s.cmd.Exit()
	like.Exit()
	s.w.Pass(time.Second)
	_, err := Sweep(context.Background(), s.w.Host(), s.target, s.disk, s, false, Options{Take: []Take{take}})
	if !errors.Is(err, identity.ErrGone) || errors.Is(err, ErrRefused) {
		t.Errorf("%v", err)
	}
}

func TestTakeDryRun(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	s.observe()
	like := s.w.Init().Fork(sim.Proc{Comm: "like", Args: []string{"server", "--port", "8000"}, Stranger: true})
	s.cmd.Exit()
	s.w.Pass(time.Second)
	r, err := Sweep(context.Background(), s.w.Host(), s.target, s.disk, s, false, Options{DryRun: true, Take: []Take{{like.PID(), like.Ref().Start}}})
	if m := s.member(r, like); err != nil || m.Note != "would be ended" || !like.Alive() {
		t.Errorf("%v, %+v", err, m)
	}
}

func TestParseTake(t *testing.T) {
	table := []struct {
		text string
		want Take
		ok   bool
	}{
		{"4121:linux:88125", Take{4121, "linux:88125"}, true},
		{"4121", Take{}, false}, {"4121:", Take{}, false}, {"x:linux:1", Take{}, false}, {"-4:linux:1", Take{}, false}, {"0:linux:1", Take{}, false}, {"", Take{}, false},
	}
	for _, row := range table {
		got, err := ParseTake(row.text)
		if got != row.want || (err == nil) != row.ok || row.ok && got.String() != row.text {
			t.Errorf("%q: %v, %v", row.text, got, err)
		}
	}
}
