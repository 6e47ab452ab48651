//go:build unix

package sim

import (
	"context"
	"slices"
	"time"

	"hob/identity"
)

// Freeze has everything in a cgroup and below it frozen, or go on, as root says so.
// Each is frozen a little later, one that is stuck in a driver not before it comes
// out of that; all go on at once.
func (w *World) Freeze(g *Cgroup, on bool) {
	w.Note("cgroup %s, inode %d: freeze %t", g.Dir(), g.id, on)
	g.freeze(on, false)
}

func (g *Cgroup) freeze(on, byHob bool) {
	if on != g.frozen {
		g.through, g.byHob, g.since = false, false, g.w.now
	}
	g.frozen, g.byHob = on, on && (g.byHob || byHob)
	for _, p := range slices.Clone(g.w.all) {
		if p.cgroup == g || p.cgroup.below(g) {
			p.chill()
		}
	}
	g.w.witness()
}

// Frozen reports whether cgroup.freeze reads 1, and whether the caller has written it.
func (g *Cgroup) Frozen() (on, byHob bool) { return g.frozen && !g.gone, g.byHob }

// end is what a reboot does.
func (g *Cgroup) end() {
	g.gone = true
	for _, k := range g.kids {
		k.end()
	}
}

// Frozen reports whether the process is frozen: it neither forks nor moves nor ends,
// but by KILL, until it is moved elsewhere or its cgroup is thawed.
func (p *Process) Frozen() bool { return p.frozen }

// due is the cgroup for whose sake a process is to be frozen, or nil.
func (p *Process) due() *Cgroup {
	for g := p.cgroup; g != nil; g = g.above {
		if g.frozen {
			return g
		}
	}
	return nil
}

// chill has a process go on that is to be frozen no more, and freezes one that is to
// be, in a moment.
func (p *Process) chill() {
	switch due := p.due(); {
	case due == nil && p.frozen:
		p.frozen = false
		p.run()
	case due != nil && !p.frozen && !p.kernel:
		p.w.At(time.Duration(p.w.src.Intn(8))*100*time.Microsecond, p.freeze)
	}
}

func (p *Process) freeze() {
	if p.Alive() && !p.stuck && p.due() != nil {
		p.frozen = true
		p.w.witness()
	}
}

// witness notes of each cgroup that is being frozen whether all in it are.
func (w *World) witness() {
	for _, p := range w.all {
		if g := p.due(); g != nil && !g.through {
			g.through = g.still()
		}
	}
}

// still reports whether nobody in it and below it runs.
func (g *Cgroup) still() bool {
	return !slices.ContainsFunc(g.w.all, func(p *Process) bool {
		return p.Alive() && !p.kernel && !p.frozen && (p.cgroup == g || p.cgroup.below(g))
	})
}

func (d groupDir) Freezing() (bool, error) {
	if err := d.freezer("read cgroup.freeze"); err != nil {
		return false, err
	}
	return d.g.frozen, nil
}

func (d groupDir) SetFrozen(on bool) error {
	if err := d.freezer("write cgroup.freeze"); err != nil {
		return err
	}
	w := d.f.w
	w.Note("hob: freeze %t of %s", on, d.g.Dir())
	all := w.ledger.Freezes
	ours := len(all) > 0 && all[len(all)-1].On // who thaws and freezes it meanwhile cannot be told from hob
	w.ledger.Freezes = append(w.ledger.Freezes, Freeze{At: w.Now(), On: on,
		Theirs: d.g.frozen && !d.g.byHob && !ours && (!on || w.now-d.g.since > 10*time.Millisecond)})
	d.g.freeze(on, true)
	if do := w.o.Chaos.Freezing; on && do != nil && w.left > 0 {
		do(d.g)
	}
	return nil
}

// freezer is a point: an open directory has its file, whatever else cannot be seen.
func (d groupDir) freezer(what string) error {
	w := d.f.w
	w.point(what)
	switch {
	case d.g.gone:
		return identity.ErrGone
	case w.o.NoFreezer:
		return identity.ErrUnsupported
	}
	return nil
}

func (d groupDir) AwaitFrozen(ctx context.Context, deadline time.Time) (bool, error) {
	w := d.f.w
	for {
		if err := d.freezer("poll cgroup.events"); err != nil {
			return false, err
		}
		still := d.g.due() && d.g.still()
		d.g.through = d.g.through || still
		if still || ctx.Err() != nil || !w.Now().Before(deadline) {
			return still, nil
		}
		w.nextEvent(deadline)
	}
}

// due reports whether it is to be frozen, for its own sake or that of one above it.
func (g *Cgroup) due() bool {
	for ; g != nil; g = g.above {
		if g.frozen {
			return true
		}
	}
	return false
}
