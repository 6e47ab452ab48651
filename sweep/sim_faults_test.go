//go:build unix

package sweep_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/identity/sim"
)

// Each fault is planted between hob and the world, and must be found. A suite
// that cannot find them proves nothing when it finds none.
func TestPlantedFaultsAreFound(t *testing.T) {
	for _, f := range []struct {
		name  string
		plant func(*scene)
		sign  string // what the check says of it
	}{
		{"check before pin", func(s *scene) { s.host = early{s.host, s} }, "a stranger was signalled"},
		{"kill by number", func(s *scene) { s.host = byNumber{s.host, s} }, "a stranger was signalled"},
		{"the number is the identity", func(s *scene) { s.host = trusting{s.host, s} }, "a stranger was signalled"},
		{"a record outlives a reboot", func(s *scene) { s.host = bootless{s.host} }, "a stranger was signalled"},
		{"one-shot capture", func(s *scene) { s.host = oneShot{s.host, map[int][]int{}} }, "is not named"},
		{"a zombie counts as alive", func(s *scene) { s.host = undead{s.host, s} }, "is dead"},
		{"could not look is read as empty", func(s *scene) { s.host = carefree{s.host, s} }, "the verdict is clean"},
		{"unverifiable is read as gone", func(s *scene) { s.host = hasty{s.host} }, "and lives"},
		{"what leaves when the keeper is killed bears no stamp", func(s *scene) {
			s.host, s.disk.Cgroup, s.group = plain{s.host}, nil, nil // in a cgroup it would be found
			s.w.At(time.Duration(300+s.src.Intn(300))*time.Millisecond, s.lose)
		}, "the verdict is clean"},
		{"kill without looking who is frozen", func(s *scene) {
			s.faulty(func(g identity.Cgroup) identity.Cgroup { return unlooked{g, s} })
		}, "a stranger was signalled"},
		{"not thawing", func(s *scene) {
			s.faulty(func(g identity.Cgroup) identity.Cgroup { return unthawed{g} })
		}, "is left frozen by hob"},
		{"not thawing what a hob that was cut has frozen", func(s *scene) {
			s.faulty(func(g identity.Cgroup) identity.Cgroup { return &uncut{Cgroup: g} })
		}, "is left frozen by hob"},
		{"thawing what somebody else has frozen", func(s *scene) {
			s.faulty(func(g identity.Cgroup) identity.Cgroup { return thawing{g} })
		}, "took over what somebody else has frozen"},
		{"judging before the freeze is complete", func(s *scene) {
			s.faulty(func(g identity.Cgroup) identity.Cgroup { return hurried{g} })
		}, "while others in it ran"},
		{"the path is the cgroup", func(s *scene) {
			s.host = grouped{s.host, func(c identity.Cgroups) identity.Cgroups { return byPath{c, s} }}
		}, "a stranger was signalled"},
		{"whoever is in the cgroup is the task's", func(s *scene) { s.host = welcoming{s.host, s} }, "a stranger was signalled"},
		{"signals before the capture is saved", func(s *scene) { s.forgetful = true }, "before the capture was saved"},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20_000) {
				wrong := play(sim.Seed(seed), f.plant).wrong
				if strings.Contains(strings.Join(wrong, "\n"), f.sign) {
					t.Logf("found by seed %d", seed)
					return
				}
			}
			t.Errorf("20,000 schedules did not find it")
		})
	}
}

// over wraps every handle of a host.
type over struct {
	identity.Handle
	s *scene
}

func (o over) Unwrap() identity.Handle { return o.Handle }

// early reads the evidence before it pins.
type early struct {
	identity.Host
	s *scene
}

type earlyHandle struct {
	over
	row *identity.Process
}

func (h early) Open(pid int) (identity.Handle, error) {
	first, err := h.Host.Open(pid)
	if err != nil {
		return nil, err
	}
	row, err := first.Read(identity.WantArgs | identity.WantEnviron | identity.WantUser)
	first.Close()
	if err != nil {
		return nil, err
	}
	pin, err := h.Host.Open(pid)
	if err != nil {
		return nil, err
	}
	return &earlyHandle{over{pin, h.s}, &row}, nil
}

func (h *earlyHandle) Read(want identity.Field) (identity.Process, error) {
	if row := h.row; row != nil {
		h.row = nil
		return *row, nil
	}
	return h.Handle.Read(want)
}

// byNumber verifies through the pin, and then kills the number.
type byNumber struct {
	identity.Host
	s *scene
}

type numberHandle struct{ over }

func (h byNumber) Open(pid int) (identity.Handle, error) {
	pin, err := h.Host.Open(pid)
	if err != nil {
		return nil, err
	}
	return numberHandle{over{pin, h.s}}, nil
}

func (h byNumber) Verify(ref identity.Ref) (identity.Handle, identity.Finding) {
	pin, f := h.Host.Verify(ref)
	if pin == nil {
		return nil, f
	}
	return numberHandle{over{pin, h.s}}, f
}

func (h numberHandle) Signal(sig syscall.Signal) error {
	if f := h.Handle.Verify(); f.Verdict != identity.Owned {
		return f.Err()
	}
	return h.s.w.KillNumber(h.Handle.Ref().PID, sig)
}

// trusting takes whoever has the recorded number for the recorded process.
type trusting struct {
	identity.Host
	s *scene
}

func (h trusting) Verify(ref identity.Ref) (identity.Handle, identity.Finding) {
	pin, err := h.Host.Open(ref.PID)
	if err != nil {
		return nil, identity.Finding{Verdict: identity.Gone}
	}
	if f := pin.Verify(); f.Verdict != identity.Owned {
		pin.Close()
		return nil, f
	}
	return pin, identity.Finding{Verdict: identity.Owned}
}

// bootless compares tokens without the boot that they count in.
type bootless struct{ identity.Host }

func (h bootless) Verify(ref identity.Ref) (identity.Handle, identity.Finding) {
	ref.Boot, ref.PIDFS = h.Facts().Boot, nil
	return h.Host.Verify(ref)
}

// oneShot lists the children of each process once and for all.
type oneShot struct {
	identity.Host
	seen map[int][]int
}

func (h oneShot) Children(pid int) ([]int, error) {
	if kids, ok := h.seen[pid]; ok {
		return kids, nil
	}
	kids, err := h.Host.Children(pid)
	if err == nil {
		h.seen[pid] = kids
	}
	return kids, err
}

// undead takes what was not reaped for alive.
type undead struct {
	identity.Host
	s *scene
}

type undeadHandle struct{ over }

func (h undead) Open(pid int) (identity.Handle, error) {
	pin, err := h.Host.Open(pid)
	if err != nil {
		return nil, err
	}
	return undeadHandle{over{pin, h.s}}, nil
}

func (h undead) Verify(ref identity.Ref) (identity.Handle, identity.Finding) {
	pin, f := h.Host.Verify(ref)
	if f.Zombie {
		if pin, err := h.Host.Open(ref.PID); err == nil {
			return undeadHandle{over{pin, h.s}}, identity.Finding{Verdict: identity.Owned}
		}
	}
	if pin == nil {
		return nil, f
	}
	return undeadHandle{over{pin, h.s}}, f
}

func (h undeadHandle) Verify() identity.Finding {
	f := h.Handle.Verify()
	if f.Zombie {
		return identity.Finding{Verdict: identity.Owned}
	}
	return f
}

// carefree sees nothing where it could not look.
type carefree struct {
	identity.Host
	s *scene
}

func (h carefree) Snapshot(ctx context.Context, want identity.Field) (*identity.Table, error) {
	t, err := h.Host.Snapshot(ctx, want)
	if err != nil {
		t, err = &identity.Table{SawSelf: true}, nil
	}
	t.Unreadable, t.Hidden = nil, false
	return t, err
}

func (h carefree) Children(pid int) ([]int, error) {
	kids, err := h.Host.Children(pid)
	if errors.Is(err, identity.ErrUnverifiable) {
		return nil, nil
	}
	return kids, err
}

func (h carefree) Open(pid int) (identity.Handle, error) {
	pin, err := h.Host.Open(pid)
	if errors.Is(err, identity.ErrUnverifiable) {
		return nil, identity.ErrGone
	}
	return pin, err
}

// hasty takes a process that it could not verify for gone.
type hasty struct{ identity.Host }

func (h hasty) Verify(ref identity.Ref) (identity.Handle, identity.Finding) {
	pin, f := h.Host.Verify(ref)
	if f.Verdict == identity.Unverifiable {
		f.Verdict = identity.Gone
	}
	return pin, f
}

// lose has a daemon leave with nothing of the task about it, and the keeper killed.
func (s *scene) lose() {
	if !s.command.Alive() || !s.keeper.Alive() {
		return
	}
	if mid := s.command.Fork(sim.Proc{}); mid != nil {
		mid.Fork(sim.Proc{Setsid: true, Args: []string{"d"}, Env: []string{"A=1"}})
		mid.Exit()
	}
	s.forced = true
	s.w.Kill(s.keeper, syscall.SIGKILL)
}

// plain shows no stamps, and says that there are none.
type plain struct{ identity.Host }

func (h plain) Snapshot(ctx context.Context, want identity.Field) (*identity.Table, error) {
	t, err := h.Host.Snapshot(ctx, want)
	if t != nil {
		for i := range t.Procs {
			t.Procs[i].Stamp = 0
		}
	}
	return t, err
}

func (h plain) Bearers(ctx context.Context, stamp uint64) (identity.Bearers, error) {
	b, err := h.Host.Bearers(ctx, stamp)
	b.PIDs = nil
	return b, err
}
