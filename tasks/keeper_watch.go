package tasks

import (
	"errors"
	"time"

	"hob/identity"
)

// look is one round of the rolling capture. It is written when it has changed,
// so that it is there should this keeper be killed.
func (k *keeper) look(now time.Time) {
	k.lookAt = now.Add(lookEvery)
	if k.life.restart.again && k.life.reported {
		k.lookAt = now.Add(nearEvery) // a stop waits for us to end
	}
	if k.reaper.Empty() || k.life.reported {
		k.watch.Close()
		return
	}
	spent := identity.Spent()
	c, changed, err := k.watch.Look(bg, k.target(), k.capture)
	k.complain("capture", err)
	k.walk = cost(k.h.Now().Sub(now), identity.Spent()-spent)
	if next := now.Add(lookRatio * withAll(k.walk, spent-k.spent)); next.After(k.lookAt) {
		k.lookAt = next
	}
	k.spent = spent
	k.capture = c
	if !changed && !k.behind {
		return
	}
	if c.Phase == PhaseRolling && k.bare && k.aloneAsRecorded() {
		k.bare, k.behind = false, true // the next look writes it, or the command's end
		return
	}
	k.writeCapture()
}

// writeCapture writes the rolling capture.
func (k *keeper) writeCapture() {
	err := k.keep(func() error { return k.dir.WriteCapture(k.capture, false) })
	k.behind = err != nil
	if !errors.Is(err, ErrStopBegun) {
		k.complain("capture.json", err)
	}
}

// aloneAsRecorded reports whether the tree is the command alone: then keeper.json
// says all that the capture would.
func (k *keeper) aloneAsRecorded() bool {
	c := k.capture
	return len(c.Members) == 1 && k.rec.Command != nil && c.Members[0].Ref.PID == k.rec.Command.PID &&
		c.Members[0].EndedAt == nil && len(c.Notes) == 0 && len(c.Guests) == 0
}

// cost is what something took of a processor: not the time that it had to wait for
// one, nor what others in this process used beside it.
func cost(took, spent time.Duration) time.Duration {
	if spent <= 0 {
		return took // it cannot be told here
	}
	return min(took, spent)
}

// withAll is what a look costs with all that comes with it: the process wakes, reads
// task.json, measures. since is what was used from the begin of the look before; a
// part of it that is larger than the walk itself is other work, as copying a log.
func withAll(walk, since time.Duration) time.Duration {
	return max(walk, min(since, 3*walk))
}

// tree verifies the members of the rolling capture, and hands out each that
// lives, for as long as the call takes.
func (k *keeper) tree(each func(identity.Handle)) (unknown bool) {
	if unknown, ok := k.watch.Each(each); ok {
		return unknown
	}
	for _, m := range k.capture.Members {
		if m.EndedAt != nil {
			continue
		}
		pin, f := k.h.Verify(m.Ref)
		unknown = unknown || f.Verdict == identity.Unverifiable
		if pin != nil {
			each(pin)
			_ = pin.Close()
		}
	}
	return unknown
}

// measure sums up the resident memory of the tree and, as long as that tells whether
// a start still moves, what it had read from disk. One member that cannot be read
// makes a sum unknown.
func (k *keeper) measure(now time.Time) {
	spent := identity.Spent()
	k.sizeAt = now.Add(sizeEvery)
	k.rec.MemoryBytes, k.rec.MeasuredAt, k.disk = nil, nil, nil
	if k.reaper.Empty() {
		return
	}
	var memory, disk sum
	want := identity.WantDisk
	if k.rec.WasReady {
		want, disk.missing = 0, true
	}
	unknown := k.tree(func(pin identity.Handle) {
		row, err := pin.Read(want)
		if errors.Is(err, identity.ErrGone) {
			return
		}
		memory.add(row.RSS, err == nil && row.RSS >= 0)
		disk.add(row.DiskRead, err == nil && row.Missing&identity.WantDisk == 0)
	})
	k.rec.MeasuredAt = &now
	if !unknown {
		k.rec.MemoryBytes, k.disk = memory.known(), disk.known()
	}
	if took := cost(k.h.Now().Sub(now), identity.Spent()-spent); lookRatio*took > sizeEvery {
		k.sizeAt = now.Add(lookRatio * took)
	}
}

// sum of numbers of which one may be unknown.
type sum struct {
	total   int64
	missing bool
}

func (s *sum) add(n int64, known bool) {
	s.total += n
	s.missing = s.missing || !known
}

func (s *sum) known() *int64 {
	if s.missing {
		return nil
	}
	return &s.total
}

// watchOwner asks for a stop when the owner of a contained run has ended.
func (k *keeper) watchOwner() {
	if k.spec.Lifetime != Contained {
		return
	}
	owner, f := k.h.Verify(*k.spec.Owner)
	if owner == nil {
		k.note("the owner is %s: %s", f.Verdict, f.Reason)
		if f.Verdict != identity.Unverifiable {
			k.ask("owner")
		}
		return
	}
	go func() {
		defer owner.Close()
		if err := k.h.Wait(bg, []identity.Handle{owner}, time.Time{}); err != nil {
			k.post(func() { k.complain("owner", err) })
			return
		}
		k.post(func() { k.ask("owner") })
	}()
}
