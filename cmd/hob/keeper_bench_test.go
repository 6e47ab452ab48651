//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"hob/tasks"
)

// BenchmarkKeeperAtRest is the processor time of a keeper that watches a tree of 20
// processes at rest, in percent of one core, from the kernel's own count in
// nanoseconds (proc(5), schedstat; the keeper's threads are summed).
func BenchmarkKeeperAtRest(b *testing.B) {
	const settle, watch = 10 * time.Second, 30 * time.Second
	x := newBench(b)
	file := filepath.Join(x.dir, "rest.yaml")
	text := "name: bench\nservers:\n  t: {command: [sh, -c, 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do sleep 1000 & done; wait']}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	var used time.Duration
	for b.Loop() {
		x.run(x.hob, "up", file)
		keeper := x.keeper("t")
		time.Sleep(settle)
		before := runTime(b, keeper)
		time.Sleep(watch)
		used += runTime(b, keeper) - before
		x.run(x.hob, "down")
	}
	b.ReportMetric(100*float64(used)/float64(watch)/float64(b.N), "percent-of-a-core")
}

// BenchmarkKeeperMemory is the memory of one keeper at rest, alone and beside others:
// its proportional share (PSS), and what of that is its own. The rest is pages of hob's
// program, which all keepers share, and which the kernel may drop
// (proc_pid_smaps(5), smaps_rollup).
func BenchmarkKeeperMemory(b *testing.B) {
	const settle = 10 * time.Second
	for _, n := range []int{1, 20} {
		b.Run(fmt.Sprintf("keepers=%d", n), func(b *testing.B) {
			x := newBench(b)
			file := x.recipe(n)
			for b.Loop() {
				x.fresh()
				x.run(x.hob, "up", file)
				time.Sleep(settle)
				share, own := memory(b, x.keeper("t0"))
				x.run(x.hob, "down")
				b.ReportMetric(share, "MiB-pss/keeper")
				b.ReportMetric(own, "MiB-own/keeper")
			}
		})
	}
}

// memory is the proportional share of a process, and its anonymous part.
func memory(b *testing.B, pid int) (share, own float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		b.Fatal(err)
	}
	mib := func(name string) float64 {
		_, after, _ := strings.Cut(string(text), "\n"+name+":")
		kib, err := strconv.ParseFloat(strings.Fields(after + " none")[0], 64)
		if err != nil {
			b.Fatalf("%s of process %d: %v", name, pid, err)
		}
		return kib / 1024
	}
	return mib("Pss"), mib("Pss_Anon")
}

// keeper is the number of the keeper of a task.
func (x *bench) keeper(task string) int {
	store, err := tasks.ViewStore(x.home)
	if err != nil {
		x.b.Fatal(err)
	}
	k, err := store.Run("bench").Task(task).ReadKeeper()
	if err != nil {
		x.b.Fatal(err)
	}
	return k.Keeper.PID
}

// runTime is what all threads of a process have run.
func runTime(b *testing.B, pid int) (sum time.Duration) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		b.Fatalf("the run time of %d cannot be read: %v", pid, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}
