package tasks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dustin/go-humanize"
	"github.com/shirou/gopsutil/v4/disk"

	"hob/identity/child"
	"hob/recipes"
	"hob/sweep/gpu"
)

// hostFacts are what engines expect of a host without which they often start, and
// fail later. What is not known says nothing.
type hostFacts struct {
	driver func() (gpu.Driver, error)
	shm    func() (free uint64, err error)
	limits func() child.Limits
}

// shmFolder is where POSIX shared memory is on Linux.
const shmFolder = "/dev/shm"

// hostFacts looks at the host. Each is looked at when the first task asks.
func (u *upRun) hostFacts(ctx context.Context) hostFacts {
	return hostFacts{
		driver: sync.OnceValues(func() (gpu.Driver, error) { return gpu.DriverOf(ctx) }),
		shm: func() (uint64, error) {
			usage, err := disk.UsageWithContext(ctx, shmFolder)
			if err != nil {
				return 0, err
			}
			return usage.Free, nil
		},
		limits: u.callerLimits,
	}
}

// checkExpects names what tasks' engines expect and the host does not have: notes
// for a person, since an engine may do without.
func checkExpects(wants []want, f hostFacts) []string {
	type asked struct {
		what recipes.Expect
		who  []string
	}
	var all []*asked
	for _, w := range wants {
		for _, e := range w.task.Expects {
			i := slices.IndexFunc(all, func(a *asked) bool { return a.what == e })
			if i < 0 {
				i, all = len(all), append(all, &asked{what: e})
			}
			all[i].who = append(all[i].who, w.task.Name)
		}
	}
	var notes []string
	for _, a := range all {
		if note := f.lacks(a.what); note != "" {
			notes = append(notes, strings.Join(a.who, ", ")+": "+note)
		}
	}
	return notes
}

// lacks says what the host does not have of what is expected; "" when it has it, or
// when that is not known.
func (f hostFacts) lacks(e recipes.Expect) string {
	switch e.What {
	case "cuda":
		return f.lacksCUDA(e)
	case "shm":
		return f.lacksShm(e)
	case "files":
		if most, known := f.limits().Hard("nofile"); known && most < amountOf(e) {
			return fmt.Sprintf("%s expects to be allowed %s open files, and %d is the most here (ulimit -Hn)", e.Engine, e.AtLeast, most)
		}
	case "memlock":
		if most, known := f.limits().Soft("memlock"); known && most < amountOf(e) {
			return fmt.Sprintf("%s expects to lock memory, and %s are allowed (ulimit -l)", e.Engine, Bytes(int64(most)))
		}
	}
	return ""
}

func (f hostFacts) lacksCUDA(e recipes.Expect) string {
	d, err := f.driver()
	switch {
	case errors.Is(err, gpu.ErrNoSMI):
		return "" // perhaps it runs on something else
	case err != nil && strings.Contains(err.Error(), "version mismatch"):
		return fmt.Sprintf("the NVIDIA driver was changed while its old kernel module runs on, until a reboot: %v", err)
	case err != nil:
		return fmt.Sprintf("the NVIDIA driver could not be looked at: %v", err)
	case d.CUDA == "":
		return fmt.Sprintf("%s expects CUDA %s, and the driver does not say which it has", e.Engine, e.AtLeast)
	case older(d.CUDA, e.AtLeast):
		return fmt.Sprintf("%s expects a driver for CUDA %s or newer, and %s is for CUDA %s", e.Engine, e.AtLeast, d.Version, d.CUDA)
	}
	return ""
}

func (f hostFacts) lacksShm(e recipes.Expect) string {
	free, err := f.shm()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "" // not a Linux
	case err != nil:
		return fmt.Sprintf("%s expects %s of shared memory, and %s could not be looked at: %v", e.Engine, e.AtLeast, shmFolder, err)
	case free < amountOf(e):
		return fmt.Sprintf("%s expects %s of shared memory between its processes, and %s has %s free (in a container: --shm-size, or --ipc=host)",
			e.Engine, e.AtLeast, shmFolder, Bytes(int64(free)))
	}
	return ""
}

// amountOf is a number or a size; a loaded recipe has no others.
func amountOf(e recipes.Expect) uint64 {
	n, err := humanize.ParseBytes(e.AtLeast)
	if err != nil { // unlimited
		return ^uint64(0) >> 1
	}
	return n
}

// older compares versions by their numbers.
func older(a, b string) bool {
	x, y := numbersOf(a), numbersOf(b)
	return slices.Compare(x, y) < 0
}

func numbersOf(version string) (list []int) {
	for word := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(word)
		if err != nil {
			break
		}
		list = append(list, n)
	}
	return list
}
