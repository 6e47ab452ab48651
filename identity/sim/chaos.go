//go:build unix

package sim

import (
	"fmt"
	"time"
)

// Chaos says what may happen unforeseen at a point. The figures are percentages
// where nothing else is said; the zero value is a quiet world.
type Chaos struct {
	Density int // how likely something happens at a point
	Budget  int // how many things may happen in all
	Forks   int // how many of them may be forks in a tree
	Reuse   int // how likely a new process gets a number that was freed just now

	// How likely each is, in parts of the whole: a process of a tree forks, exits,
	// execs, makes a session, starts a thread, ends its leading thread, is stopped,
	// gets stuck in a driver for a while; a stranger comes or goes; a process of a
	// tree ends and its number is a stranger's at once.
	Fork, Exit, Exec, Setsid, Thread, HeadOff, Stop, Stick, Stranger, StrangerEnds, Swap int

	LookFails int // how likely a whole look (Snapshot, Children, Sockets) fails
	RowFails  int // how likely a row cannot be read

	// Child describes what a fork in a tree becomes, and Outsider a stranger.
	// Nil: a plain copy of the parent, a plain process of init.
	Child, Outsider func(w *World, src Source) Proc

	// Freezing says what is to happen while the caller has a cgroup frozen. Nil: nothing.
	Freezing func(g *Cgroup)
}

// point is a moment at which the world may move on, and at which the caller may
// be cut off.
func (w *World) point(what string) {
	w.mayCut(what)
	w.Pass(w.o.Cost)
	w.stir(w.o.Chaos.Density)
}

func (w *World) mayCut(what string) {
	w.step++
	if w.step > w.o.Steps {
		panic(Endless{w.step})
	}
	if do := w.hook; do != nil && w.step > w.hookAt {
		w.hook = nil
		do()
	}
	if w.cutOff || w.cutAt >= 0 && w.step > w.cutAt {
		if !w.cutOff {
			w.note(evCut, w.caller, 0)
		}
		w.cutOff = true // what it has deferred does not happen either
		panic(Cut{Step: w.step, Call: what})
	}
}

// Calm ends all chance: from now on only what is due happens.
func (w *World) Calm() { w.left = 0 }

// stir lets chance act.
func (w *World) stir(density int) {
	for range 3 {
		if w.busy || w.left <= 0 || !w.chance(density) {
			return
		}
		w.left--
		w.busy = true
		w.happen()
		w.busy = false
	}
}

// happen chooses one thing that happens.
func (w *World) happen() {
	c := w.o.Chaos
	odds := []struct {
		parts int
		do    func()
	}{
		{c.Stranger, w.strangerComes}, {c.StrangerEnds, w.strangerGoes}, {c.Exit, func() { w.ours((*Process).Exit) }},
		{c.Fork, w.treeForks}, {c.Exec, func() { w.ours(w.execs) }}, {c.Setsid, func() { w.ours(func(p *Process) { p.Setsid() }) }},
		{c.Thread, func() { w.ours(func(p *Process) { p.StartThread() }) }}, {c.HeadOff, func() { w.ours((*Process).EndLeader) }},
		{c.Swap, func() { w.ours(w.swap) }}, {c.Stop, func() { w.ours(stopOrGo) }}, {c.Stick, func() { w.ours(stick) }},
	}
	all := 0
	for _, o := range odds {
		all += o.parts
	}
	if all == 0 {
		return
	}
	n := w.src.Intn(all)
	for _, o := range odds {
		if n -= o.parts; n < 0 {
			o.do()
			return
		}
	}
}

// ours lets something happen to one process of the trees that is not a keeper,
// the caller or spared.
func (w *World) ours(do func(*Process)) {
	w.one(func(p *Process) bool { return p.tree != "" && !p.spared && !p.reaper && !p.dying && p != w.caller }, do)
}

func (w *World) one(fits func(*Process) bool, do func(*Process)) {
	var from []*Process
	for _, p := range w.all {
		if p.Alive() && fits(p) {
			from = append(from, p)
		}
	}
	if len(from) > 0 {
		p := from[w.src.Intn(len(from))]
		p.when(func() { do(p) })
	}
}

func (w *World) treeForks() {
	if w.forks <= 0 {
		return
	}
	w.forks--
	w.ours(func(p *Process) {
		d := Proc{}
		if w.o.Chaos.Child != nil {
			d = w.o.Chaos.Child(w, w.src)
		}
		p.Fork(d)
	})
}

func (w *World) execs(p *Process) {
	p.Exec("", fmt.Sprintf("/usr/bin/exec%d", w.step), "--x")
}

func stopOrGo(p *Process) {
	p.Stop()
	p.w.At(5*time.Millisecond, func() { p.take(contSignal) })
}

// stick holds a process in a driver for a while.
func stick(p *Process) {
	p.stuck = true
	p.w.At(time.Duration(1+p.w.src.Intn(50))*10*time.Millisecond, p.Unstick)
}

func (w *World) strangerComes() {
	d := Proc{Comm: "stranger", Args: []string{"stranger"}, Setsid: w.chance(50)}
	if w.o.Chaos.Outsider != nil {
		d = w.o.Chaos.Outsider(w, w.src)
	}
	d.Stranger = true
	w.Spawn(w.init, d)
}

// swap ends a process and gives its number to a stranger, or to a thread of one,
// if nothing holds it.
func (w *World) swap(p *Process) {
	p.Exit()
	if !w.fit(p.pid) {
		return
	}
	w.next = p.pid
	if w.chance(25) {
		w.one(func(q *Process) bool { return q.tree == "" && q != w.caller }, func(q *Process) { q.StartThread() })
		return
	}
	w.strangerComes()
}

func (w *World) strangerGoes() {
	w.one(func(p *Process) bool { return p.tree == "" && p.parent == w.init && p.chanced }, (*Process).Exit)
}
