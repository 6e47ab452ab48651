package tasks

import (
	"errors"
	"time"

	"hob/identity"
	"hob/sweep"
)

// look is one round of the rolling capture. It is written when it has changed,
// so that it is there should this keeper be killed.
func (k *keeper) look(now time.Time) {
	k.lookAt = now.Add(lookEvery)
	if k.life.restart.again && k.life.reported {
		k.lookAt = now.Add(nearEvery) // a stop waits for us to end
	}
	if k.reaper.Empty() || k.life.reported {
		return
	}
	c, changed, err := sweep.Observe(bg, k.h, k.target(), k.capture)
	k.complain("capture", err)
	k.walk = k.h.Now().Sub(now)
	if next := now.Add(lookRatio * k.walk); next.After(k.lookAt) {
		k.lookAt = next
	}
	k.capture = c
	if !changed && !k.behind {
		return
	}
	err = k.keep(func() error { return k.dir.WriteCapture(c, false) })
	k.behind = err != nil
	if !errors.Is(err, ErrStopBegun) {
		k.complain("capture.json", err)
	}
}

// tree verifies the members of the rolling capture, and hands out each that
// lives; the Handle is closed afterwards.
func (k *keeper) tree(each func(identity.Handle)) (unknown bool) {
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

// measure sums up the resident memory of the tree. One member that cannot be
// read makes the sum unknown.
func (k *keeper) measure(now time.Time) {
	k.sizeAt = now.Add(sizeEvery)
	if k.reaper.Empty() {
		k.rec.MemoryBytes, k.rec.MeasuredAt = nil, nil
		return
	}
	var sum int64
	known := true
	unknown := k.tree(func(pin identity.Handle) {
		row, err := pin.Read(0)
		switch {
		case errors.Is(err, identity.ErrGone):
		case err != nil || row.RSS < 0:
			known = false
		default:
			sum += row.RSS
		}
	})
	k.rec.MemoryBytes, k.rec.MeasuredAt = nil, &now
	if known && !unknown {
		k.rec.MemoryBytes = &sum
	}
	if took := k.h.Now().Sub(now); lookRatio*took > sizeEvery {
		k.sizeAt = now.Add(lookRatio * took)
	}
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
