package sweep_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/sweep"
)

// stopRounds is of how many stops and bare kills the medians are taken.
const stopRounds = 11

// BenchmarkStop stops a tree of 200 processes that end on TERM, against one
// `kill -TERM` with all their numbers, which verifies nothing and reports nothing.
// Both find the numbers themselves, on a tree of the same shape that has come to
// rest, and end when the keeper has reaped the last of them. They take turns in
// going first.
func BenchmarkStop(b *testing.B) {
	var stops, kills, work []time.Duration
	for b.Loop() {
		for i := range stopRounds {
			for turn := range 2 {
				if (i+turn)%2 == 0 {
					took, cpu := wideTree(b).timedStop()
					stops, work = append(stops, took), append(work, cpu)
				} else {
					kills = append(kills, wideTree(b).bareKill())
				}
			}
		}
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(float64(median(stops))/float64(median(kills)), "x-bare-kill")
	b.ReportMetric(ms(median(stops)), "ms-stop")
	b.ReportMetric(ms(median(kills)), "ms-bare-kill")
	b.ReportMetric(ms(median(work)), "ms-cpu")
	b.ReportMetric(0, "ns/op")
}

// timedStop is the whole of a stop without any grace, to the report.
func (k *real) timedStop() (took, work time.Duration) {
	defer k.clean()
	k.target.Stop.Grace = 0
	began, before := time.Now(), cpuTime()
	r := k.stop(sweep.Capture{}, sweep.Options{})
	took, work = time.Since(began), cpuTime()-before
	if r.Verdict != sweep.Clean || len(r.Members) != 201 {
		k.t.Fatal(k.story(r))
	}
	return took, work
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkForce stops a tree of 200 processes in a cgroup that do not end on TERM.
func BenchmarkForce(b *testing.B) {
	var work, wall time.Duration
	for b.Loop() {
		b.StopTimer()
		k := startHomed(b, "deaf", "200")
		k.ref("wide")
		began, before := time.Now(), cpuTime()
		b.StartTimer()
		r := k.end()
		b.StopTimer()
		wall, work = wall+time.Since(began), work+cpuTime()-before
		if r.Verdict != sweep.Clean || len(r.Members) != 201 {
			b.Fatal(k.story(r))
		}
		k.clean()
		b.StartTimer()
	}
	b.ReportMetric(float64(wall.Microseconds())/1000/float64(b.N), "ms-wall")
	b.ReportMetric(float64(work.Microseconds())/1000/float64(b.N), "ms-cpu")
}

// cpuTime is the processor time of this process, which a busy machine changes less.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func wideTree(b *testing.B) *real {
	k := startHelper(b, sweep.Server, "wide", "200")
	k.ref("wide")
	// The last of them are still being loaded. Nobody looks at them meanwhile, for a
	// first look is part of what is measured.
	if err := k.h.Wait(context.Background(), nil, time.Now().Add(100*time.Millisecond)); err != nil {
		b.Fatal(err)
	}
	return k
}

// bareKill is what a script does: the numbers, kill, and wait for the end.
func (k *real) bareKill() time.Duration {
	defer k.clean()
	keeper, err := k.h.Open(k.keeper.Process.Pid)
	if err != nil {
		k.t.Fatal(err)
	}
	defer keeper.Close()
	began := time.Now()
	args := []string{"-TERM"}
	for _, pid := range k.descendants(k.keeper.Process.Pid) {
		args = append(args, strconv.Itoa(pid))
	}
	if err := exec.Command("kill", args...).Run(); err != nil {
		k.t.Fatal(err)
	}
	_ = k.h.Wait(context.Background(), []identity.Handle{keeper}, time.Now().Add(patience))
	return time.Since(began)
}

// BenchmarkSweep is the look at the whole host after a stop, against one
// snapshot of the process table with the same fields; the second on a host with
// 10,000 processes more.
func BenchmarkSweep(b *testing.B) {
	for _, n := range []int{0, 10000} {
		b.Run(fmt.Sprintf("more=%d", n), func(b *testing.B) {
			crowd(b, n)
			benchmarkSweep(b)
		})
	}
}

// crowd makes the host n processes larger. They live in a pid namespace of their
// own, whose first process ends, and they with it, when its input is closed.
func crowd(b *testing.B, n int) {
	if n == 0 {
		return
	}
	if syscall.Geteuid() != 0 {
		b.Skip("left out: only root can make a pid namespace")
	}
	c := exec.Command("sh", "-c", `i=0; while [ $i -lt "$1" ]; do sleep 3600 & i=$((i+1)); done; echo; read -r _`, "sh", strconv.Itoa(n))
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil {
		b.Fatal(err)
	}
}

func benchmarkSweep(b *testing.B) {
	k := startHelper(b, sweep.Server, "idle", "main")
	k.ref("main")
	prev := k.observe(sweep.Capture{})
	k.kill("keeper", "command") // the keeper would end by itself after the other
	want := identity.WantArgs | identity.WantEnviron
	var sweeps, snapshots []time.Duration
	rows := 0
	for b.Loop() {
		for range 11 {
			began := time.Now()
			if _, err := sweep.Sweep(context.Background(), k.h, k.target, prev, k, false, sweep.Options{}); err != nil {
				b.Fatal(err)
			}
			sweeps = append(sweeps, time.Since(began))
			began = time.Now()
			table, err := k.h.Snapshot(context.Background(), want)
			if err != nil {
				b.Fatal(err)
			}
			snapshots = append(snapshots, time.Since(began))
			rows = len(table.Procs)
		}
	}
	b.ReportMetric(float64(median(sweeps))/float64(median(snapshots)), "x-snapshot")
	b.ReportMetric(float64(rows), "processes")
}

// BenchmarkObserve is a round of the rolling capture of 20 processes at rest.
func BenchmarkObserve(b *testing.B) {
	k := startHelper(b, sweep.Server, "wide", "19")
	k.ref("wide")
	k.until("the tree to stand", func() bool { return len(k.descendants(k.keeper.Process.Pid)) == 20 })
	c := k.observe(sweep.Capture{})
	if len(c.Members) != 20 {
		b.Fatal(fmt.Sprint(len(c.Members), " members"))
	}
	k.benchmarkLooks(b, c)
}

// BenchmarkObserveThreads is a round of the rolling capture of a process with 2,000
// threads and one child.
func BenchmarkObserveThreads(b *testing.B) {
	k := startHelper(b, sweep.Server, "threads", "x")
	k.ref("x")
	c := k.observe(sweep.Capture{})
	if len(c.Members) != 2 {
		b.Fatal(fmt.Sprint(len(c.Members), " members"))
	}
	k.benchmarkLooks(b, c)
}

// benchmarkLooks measures looks at a tree at rest.
func (k *real) benchmarkLooks(b *testing.B, c sweep.Capture) {
	watch := sweep.NewWatch(k.h)
	defer watch.Close()
	before, looks := cpuTime(), 0
	for b.Loop() {
		var changed bool
		if c, changed, _ = watch.Look(context.Background(), k.target, c); changed {
			b.Fatal("a tree at rest changes nothing")
		}
		looks++
	}
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(looks), "us-cpu")
}
