//go:build unix

package sweep

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/identity/sim"
)

// TestTheEndOfAKeeper: when its tree is shown to be empty, and when it is not.
func TestTheEndOfAKeeper(t *testing.T) {
	// unseen is a daemon that nobody captured, with nothing of the task about it.
	unseen := sim.Proc{Comm: "d", Args: []string{"d", "x"}, Env: []string{"A=1"}, Setsid: true}
	kill := func(s *stage) {
		s.w.Kill(s.keeper, syscall.SIGKILL)
		s.w.Pass(time.Second)
	}
	lose := func(s *stage) *sim.Process {
		mid := s.cmd.Fork(sim.Proc{})
		d := mid.Fork(unseen)
		mid.Exit()
		kill(s)
		return d
	}
	for _, c := range []struct {
		name    string
		o       sim.Options
		end     func(*stage) *sim.Process // who is to be named
		verdict Verdict
		note    string // "" for none about the keeper
	}{
		{"by itself", sim.Options{}, func(*stage) *sim.Process { return nil }, Clean, ""},
		{"killed, with all captured", sim.Options{}, func(s *stage) *sim.Process { kill(s); return nil }, Clean, "nobody else bears its stamp"},
		{"killed, with somebody unseen", sim.Options{}, lose, Unverified, "1 process bears its stamp"},
		{"killed, with a session leader whose leading thread has ended", sim.Options{}, func(s *stage) *sim.Process {
			d := lose(s)
			d.StartThread()
			d.EndLeader()
			return d
		}, Unverified, "1 process bears its stamp"},
		{"killed, without a stamp", sim.Options{}, func(s *stage) *sim.Process {
			s.target.Stamp = 0
			kill(s)
			return nil
		}, Unverified, "had not stamped its tree"},
		{"killed, and somebody cannot be asked", sim.Options{}, func(s *stage) *sim.Process {
			s.w.Init().Fork(sim.Proc{Comm: "x", Args: []string{"x"}, Stranger: true, Unreadable: true})
			kill(s)
			return nil
		}, Unverified, "the limits of 1 process could not be read"},
		{"after it has left the rest alone", sim.Options{}, func(s *stage) *sim.Process {
			lose(s)
			s.left = true
			return nil
		}, Clean, ""},
		{"with its boot", sim.Options{}, func(s *stage) *sim.Process { s.w.Reboot(); return nil }, Clean, ""},
		{"by itself, without a subreaper", sim.Options{NoSubreaper: true}, func(s *stage) *sim.Process {
			mid := s.cmd.Fork(sim.Proc{})
			d := mid.Fork(unseen)
			mid.Exit()
			s.w.Pass(time.Second)
			return d
		}, Unverified, "orphans are not its keeper's here: 1 process bears its stamp"},
		{"killed, on a system without stamps", sim.Options{OS: "freebsd"}, func(s *stage) *sim.Process { kill(s); return nil },
			Unverified, "had not stamped its tree"},
		{"killed, on a system without a subreaper", sim.Options{OS: "darwin"}, func(s *stage) *sim.Process { kill(s); return nil }, Clean, "no subreaper"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, Server, c.o)
			s.target.Ports = nil // which whoever is forked by the server has, too
			s.observe()
			named := c.end(s)
			r := s.stop()
			if r.Verdict != c.verdict {
				t.Errorf("verdict %s, want %s", r.Verdict, c.verdict)
			}
			said := slices.ContainsFunc(r.Host.Notes, func(n string) bool { return strings.Contains(n, c.note) })
			spoke := slices.ContainsFunc(r.Host.Notes, func(n string) bool { return strings.Contains(n, "keeper") })
			if c.note != "" && !said || c.note == "" && spoke {
				t.Errorf("notes %q, want %q", r.Host.Notes, c.note)
			}
			if named == nil {
				if len(r.Lookalikes) > 0 {
					t.Errorf("look-alikes %+v", r.Lookalikes)
				}
				return
			}
			if why := s.lookalike(r, named); !slices.Equal(why, []string{"stamp"}) || !named.Alive() {
				t.Errorf("%v is named by %q", named, why)
			}
		})
	}
}

// TestWhoComesAndGoesWithAStamp: a chain of processes of which none lives long
// enough to be looked at is not nothing.
func TestWhoComesAndGoesWithAStamp(t *testing.T) {
	for looks, want := range map[int]Verdict{2: Clean, 1000: Unverified} {
		s := newStage(t, Server, sim.Options{})
		s.observe()
		s.w.Kill(s.keeper, syscall.SIGKILL)
		s.w.Pass(time.Second)
		h := &passing{Host: s.w.Host(), left: looks}
		r, err := Stop(context.Background(), h, s.target, s.disk, s, Options{Reason: "down"})
		if err != nil || r.Verdict != want {
			t.Errorf("%d links: %s, %v, %q", looks, r.Verdict, err, r.Host.Notes)
		}
	}
}

// passing shows a process that bears the stamp and has ended, so many times.
type passing struct {
	identity.Host
	left int
}

func (h *passing) Snapshot(ctx context.Context, want identity.Field) (*identity.Table, error) {
	t, err := h.Host.Snapshot(ctx, want)
	if err == nil && want&identity.WantStamp != 0 && h.left > 0 {
		h.left--
		t.Passing = append(t.Passing, identity.Process{PID: 63, Start: "linux:5", Stamp: stageStamp})
	}
	return t, err
}
