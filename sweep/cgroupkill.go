package sweep

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"hob/identity"
	"hob/identity/cut"
)

// occupant is a process in the task's cgroup as the decision to end all of it by
// one write sees it.
type occupant struct {
	pid  int
	gone bool // it has ended since it was listed
	may  bool // a member: evidence, verdict and rules permit a signal
}

// vetoOf decides whether cgroup.kill may be used: every process in the cgroup and
// below it is owned, and none is the keeper, the caller, a boundary or spared,
// which no rule permits to signal. It returns what stands in the way.
func vetoOf(in []occupant) error {
	for _, o := range in {
		if !o.gone && !o.may {
			return fmt.Errorf("%w: process %d in it may not be signalled", errVeto, o.pid)
		}
	}
	return nil
}

var errVeto = errors.New("not all of the cgroup is the task's to end")

// killCgroup ends all that is in the task's cgroup by one write, which no fork
// outruns. All of it is in the capture, on disk, before; what is forked after that
// is born in the cgroup and ends with it. When it may not be done, or cannot, the
// rounds end one by one what may be ended.
func (s *stopper) killCgroup() {
	h := s.tr.home
	if h == nil || h.gone || s.noKill {
		return
	}
	s.tr.look(s.ctx, nil)
	if h.group == nil || !h.listed || len(h.procs) == 0 || vetoOf(s.occupants(h.procs)) != nil {
		return
	}
	told := s.condemn(h.procs)
	if len(told) == 0 {
		return // it was done, and they are ending
	}
	s.tr.dirty = true
	s.save()
	cut.Point("signal", "cgroup")
	var last []int
	err := h.group.Kill(func(p identity.CgroupProcs) error {
		last = p.PIDs
		err := s.allow(p.PIDs)
		if err == nil {
			told = append(told, s.condemn(p.PIDs)...)
		}
		return err
	})
	cut.Point("signalled", "cgroup")
	s.noKill = errors.Is(err, identity.ErrUnsupported)
	for _, n := range told {
		if err != nil || !slices.Contains(last, n.Ref.PID) {
			s.pardon(n)
		} else {
			n.refused = ""
		}
	}
	if err == nil {
		s.fx.Note("KILL to the %d processes of the cgroup", len(last))
	}
}

// occupants are the processes of a list as they are known.
func (s *stopper) occupants(pids []int) []occupant {
	out := make([]occupant, 0, len(pids))
	for _, pid := range pids {
		o := occupant{pid: pid}
		if n := s.tr.live[pid]; n != nil {
			o.may = s.tr.may(n)
		}
		o.gone = !o.may && s.tr.ended(pid)
		out = append(out, o)
	}
	return out
}

// ended reports whether nobody who lives has the number.
func (tr *tree) ended(pid int) bool {
	pin, err := tr.h.Open(pid)
	if err != nil {
		return errors.Is(err, identity.ErrGone)
	}
	defer pin.Close()
	return pin.Verify().Verdict == identity.Gone
}

// allow judges the list that was made right before the write. What was forked
// since the capture is looked at as everything in the cgroup is.
func (s *stopper) allow(pids []int) error {
	if vetoOf(s.occupants(pids)) != nil {
		s.tr.closeCgroup()
	}
	return vetoOf(s.occupants(pids))
}

// condemn writes down the KILL of those of a list that have not had one.
func (s *stopper) condemn(pids []int) []*node {
	var out []*node
	for _, pid := range pids {
		if n := s.tr.live[pid]; n != nil && s.tr.may(n) && !n.told("KILL", s.began) {
			s.intend(n, syscall.SIGKILL)
			out = append(out, n)
		}
	}
	return out
}

// pardon takes back a KILL that was written down and did not reach the process.
func (s *stopper) pardon(n *node) {
	if last := len(n.Signals) - 1; last >= 0 && strings.HasPrefix(n.Signals[last].Signal, "KILL") {
		n.Signals = n.Signals[:last]
		s.tr.dirty = true
	}
}
