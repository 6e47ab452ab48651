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
// enough to be looked at is not nothing, in whichever look it shows.
func TestWhoComesAndGoesWithAStamp(t *testing.T) {
	for _, c := range []struct {
		name         string
		whole, light int // looks that meet it
		want         Verdict
	}{
		{"nobody", 0, 0, Clean},
		{"in two whole looks", 2, 0, Clean},
		{"in all whole looks", 1000, 0, Unverified},
		{"in two that confirm", 0, 2, Clean},
		{"in all that confirm", 0, 1000, Unverified},
	} {
		s := newStage(t, Server, sim.Options{})
		s.observe()
		s.w.Kill(s.keeper, syscall.SIGKILL)
		s.w.Pass(time.Second)
		h := &passing{Host: s.w.Host(), whole: c.whole, light: c.light}
		r, err := Stop(context.Background(), h, s.target, s.disk, s, Options{Reason: "down"})
		if err != nil || r.Verdict != c.want {
			t.Errorf("%s: %s, %v, %q", c.name, r.Verdict, err, r.Host.Notes)
		}
	}
}

// passing shows a process that bears the stamp and has ended, so many times.
type passing struct {
	identity.Host
	whole, light int
}

func (h *passing) Snapshot(ctx context.Context, want identity.Field) (*identity.Table, error) {
	t, err := h.Host.Snapshot(ctx, want)
	if err == nil && want&identity.WantStamp != 0 && h.whole > 0 {
		h.whole--
		t.Passing = append(t.Passing, identity.Process{PID: 63, Start: "linux:5", Stamp: stageStamp})
	}
	return t, err
}

func (h *passing) Bearers(ctx context.Context, stamp uint64) (identity.Bearers, error) {
	b, err := h.Host.Bearers(ctx, stamp)
	if err == nil && h.light > 0 {
		h.light--
		b.PIDs = append(b.PIDs, 63)
	}
	return b, err
}

// TestWhatConfirmsALook: behind the one that reads everything somebody may have
// moved. Who is met then is named, and what cannot be told is said.
func TestWhatConfirmsALook(t *testing.T) {
	bearer := sim.Proc{Comm: "d", Args: []string{"d", "x"}, Env: []string{"A=1"}, Setsid: true, Stamp: stageStamp}
	for _, c := range []struct {
		name    string
		meet    func(*stage, *identity.Bearers) error // what the n-th such look meets
		from    int
		verdict Verdict
		whole   int // looks that read everything
		named   []string
	}{
		{"nothing", nil, 0, Clean, 1, nil},
		{"one that bears the stamp, at the second", func(s *stage, b *identity.Bearers) error {
			b.PIDs = append(b.PIDs, s.w.Init().Fork(bearer).PID())
			return nil
		}, 2, Unverified, 2, []string{"stamp"}},
		{"a corpse that nobody reaps", func(s *stage, b *identity.Bearers) error {
			if len(b.PIDs) == 0 {
				p := s.w.Spawn(s.w.Init(), sim.Proc{Stranger: true, NeverReap: true}).Fork(bearer)
				p.Exit()
				b.PIDs = append(b.PIDs, p.PID())
			}
			return nil
		}, 1, Clean, 2, nil},
		{"one that lives and cannot be asked", func(s *stage, b *identity.Bearers) error {
			b.Unread = append(b.Unread, s.w.Init().Fork(sim.Proc{Stranger: true}).PID())
			return nil
		}, 1, Unverified, stampLooks, nil},
		{"one that has ended and cannot be asked", func(_ *stage, b *identity.Bearers) error {
			b.Unread = append(b.Unread, 63)
			return nil
		}, 1, Clean, 1, nil},
		{"nothing, for it cannot look", func(*stage, *identity.Bearers) error { return identity.ErrUnverifiable }, 1, Unverified, stampLooks, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, Server, sim.Options{})
			s.observe()
			s.w.Kill(s.keeper, syscall.SIGKILL)
			s.w.Pass(time.Second)
			h := &meeting{Host: s.w.Host(), s: s, meet: c.meet, from: c.from}
			r, err := Stop(context.Background(), h, s.target, s.disk, s, Options{Reason: "down"})
			if err != nil || r.Verdict != c.verdict || h.whole != c.whole {
				t.Errorf("%s, %v, after %d whole looks, %q", r.Verdict, err, h.whole, r.Host.Notes)
			}
			var named []string
			for _, l := range r.Lookalikes {
				named = append(named, l.Why...)
			}
			if !slices.Equal(named, c.named) {
				t.Errorf("named by %q, want %q", named, c.named)
			}
		})
	}
}

// meeting counts the whole looks, and lets something happen in the lighter ones.
type meeting struct {
	identity.Host
	s     *stage
	meet  func(*stage, *identity.Bearers) error
	from  int
	light int
	whole int
}

func (h *meeting) Snapshot(ctx context.Context, want identity.Field) (*identity.Table, error) {
	h.whole += count01(want&identity.WantStamp != 0)
	return h.Host.Snapshot(ctx, want)
}

func (h *meeting) Bearers(ctx context.Context, stamp uint64) (identity.Bearers, error) {
	b, err := h.Host.Bearers(ctx, stamp)
	if h.light++; err == nil && h.meet != nil && h.light >= h.from {
		err = h.meet(h.s, &b)
	}
	return b, err
}
