//go:build unix

package sim

import (
	"container/heap"
	"time"
)

// timer is something that will happen at a time.
type timer struct {
	at    time.Duration
	order uint64
	do    func()
}

type timers []timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].order < t[j].order
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)   { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// At does something after a while of the host's time.
func (w *World) At(in time.Duration, do func()) {
	w.order++
	heap.Push(&w.timers, timer{at: w.now + in, order: w.order, do: do})
}

// Pass lets time pass, with what falls due in it.
func (w *World) Pass(d time.Duration) {
	for until := w.now + d; w.runNext(until); {
	}
}

// runNext runs the first timer that is due by then and reports true, or moves
// the clock there and reports false.
func (w *World) runNext(until time.Duration) bool {
	if len(w.timers) == 0 || w.timers[0].at > until {
		w.now = max(w.now, until)
		return false
	}
	t := heap.Pop(&w.timers).(timer)
	w.now = max(w.now, t.at)
	t.do()
	return true
}
