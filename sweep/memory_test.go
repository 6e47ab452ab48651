//go:build unix

package sweep

import (
	"context"
	"slices"
	"strings"
	"testing"

	"hob/identity/sim"
	"hob/sweep/gpu"
)

// TestGPUMemory: what members held is in the report, the stop waits until it has
// been given back, and who else is on that GPU is named.
func TestGPUMemory(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	other := s.w.Init().Fork(sim.Proc{Comm: "other", Args: []string{"train", "x"}, Stranger: true})
	far := s.w.Init().Fork(sim.Proc{Comm: "far", Args: []string{"train", "y"}, Stranger: true})
	reads, size := 0, func(n int64) *int64 { n <<= 30; return &n }
	read := func(context.Context, []int) gpu.Reading {
		reads++
		r := gpu.Reading{Known: true, Uses: []gpu.Use{{PID: other.PID(), GPU: "0", Bytes: size(1)}, {PID: far.PID(), GPU: "1", Bytes: size(2)}}}
		if reads < 4 {
			r.Uses = append(r.Uses, gpu.Use{PID: s.cmd.PID(), GPU: "0", Bytes: size(16)})
		}
		return r
	}
	r, err := Stop(context.Background(), s.w.Host(), s.target, s.disk, s, Options{GPU: read})
	if err != nil || r.Verdict != Clean || reads != 4 {
		t.Errorf("%v, %s, read %d times", err, r.Verdict, reads)
	}
	if m := s.member(r, s.cmd); m.GPUBytes == nil || *m.GPUBytes != 16<<30 {
		t.Errorf("%+v", m)
	}
	if why := s.lookalike(r, other); !slices.Equal(why, []string{"gpu 0"}) {
		t.Errorf("the one on the same GPU: %v", why)
	}
	if why := s.lookalike(r, far); why != nil {
		t.Errorf("the one on another GPU: %v", why)
	}
}

// TestGPUMemoryThatIsNotGivenBack is said, after a bounded wait.
func TestGPUMemoryThatIsNotGivenBack(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	n := int64(5 << 30)
	read := func(context.Context, []int) gpu.Reading {
		return gpu.Reading{Known: true, Uses: []gpu.Use{{PID: s.cmd.PID(), GPU: "0", Bytes: &n}}}
	}
	r, err := Stop(context.Background(), s.w.Host(), s.target, s.disk, s, Options{GPU: read})
	if err != nil || !slices.ContainsFunc(r.Host.Notes, func(n string) bool { return strings.Contains(n, "5.0 GiB of GPU memory") }) {
		t.Errorf("%v, %q", err, r.Host.Notes)
	}
}

// TestGPUMemoryInAnotherPidNamespace is unknown: the driver's numbers are not ours.
func TestGPUMemoryInAnotherPidNamespace(t *testing.T) {
	s := newStage(t, Server, sim.Options{})
	s.w.Enter("4026532000", "4026531834")
	read := func(context.Context, []int) gpu.Reading { t.Error("was read"); return gpu.Reading{} }
	r, _ := Stop(context.Background(), s.w.Host(), s.target, s.disk, s, Options{GPU: read})
	if !slices.ContainsFunc(r.Host.Notes, func(n string) bool { return strings.Contains(n, "GPU memory is unknown") }) {
		t.Errorf("%q", r.Host.Notes)
	}
}
