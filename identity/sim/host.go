//go:build unix

package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"hob/identity"
)

// host is the Host over a world. Each method is a point.
type host struct{ w *World }

func (h host) Facts() identity.Facts {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return h.w.facts()
}

func (h host) Now() time.Time {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return h.w.Now()
}

// Snapshot goes through the numbers in ascending order, as getdents does, while
// the world goes on: a process may move behind the look.
func (h host) Snapshot(ctx context.Context, want identity.Field) (*identity.Table, error) {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.point("Snapshot")
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := w.look("list processes"); err != nil {
		return nil, err
	}
	t := &identity.Table{Hidden: w.hides()}
	for n := 1; n <= w.top(); n++ {
		p := w.byPID[n]
		if p == nil || w.unseen(p) {
			continue
		}
		if p.hidden || p != w.caller && w.chance(w.o.Chaos.RowFails) {
			t.Unreadable = append(t.Unreadable, identity.Unreadable{PID: n, Err: fmt.Errorf("read process %d: permission denied", n)})
			continue
		}
		t.Procs = append(t.Procs, w.row(p, want))
		t.SawSelf = t.SawSelf || p == w.caller
		w.stir(w.o.Chaos.Density / 4)
	}
	if !t.SawSelf {
		return t, fmt.Errorf("%w: the listing lacks our own process", identity.ErrUnverifiable)
	}
	return t, nil
}

// Bearers goes through the numbers as Snapshot does.
func (h host) Bearers(ctx context.Context, stamp uint64) (identity.Bearers, error) {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.point("Bearers")
	var out identity.Bearers
	if err := ctx.Err(); err != nil {
		return out, err
	}
	if w.o.OS != "linux" {
		return out, fmt.Errorf("look for stamps: %w", identity.ErrUnsupported)
	}
	if err := w.look("look for stamps"); err != nil {
		return out, err
	}
	for n := 1; n <= w.top(); n++ {
		p := w.byPID[n]
		if p == nil || w.unseen(p) {
			continue
		}
		switch {
		case p.hidden || p != w.caller && w.chance(w.o.Chaos.RowFails):
			out.Unread = append(out.Unread, n)
		case p.stamp == stamp:
			out.PIDs = append(out.PIDs, n)
		}
		w.stir(w.o.Chaos.Density / 4)
	}
	return out, nil
}

// look reports why nothing can be seen now, if so.
func (w *World) look(what string) error {
	if w.sightless() {
		return fmt.Errorf("%w: %s: no procfs", identity.ErrUnverifiable, what)
	}
	if w.chance(w.o.Chaos.LookFails) {
		return fmt.Errorf("%w: %s: input/output error", identity.ErrUnverifiable, what)
	}
	return nil
}

// unseen reports whether hidepid hides the row from the caller.
func (w *World) unseen(p *Process) bool { return w.hides() && p.uid != w.caller.uid }

// Children reads the list child by child. One that goes meanwhile makes the next
// slip by unseen, as in the kernel's own reader of this file.
func (h host) Children(pid int) ([]int, error) {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.point("Children")
	if w.o.NoChildren {
		return nil, identity.ErrUnsupported
	}
	if err := w.look(fmt.Sprintf("read children of %d", pid)); err != nil {
		return nil, err
	}
	p := w.byPID[pid]
	switch {
	case p == nil:
		return nil, fmt.Errorf("read children of %d: %w", pid, identity.ErrGone)
	case w.unseen(p), p.hidden:
		return nil, fmt.Errorf("read children of %d: %w", pid, identity.ErrUnverifiable)
	}
	var pids []int
	for i := 0; i < len(p.kids); i++ {
		pids = append(pids, p.kids[i].pid)
		w.stir(w.o.Chaos.Density)
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// row is what procfs shows of a process.
func (w *World) row(p *Process, want identity.Field) identity.Process {
	r := identity.Process{
		PID: p.pid, PGID: p.pgid, SID: p.sid, TTY: p.tty, Comm: p.comm, State: p.letter(), Threads: p.threads(),
		Start: p.token(), RSS: 4096, Kernel: p.kernel, UID: -1,
	}
	if p.parent != nil {
		r.PPID = p.parent.pid
	}
	private := w.caller.uid == 0 || p.uid == w.caller.uid
	dead := p.state == zombie || p.headOff
	fill := func(f identity.Field, ok bool, set func()) {
		switch {
		case want&f == 0:
		case ok:
			set()
		default:
			r.Missing |= f
		}
	}
	fill(identity.WantUser, true, func() { r.UID = p.uid })
	fill(identity.WantArgs, true, func() {
		if !dead {
			r.Args = slices.Clone(p.args)
		}
	})
	fill(identity.WantEnviron, private && !dead, func() { r.Environ = slices.Clone(p.env) })
	fill(identity.WantPidfs, w.pidfs(), func() { r.PIDFS = new(p.inode) })
	fill(identity.WantSignals, true, func() { r.SigIgn = p.ignored })
	fill(identity.WantWchan, private, func() { r.Wchan = wchan(p) })
	fill(identity.WantStarted, true, func() { r.Started = w.booted.Add(time.Duration(p.start) * tick) })
	fill(identity.WantDisk, false, nil)
	fill(identity.WantStamp, w.o.OS == "linux" && p.state != zombie, func() { r.Stamp = p.stamp })
	fill(identity.WantCwd, private && !dead, func() { r.Cwd = p.cwd })
	return r
}

func wchan(p *Process) string {
	if p.stuck {
		return "gpu_wait"
	}
	return "do_poll"
}

func (w *World) pidfs() bool { return !w.o.NoPidfd && !w.o.NoPidfs }

// Wait lets time pass until one of the processes has ended.
func (h host) Wait(ctx context.Context, hs []identity.Handle, deadline time.Time) error {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.point("Wait")
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if slices.ContainsFunc(hs, hasEnded) || !deadline.IsZero() && !w.Now().Before(deadline) {
			return nil
		}
		if !w.nextEvent(deadline) {
			panic("sim: waits for ever: nothing is due and there is no deadline")
		}
	}
}

func hasEnded(h identity.Handle) bool { return unwrap(h).ended() }

// unwrap finds the simulated handle below a test's wrapper.
func unwrap(x identity.Handle) *handle {
	for {
		switch h := x.(type) {
		case *handle:
			return h
		case interface{ Unwrap() identity.Handle }:
			x = h.Unwrap()
		default:
			panic(fmt.Sprintf("sim: Wait on a handle of another host: %T", x))
		}
	}
}

// nextEvent lets the next thing happen, by the deadline at the latest.
func (w *World) nextEvent(deadline time.Time) bool {
	until := w.now + time.Hour
	if !deadline.IsZero() {
		until = deadline.Sub(w.booted)
	}
	if len(w.timers) == 0 && deadline.IsZero() {
		return false
	}
	if w.left > 0 && w.o.Chaos.Density > 0 {
		nap := w.now + time.Duration(1+w.src.Intn(20))*5*time.Millisecond
		w.runNext(min(until, nap))
		w.stir(w.o.Chaos.Density)
		return true
	}
	w.runNext(until)
	return true
}
