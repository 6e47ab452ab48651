package sweep

import (
	"context"
	"errors"
	"fmt"

	"hob/identity"
)

// orphanage is how the tree stands to its keeper when the report is made.
type orphanage int

const (
	kept      orphanage = iota // the keeper lives, or has said that nothing is left to see to
	abandoned                  // it ended without a word
	scattered                  // there is no subreaper: orphans were never its
)

func (s *stopper) orphanage() orphanage {
	tr := s.tr
	k := tr.keeper
	switch {
	case k == nil:
		return kept
	case !tr.facts.Subreaper && tr.t.Stamp != 0:
		return scattered
	case !tr.facts.Subreaper, k.living(), k.unknown(), tr.endedByUs(), s.fx.KeeperDone(), s.fx.KeeperLeft():
		return kept
	}
	return abandoned
}

// endedByUs reports whether the keeper's end left nobody behind: it was hob that
// ended it, which happens only when nothing is below it, or its boot is over.
func (tr *tree) endedByUs() bool {
	k := tr.keeper
	rebooted := tr.facts.Boot != "" && k.Ref.Boot != tr.facts.Boot && k.found.Verdict == identity.Gone
	return rebooted || k.was("TERM") || k.was("KILL")
}

// stamps is what a look at the whole host says of who bears the keeper's stamp.
type stamps struct {
	orphans orphanage
	none    bool // the keeper had no stamp
	borne   int  // by processes that are no members
	unread  int  // processes of which nobody can tell
	gone    int  // that bore it and went while they were looked at
}

// unsure reports whether something of the tree may live that nobody has seen, or
// that is only named.
func (st stamps) unsure() bool {
	return st.orphans != kept && (st.none || st.borne+st.unread+st.gone > 0)
}

// note is what a reader must know of it, "" when there is nothing to say.
func (st stamps) note(keeper int, taken string) string {
	why := "orphans are not its keeper's here"
	if st.orphans == abandoned {
		why = fmt.Sprintf("the keeper %d was ended by another hand", keeper)
	}
	switch {
	case st.orphans == kept:
		return ""
	case st.none:
		return why + ", and had not stamped its tree: nobody can tell what left that after the capture of " + taken
	case st.borne > 0:
		return fmt.Sprintf("%s: %s its stamp, which is inherited, but were not captured, so they are only named", why, bear(st.borne))
	case st.unread > 0:
		return fmt.Sprintf("%s, and the limits of %s could not be read, where its stamp would be", why, count(st.unread))
	case st.gone > 0:
		return why + ": one process after the other bears its stamp, and goes before it can be looked at"
	case st.orphans == abandoned:
		return why + ": nobody else bears its stamp, so nothing else of its tree is left"
	}
	return ""
}

func bear(n int) string {
	if n == 1 {
		return "1 process bears"
	}
	return count(n) + " bear"
}

// stampLooks bounds the looks at a host on which stamped processes come and go.
const stampLooks = 10

// scanUntilSure looks at all processes: once, or, where they are to be known by the
// stamp, until somebody is found that bears it, or nobody has been for as many
// looks in a row as a round of a stop has to be quiet. The first of these reads
// everything; those that confirm it ask for the stamp alone.
func (s *stopper) scanUntilSure(ctx context.Context, w wanted) scan {
	for looks := 1; ; looks++ {
		out := s.scanHost(ctx, w)
		if w.stamp == 0 || out.inspection == inspectedNone || out.stamps.borne > 0 {
			return out
		}
		if out.stamps == (stamps{}) {
			if out.stamps = s.stirring(ctx, w.stamp); out.stamps == (stamps{}) {
				return out
			}
		}
		if looks == stampLooks {
			return out
		}
	}
}

// stirring is what there is to say against a look that has found nobody with the
// stamp. Who is met is not named here, for the next whole look does that.
func (s *stopper) stirring(ctx context.Context, stamp uint64) (st stamps) {
	for range quietRounds - 1 {
		b, err := s.tr.h.Bearers(ctx, stamp)
		if err != nil {
			st.unread++
		}
		for _, pid := range b.PIDs {
			st.gone += count01(pid > 1 && s.stirs(pid))
		}
		for _, pid := range b.Unread {
			st.unread += count01(pid > 1 && s.shut(pid))
		}
		if st != (stamps{}) {
			return st
		}
	}
	return st
}

// stirs reports whether one that bears the stamp is, or was until now, more than a
// member or a corpse that is known.
func (s *stopper) stirs(pid int) bool {
	pin, err := s.tr.h.Open(pid)
	if err != nil {
		return true
	}
	defer pin.Close()
	return !s.ours(pin.Ref()) && (!pin.Verify().Zombie || !s.tr.knownCorpse(pin.Ref()))
}

// shut reports whether one that did not show its stamp lives, as far as one can tell.
func (s *stopper) shut(pid int) bool {
	pin, err := s.tr.h.Open(pid)
	if err != nil {
		return !errors.Is(err, identity.ErrGone)
	}
	defer pin.Close()
	return pin.Verify().Verdict != identity.Gone
}

// weigh takes a row of the process table into account that is no look-alike's. What
// does not show its stamp may just be about to end: it is asked once more, under a pin.
func (s *stopper) weigh(st *stamps, p identity.Process) {
	missing := p.Missing&identity.WantStamp != 0
	if p.Kernel || p.PID <= 1 || p.State == 'Z' && p.Threads <= 1 || !missing && p.Stamp != s.tr.t.Stamp || s.ours(rowRef(p)) {
		return
	}
	pin, err := s.tr.h.Open(p.PID)
	if err == nil {
		defer pin.Close()
		p, err = pin.Read(identity.WantStamp)
	}
	zombie := err == nil && p.State == 'Z' && p.Threads <= 1
	switch {
	case (errors.Is(err, identity.ErrGone) || zombie) && !missing:
		st.gone++
	case errors.Is(err, identity.ErrGone), zombie:
	case err != nil || p.Missing&identity.WantStamp != 0:
		st.unread++
	}
}
