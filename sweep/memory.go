package sweep

import (
	"context"
	"fmt"
	"slices"
	"time"

	"hob/sweep/gpu"
)

// GPU memory is given back some time after a process has ended, and no event
// tells when.
const (
	gpuBound = 5 * time.Second
	gpuLook  = 200 * time.Millisecond
)

// readGPU looks at the GPUs. Drivers count processes in the first pid namespace,
// so in another one their numbers are other processes'.
func (s *stopper) readGPU(ctx context.Context, pids []int) gpu.Reading {
	switch {
	case s.o.GPU == nil:
		return gpu.Reading{Notes: []string{gpu.NotRead}}
	case s.tr.facts.OS == "linux" && !s.tr.facts.InitPIDNS:
		return gpu.Reading{Notes: []string{gpu.OtherPIDs}}
	}
	return s.o.GPU(ctx, pids)
}

// livingPIDs are the numbers of the members that live.
func (s *stopper) livingPIDs() []int {
	var pids []int
	for _, n := range s.tr.nodes {
		if n.living() {
			pids = append(pids, n.Ref.PID)
		}
	}
	return pids
}

// weighGPU notes what each member holds, before anything is stopped.
func (s *stopper) weighGPU(ctx context.Context) {
	pids := s.livingPIDs()
	s.gpu = s.readGPU(ctx, pids)
	for _, n := range s.tr.nodes {
		if n.living() {
			n.gpu = s.gpu.Of(n.Ref.PID)
		}
	}
	s.gpus = s.gpu.GPUs(pids)
}

// settleGPU waits until the memory of members that have ended has been given
// back, and returns who holds memory on their GPUs then.
func (s *stopper) settleGPU(ctx context.Context) (holders map[int]string, notes []string) {
	notes = s.gpu.Notes
	if len(s.gpus) == 0 {
		return nil, notes
	}
	limit := s.tr.h.Now().Add(gpuBound)
	for {
		now := s.readGPU(ctx, s.livingPIDs())
		left := s.unreturned(now)
		if len(left) == 0 || !now.Known || !s.tr.h.Now().Before(limit) {
			return heldOn(now, s.gpus), append(notes, left...)
		}
		if s.tr.h.Wait(ctx, nil, earliest(limit, s.tr.h.Now().Add(gpuLook))) != nil {
			return heldOn(now, s.gpus), append(notes, left...)
		}
	}
}

// unreturned names memory that the driver still counts for members that have ended.
func (s *stopper) unreturned(r gpu.Reading) []string {
	var out []string
	for _, n := range s.tr.nodes {
		if !ended(n.Fate) || n.gpu == nil || *n.gpu == 0 || s.inUse(n.Ref.PID) {
			continue
		}
		if held := r.Of(n.Ref.PID); held != nil && *held > 0 {
			out = append(out, fmt.Sprintf("%s of GPU memory are still counted for %d, which has ended", amount(held), n.Ref.PID))
		}
	}
	return out
}

// inUse reports whether the number is a living process's, a stranger's by now.
func (s *stopper) inUse(pid int) bool {
	pin, err := s.tr.h.Open(pid)
	if err != nil {
		return false
	}
	defer pin.Close()
	return pin.Verify().Err() == nil
}

// heldOn are the processes that hold memory on these GPUs, and on which.
func heldOn(r gpu.Reading, gpus []string) map[int]string {
	out := map[int]string{}
	for _, u := range r.Uses {
		if slices.Contains(gpus, u.GPU) {
			out[u.PID] = u.GPU
		}
	}
	return out
}
