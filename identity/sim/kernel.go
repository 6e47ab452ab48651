//go:build unix

package sim

import (
	"slices"
	"time"
)

const tick = 10 * time.Millisecond

// Spawn forks a process off parent and, where the description says so, execs. It
// returns nil when the parent is dead, frozen or waits in a vfork, or no number is free
// (EAGAIN).
func (w *World) Spawn(parent *Process, d Proc) *Process {
	if parent == nil || !parent.Alive() || parent.frozen || parent.waits() {
		return nil
	}
	return w.create(parent, d)
}

// waits reports whether the process waits for a child that it has forked as vfork does:
// until that has run another program, or has ended.
func (p *Process) waits() bool { return p.vforked != nil && p.vforked.Alive() }

func (w *World) create(parent *Process, d Proc) *Process {
	pid := w.number()
	if pid == 0 {
		return nil
	}
	w.serial, w.inode = w.serial+1, w.inode+1
	p := &Process{w: w, serial: w.serial, inode: w.inode, pid: pid, boot: w.boot, start: w.ticks(), pgid: pid, sid: pid, cgroup: w.groups}
	if parent != nil {
		p.inherit(parent)
	}
	w.hold(pid)
	w.hold(p.pgid)
	w.hold(p.sid)
	w.past[pid] = p.start
	w.all, w.ever, w.byPID[pid] = append(w.all, p), append(w.ever, p), p
	p.chanced, p.born = w.busy, w.Now()
	w.note(evFork, p, 0)
	p.belong(d)
	if d.VFork && parent != nil {
		parent.vforked = p
	}
	if p.due() != nil && !d.Kernel {
		// It is frozen before it has run at all, and still is to all who look what its
		// parent is.
		p.frozen = true
		p.w.Note("%v is born frozen", p)
		p.later = append(p.later, func() { p.begin(d) })
		return p
	}
	p.begin(d)
	return p
}

// begin is what a child does first.
func (p *Process) begin(d Proc) {
	p.become(d)
	p.release()
	for _, b := range d.Do {
		if b.Start != nil && p.Alive() {
			b.Start(p)
		}
	}
}

// release has a parent go on that has waited for this child.
func (p *Process) release() {
	if q := p.forker; q != nil && q.vforked == p {
		if q.vforked = nil; q.Alive() && q.state == running && !q.stuck && !q.frozen {
			q.run()
		}
	}
}

// belong is what fork alone settles: whose it is, and in which cgroup it is born.
func (p *Process) belong(d Proc) {
	if d.Stranger {
		p.tree, p.spared = "", false
	}
	if d.Tree != "" {
		p.tree = d.Tree
	}
	if d.Cgroup != nil {
		p.cgroup = d.Cgroup
	}
}

// inherit is what fork copies. Being a subreaper is not.
func (p *Process) inherit(from *Process) {
	p.parent, p.forker, p.pgid, p.sid, p.tty = from, from, from.pgid, from.sid, from.tty
	p.uid, p.comm, p.args, p.env, p.cwd, p.cgroup, p.alien = from.uid, from.comm, from.args, from.env, from.cwd, from.cgroup, from.alien
	p.stamp, p.ignored, p.tree, p.spared = from.stamp, from.ignored, from.tree, from.spared
	p.sockets = slices.Clone(from.sockets)
	from.kids, from.had, from.empty = append(from.kids, p), true, false
}

// become applies the description: what the child does between fork and exec, and
// the exec.
func (p *Process) become(d Proc) {
	p.spared = p.spared || d.Spared
	if d.Setsid {
		p.Setsid()
	}
	if d.TTY != 0 {
		p.tty, p.tail = d.TTY, p.pgid
	}
	if d.Setpgid {
		p.setpgid(p.pid)
	}
	if d.User != 0 {
		p.uid = d.User
	}
	if d.Args != nil || d.Comm != "" {
		p.Exec(d.Comm, d.Args...)
	}
	if d.Env != nil {
		p.env = d.Env
	}
	p.cwd = or(d.Cwd, p.cwd)
	if d.Stamp != 0 {
		p.stamp = d.Stamp
	}
	p.stuck, p.hidden, p.kernel = d.Stuck, d.Unreadable, d.Kernel
	p.reaper, p.reaps, p.never, p.endsEmpty, p.do = d.Subreaper, d.Reap, d.NeverReap, d.EndsEmpty, d.Do
	for _, s := range d.Ignore {
		p.ignored |= bit(s)
	}
	for _, port := range d.Listen {
		p.Listen(port)
	}
	for range d.Threads {
		p.StartThread()
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// Exec replaces the program: the identity stays, handlers and other threads go,
// ignored signals stay ignored.
func (p *Process) Exec(comm string, args ...string) {
	if len(args) > 0 {
		p.args = args
		comm = or(comm, base(args[0]))
	}
	p.comm, p.do = or(comm, p.comm), nil
	p.dropThreads()
	p.w.note(evExec, p, 0)
}

func base(path string) string { return path[1+lastSlash(path):] }

func lastSlash(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '/' {
			return i
		}
	}
	return -1
}

// Setsid makes the process the leader of a new session without a terminal. It
// reports false (EPERM) for the leader of a process group.
func (p *Process) Setsid() bool {
	if p.pgid == p.pid {
		return false
	}
	p.setpgid(p.pid)
	p.w.release(p.sid)
	p.sid, p.tty = p.pid, 0
	p.w.hold(p.sid)
	p.w.note(evSetsid, p, 0)
	return true
}

func (p *Process) setpgid(pgid int) {
	p.w.release(p.pgid)
	p.pgid = pgid
	p.w.hold(pgid)
}

// StartThread adds a thread, which takes a number too.
func (p *Process) StartThread() bool {
	tid := p.w.number()
	if tid == 0 || !p.Alive() {
		return false
	}
	p.w.hold(tid)
	p.tids, p.w.byTID[tid] = append(p.tids, tid), p
	p.w.note(evThread, p, tid)
	return true
}

// EndLeader ends the leading thread. With another thread alive the process
// lives on, although procfs shows state Z.
func (p *Process) EndLeader() {
	if len(p.tids) == 0 {
		p.Exit()
		return
	}
	p.headOff = true
	p.w.note(evHeadOff, p, 0)
}

func (p *Process) dropThreads() {
	for _, tid := range p.tids {
		delete(p.w.byTID, tid)
		p.w.release(tid)
	}
	p.tids, p.headOff = nil, false
}

// Exit ends the process: it is a zombie until its parent, or whoever inherits
// it, reaps it.
func (p *Process) Exit() {
	w := p.w
	if !p.Alive() || p == w.init {
		return
	}
	p.dropThreads()
	p.state, p.died = zombie, w.Now()
	p.sockets, p.later, p.pending = nil, nil, nil
	w.note(evExit, p, 0)
	p.release()
	w.leaveTerminal(p)
	w.orphan(p)
	w.tell(p)
}

// leaveTerminal is what a session leader's end does: its terminal is nobody's
// any more, and the foreground group gets HUP and CONT.
func (w *World) leaveTerminal(p *Process) {
	if p.sid != p.pid || p.tail == 0 {
		return
	}
	for _, q := range slices.Clone(w.all) {
		if q.sid == p.sid {
			q.tty = 0
		}
	}
	w.signalGroup(p.tail)
	p.tail = 0
}

// orphan gives the children of a dead process to the nearest living subreaper
// above it, or to init, and wakes stopped groups that nobody can continue now.
func (w *World) orphan(p *Process) {
	heir := w.heir(p)
	kids := p.kids
	p.kids = nil
	for _, k := range kids {
		k.parent = heir
		heir.kids, heir.had, heir.empty = append(heir.kids, k), true, false
		w.note(evReparent, k, heir.pid)
		if k.state == zombie {
			w.awaitReaper(k)
		}
	}
	w.wakeOrphans(p.pgid)
	for _, k := range kids {
		w.wakeOrphans(k.pgid)
	}
}

func (w *World) heir(p *Process) *Process {
	if w.o.NoSubreaper {
		return w.init
	}
	for q := p.parent; q != nil; q = q.parent {
		if q.reaper && q.Alive() {
			return q
		}
	}
	return w.init
}

// wakeOrphans sends HUP and CONT to a group that has a stopped member and no
// member whose parent is in another group of the same session.
func (w *World) wakeOrphans(pgid int) {
	halted := false
	for _, q := range w.all {
		if q.pgid != pgid || q.state == zombie {
			continue
		}
		if q.parent != nil && q.parent.sid == q.sid && q.parent.pgid != pgid {
			return
		}
		halted = halted || q.state == stopped
	}
	if halted {
		w.signalGroup(pgid)
	}
}

// tell lets the parent know of a death.
func (w *World) tell(p *Process) {
	parent := p.parent
	if parent == nil {
		return
	}
	w.awaitReaper(p)
	for _, b := range parent.do {
		if b.Child != nil {
			parent.when(func() { b.Child(parent, p) })
		}
	}
}

// awaitReaper has a zombie reaped by its parent of now, after as long as the
// parent takes.
func (w *World) awaitReaper(p *Process) {
	parent := p.parent
	reap := func() {
		if p.parent == parent {
			w.reap(p)
		}
	}
	switch {
	case parent.never:
	case parent.reaps == 0:
		parent.when(reap)
	default:
		parent.After(parent.reaps*time.Duration(1+w.src.Intn(4))/4, reap)
	}
}

// reap frees the numbers of a zombie, as far as nobody else holds them.
func (w *World) reap(p *Process) {
	if p.state != zombie {
		return
	}
	p.state = reaped
	w.note(evReap, p, 0)
	delete(w.byPID, p.pid)
	w.all = without(w.all, p)
	if q := p.parent; q != nil {
		q.kids = without(q.kids, p)
		q.noteEmpty()
	}
	w.release(p.pid)
	w.release(p.pgid)
	w.release(p.sid)
}

// noteEmpty is wait saying ECHILD. A keeper then ends, in a moment.
func (p *Process) noteEmpty() {
	p.empty = p.had && len(p.kids) == 0
	if p.empty && p.endsEmpty {
		p.After(time.Millisecond, func() {
			if p.endsEmpty && p.Empty() {
				p.Exit()
			}
		})
	}
}

func without(all []*Process, p *Process) []*Process {
	i := slices.Index(all, p)
	if i < 0 {
		return all
	}
	return slices.Delete(slices.Clone(all), i, i+1)
}
