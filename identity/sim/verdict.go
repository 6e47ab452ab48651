package sim

import (
	"strings"

	"hob/identity"
)

// Verify looks at a recorded process.
func (h host) Verify(ref identity.Ref) (identity.Handle, identity.Finding) {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.point("Verify")
	p, f := w.judge(ref)
	if f.Verdict != identity.Owned {
		return nil, f
	}
	if w.o.MaxPins > 0 && w.pins >= w.o.MaxPins {
		return nil, identity.Finding{Verdict: identity.Unverifiable, Row: "7", Reason: "too many open files"}
	}
	pinned := w.pin(p)
	pinned.ref = ref
	return pinned, f
}

// judge is the verdict table over the simulated kernel.
func (w *World) judge(ref identity.Ref) (*Process, identity.Finding) {
	f := w.facts()
	switch {
	case ref.PID < 1, ref.PIDFS == nil && ref.Start == "", ref.Start != "" && !strings.HasPrefix(string(ref.Start), f.OS+":"):
		return nil, finding(identity.Unverifiable, "1", "the record is malformed")
	case f.Boot == "":
		return nil, finding(identity.Unverifiable, "2", "the boot id cannot be read")
	case ref.Boot != f.Boot && ref.Machine == f.Machine && ref.Machine != "" && ref.Host == f.Host && ref.PIDNS == f.PIDNS && f.InitPIDNS:
		return nil, finding(identity.Gone, "3", "recorded before the last boot")
	case ref.Boot != f.Boot:
		return nil, finding(identity.Unverifiable, "3", "recorded in another boot")
	case ref.PIDNS != f.PIDNS:
		return nil, finding(identity.Unverifiable, "4", "recorded in another pid namespace")
	}
	p := w.byPID[ref.PID]
	if p == nil && w.byTID[ref.PID] != nil {
		return nil, finding(identity.Gone, "6", "the number is a thread now")
	}
	if p == nil {
		return nil, finding(identity.Gone, "5", "no such process")
	}
	return p, w.compare(ref, p)
}

func (w *World) compare(ref identity.Ref, p *Process) identity.Finding {
	f := w.facts()
	switch {
	case ref.PIDFS != nil && f.Pidfs:
		if *ref.PIDFS != p.inode {
			return finding(identity.Foreign, "9", "the number belongs to another process now")
		}
	case w.sightless(), w.unseen(p), p.hidden, ref.TimeNS != f.TimeNS, ref.Start == "":
		return finding(identity.Unverifiable, "10a", "its start token cannot be read")
	case ref.Start != p.token():
		return finding(identity.Foreign, "10", "the number belongs to another process now")
	}
	out := poll(p)
	out.Unpinned = w.o.NoPidfd
	return out
}

// poll is what poll(pidfd) says.
func poll(p *Process) identity.Finding {
	switch p.state {
	case zombie:
		f := finding(identity.Gone, "12", "exited and not reaped")
		f.Zombie = true
		if p.parent != nil {
			f.ZombieOf = p.parent.pid
		}
		return f
	case reaped:
		return finding(identity.Gone, "12", "exited")
	}
	return identity.Finding{Verdict: identity.Owned, Row: "11"}
}

func finding(v identity.Verdict, row, reason string) identity.Finding {
	return identity.Finding{Verdict: v, Row: row, Reason: reason}
}
