//go:build unix

package sim

// hold takes a number: it is not given to anybody new while a process has it as
// its pid, a thread as its id, or a process as its group or session.
func (w *World) hold(n int) { w.held[n]++ }

func (w *World) release(n int) {
	w.held[n]--
	if w.held[n] == 0 {
		w.freed = append(w.freed, n)
		if len(w.freed) > 8 {
			w.freed = w.freed[1:]
		}
	}
}

// reserved numbers, above the others, are kept for hob: a world that is full does
// not keep the next invocation from starting.
const reserved = 3

// top is the largest number.
func (w *World) top() int { return w.o.PIDs + reserved }

// taken reports whether anything holds the number.
func (w *World) taken(n int) bool { return n > 0 && n < len(w.held) && w.held[n] > 0 }

// number finds a free one: the next in order, as the kernel does it, or, by
// chance, one that was freed a moment ago, as if the numbers had wrapped just
// now. It is 0 when all are taken.
func (w *World) number() int {
	if n := w.reuse(); n != 0 {
		return n
	}
	for range w.o.PIDs {
		n := w.next
		if w.next++; w.next > w.o.PIDs {
			w.next = 2
		}
		if w.fit(n) {
			return n
		}
	}
	for n := w.o.PIDs + 1; w.starting && n <= w.top(); n++ {
		if w.fit(n) {
			return n
		}
	}
	return 0
}

func (w *World) reuse() int {
	if len(w.freed) == 0 || !w.chance(w.o.Chaos.Reuse) {
		return 0
	}
	n := w.freed[len(w.freed)-1-w.src.Intn(len(w.freed))]
	if n > w.o.PIDs || !w.fit(n) {
		return 0
	}
	return n
}

// fit reports whether the number may be given out now. Without a pidfs the start
// token alone tells two holders apart, so a number is not given out twice in a
// tick unless SameTick asks for that.
func (w *World) fit(n int) bool {
	if w.held[n] > 0 {
		return false
	}
	twin := w.past[n] == w.ticks() && w.past[n] != 0
	return !twin || w.o.SameTick || !w.o.NoPidfs && !w.o.NoPidfd
}

func (w *World) ticks() int64 { return int64(w.now / tick) }
