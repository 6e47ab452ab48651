// Package gpu tells which processes hold GPU memory, as far as the host lets it.
//
// NVIDIA's driver is asked through nvidia-smi on the PATH; other drivers say it
// in the fdinfo of their DRM files. What cannot be read is not zero: it is
// missing from the [Reading], and a note says why.
package gpu

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"
)

// Use is the memory that one process holds on one GPU.
type Use struct {
	PID   int    `json:"pid"`
	GPU   string `json:"gpu"`   // "0" where the driver numbers them, else what it calls the device
	Bytes *int64 `json:"bytes"` // null when the driver does not say
}

// Reading is one look at the GPUs.
type Reading struct {
	Uses  []Use
	Known bool     // false: the GPUs could not all be looked at, so no Use means nothing
	Notes []string // why something is missing, in words

	unread []int // processes that could not be asked
}

// Reader reads. The zero value is this host.
type Reader struct {
	SMI  string        // path of nvidia-smi; "": looked up on the PATH
	Proc string        // where procfs is; "": /proc
	Wait time.Duration // for nvidia-smi, which hangs with a broken driver; 0: 3 s

	// Run runs a program to its end, and returns what it has written to its
	// standard output; nil: as os/exec does. Ask says what nvidia-smi would; nil:
	// it is asked.
	Run func(ctx context.Context, argv []string) ([]byte, error)
	Ask func(ctx context.Context) ([]Use, error)
}

// ErrNoSMI means that there is no nvidia-smi to ask.
var ErrNoSMI = exec.ErrNotFound

// Read looks at the GPUs of this host. pids limits the search where only a
// process itself can be asked (fdinfo); nvidia-smi names every process.
func Read(ctx context.Context, pids []int) Reading { return Reader{}.Read(ctx, pids) }

// Read looks at the GPUs.
func (r Reader) Read(ctx context.Context, pids []int) Reading {
	var out Reading
	ask := r.NVIDIA
	if r.Ask != nil {
		ask = r.Ask
	}
	uses, err := ask(ctx)
	switch {
	case err == nil:
		out.Known, out.Uses = true, slices.Clone(uses)
	case !errors.Is(err, ErrNoSMI):
		out.Notes = append(out.Notes, fmt.Sprintf("NVIDIA GPUs could not be read: %v", err))
	}
	drm, unread := r.drm(pids)
	out.Uses, out.unread = append(out.Uses, drm...), unread
	out.Known = out.Known || len(drm) > 0 && len(out.Notes) == 0
	if len(unread) > 0 && out.Known {
		out.Notes = append(out.Notes, fmt.Sprintf("the GPU memory of %v could not be read: their open files are closed to us", unread))
	}
	if !out.Known && len(out.Notes) == 0 {
		out.Notes = append(out.Notes, NoGPU)
	}
	return out
}

// NoGPU is the note of a host that shows no GPU at all.
const NoGPU = "no GPU was seen: nvidia-smi is not on the PATH and no process has memory of a DRM device"

// NotRead is the note where nobody has looked.
const NotRead = "GPU memory was not looked at"

// OtherPIDs is the note where the driver's numbers are of other processes.
const OtherPIDs = "GPU memory is unknown: the driver numbers processes outside of this pid namespace"

// Of is what a process holds on all GPUs: null when it could not be looked at,
// or when the driver does not say how much.
func (r Reading) Of(pid int) *int64 {
	if !r.Known || slices.Contains(r.unread, pid) {
		return nil
	}
	var sum int64
	for _, u := range r.Uses {
		if u.PID != pid {
			continue
		}
		if u.Bytes == nil {
			return nil
		}
		sum += *u.Bytes
	}
	return &sum
}

// GPUs are the GPUs on which any of the processes holds memory.
func (r Reading) GPUs(pids []int) []string {
	var out []string
	for _, u := range r.Uses {
		if slices.Contains(pids, u.PID) && !slices.Contains(out, u.GPU) {
			out = append(out, u.GPU)
		}
	}
	return out
}
