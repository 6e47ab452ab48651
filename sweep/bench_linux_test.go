package sweep_test

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/sweep"
)

// BenchmarkStop stops a tree of 200 processes that end on TERM, against one
// `kill -TERM` with all their numbers, which verifies nothing and reports nothing.
// Both end when the keeper has reaped the last of them.
func BenchmarkStop(b *testing.B) {
	var stops, kills, work time.Duration
	for b.Loop() {
		b.StopTimer()
		hob := wideTree(b)
		hob.target.Stop.Grace = 0
		b.StartTimer()
		began, before := time.Now(), cpuTime()
		r := hob.stop(sweep.Capture{}, sweep.Options{})
		stops, work = stops+time.Since(began), work+cpuTime()-before
		b.StopTimer()
		if r.Verdict != sweep.Clean || len(r.Members) != 201 {
			b.Fatal(hob.story(r))
		}
		hob.clean()
		bare := wideTree(b)
		kills += bare.bareKill()
		bare.clean()
		b.StartTimer()
	}
	b.ReportMetric(float64(stops)/float64(kills), "x-bare-kill")
	b.ReportMetric(float64(kills.Microseconds())/1000/float64(b.N), "ms-bare-kill")
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
	return k
}

// bareKill is what a script does: the numbers, kill, and wait for the end.
func (k *real) bareKill() time.Duration {
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
	var sweeps, snapshots time.Duration
	rows := 0
	for b.Loop() {
		began := time.Now()
		if _, err := sweep.Sweep(context.Background(), k.h, k.target, prev, k, false, sweep.Options{}); err != nil {
			b.Fatal(err)
		}
		sweeps += time.Since(began)
		began = time.Now()
		table, err := k.h.Snapshot(context.Background(), want)
		if err != nil {
			b.Fatal(err)
		}
		snapshots += time.Since(began)
		rows = len(table.Procs)
	}
	b.ReportMetric(float64(sweeps)/float64(snapshots), "x-snapshot")
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
