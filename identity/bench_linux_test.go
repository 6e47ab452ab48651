package identity

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"
	"golang.org/x/sys/unix"
)

// The benchmarks print ratios, each of two things measured in turn in one run,
// on a host with a crowd of sleeping processes. The crowd lives in a pid namespace
// of its own and ends with its first process.

func init() {
	subjects["crowd"] = func() {
		n, _ := strconv.Atoi(os.Getenv("HOB_IDENTITY_CROWD"))
		for range n {
			if _, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "3600"}, &syscall.ProcAttr{}); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
		fmt.Println("ready")
		_, _ = os.Stdin.Read(make([]byte, 1))
	}
	subjects["tree"] = func() { // 20 below it: 4 children with 4 children each
		for range 4 {
			if _, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", "sleep 3600 & sleep 3600 & sleep 3600 & sleep 3600 & wait"}, &syscall.ProcAttr{}); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
		fmt.Println("ready")
		_, _ = os.Stdin.Read(make([]byte, 1))
	}
}

// fill makes the host n processes larger, and empties it with the benchmark.
func fill(b *testing.B, n int) {
	b.Helper()
	if os.Geteuid() != 0 {
		b.Skip("left out: only root can make a pid namespace")
	}
	cmd := self("crowd")
	cmd.Env = append(cmd.Env, "HOB_IDENTITY_CROWD="+strconv.Itoa(n))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if line := start(b, cmd).line(b); line != "ready" {
		b.Fatal(line)
	}
}

// bareScan is the least that a look at all processes can be: one listing, and of
// each the stat file opened, read and closed, with nothing made of it.
func bareScan(b *testing.B) {
	dir, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(dir)
	var path [24]byte
	buf, text := make([]byte, 32<<10), make([]byte, 1024)
	for {
		n, err := unix.Getdents(dir, buf)
		if err != nil {
			b.Fatal(err)
		}
		if n == 0 {
			return
		}
		_ = eachDirent(buf[:n], func(pid int) {
			name := append(strconv.AppendInt(path[:0], int64(pid), 10), "/stat\x00"...)
			fd, errno := sysOpenat(dir, &name[0])
			if errno == 0 {
				_, _ = unix.Read(fd, text)
				_ = unix.Close(fd)
			}
		})
	}
}

// bareStat reads one stat file.
func bareStat(b *testing.B, pid int, text []byte) {
	fd, err := unix.Open(procPath(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	_, _ = unix.Read(fd, text)
	_ = unix.Close(fd)
}

// against measures both in turn and returns the ratio of the medians. What runs
// in this thread is measured by the thread's processor time, which a busy
// machine does not change; what runs in other processes, by the clock.
func against(rounds int, what, other func(), clock func() time.Duration) (ratio float64, median time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var a, b []time.Duration
	once := func(f func()) time.Duration {
		begin := clock()
		f()
		return clock() - begin
	}
	for range rounds {
		a, b = append(a, once(what)), append(b, once(other))
	}
	slices.Sort(a)
	slices.Sort(b)
	return float64(a[rounds/2]) / float64(b[rounds/2]), a[rounds/2]
}

func wallClock() time.Duration { return since(unix.CLOCK_MONOTONIC) }
func cpuTime() time.Duration   { return since(unix.CLOCK_THREAD_CPUTIME_ID) }

func since(clock int32) time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano())
}

// say prints a ratio as a line of its own, and as a metric.
func say(b *testing.B, what string, ratio, limit float64, atMost bool) {
	sign, ok := "≥", ratio >= limit
	if atMost {
		sign, ok = "≤", ratio <= limit
	}
	verdict := "reached"
	if !ok {
		verdict = "MISSED"
	}
	fmt.Printf("    %-58s %9.4g  (aim %s %g: %s)\n", what, ratio, sign, limit, verdict)
	b.ReportMetric(ratio, "ratio")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{2000, 10000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) { benchSnapshot(b, n) })
	}
}

func benchSnapshot(b *testing.B, n int) {
	fill(b, n)
	host := localHost(b)
	rows := 0
	snapshot := func() {
		t, err := host.Snapshot(bg, 0)
		if err != nil || len(t.Procs) < n || len(t.Unreadable) > 0 {
			b.Fatalf("%d rows, %v", len(t.Procs), err)
		}
		rows = len(t.Procs)
	}
	snapshot()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	snapshot()
	runtime.ReadMemStats(&after)
	ratio, median := against(100_000/n|1, snapshot, func() { bareScan(b) }, cpuTime)
	say(b, fmt.Sprintf("snapshot of %d in %v / bare scan", rows, median.Round(10*time.Microsecond)), ratio, 1.15, true)
	fmt.Printf("    %-58s %9.4g\n", "  allocations a row", float64(after.Mallocs-before.Mallocs)/float64(rows))
	fmt.Printf("    %-58s %9.4g\n", "  bytes a row", float64(after.TotalAlloc-before.TotalAlloc)/float64(rows))

	ps := func() {
		if err := exec.Command("ps", "-eo", "pid,ppid,sid,tty,stat").Run(); err != nil {
			b.Fatal(err)
		}
	}
	ratio, _ = against(5, ps, snapshot, wallClock)
	say(b, fmt.Sprintf("ps -eo pid,ppid,sid,tty,stat / snapshot of %d", rows), ratio, 2.2, false)
	aim := 10.0
	if n > 5000 {
		aim = 6
	}
	ratio, _ = against(3, func() { gopsutilList(b, false) }, snapshot, wallClock)
	fmt.Printf("    %-58s %9.4g\n", "  gopsutil without the terminal / snapshot", ratio)
	ratio, _ = against(1, func() { gopsutilList(b, true) }, snapshot, wallClock)
	say(b, fmt.Sprintf("gopsutil, the same fields / snapshot of %d", rows), ratio, aim, false)
}

// gopsutilList asks gopsutil for what a snapshot holds, as far as it knows it.
func gopsutilList(b *testing.B, tty bool) {
	procs, err := process.Processes()
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range procs {
		_, _ = p.Ppid()
		_, _ = p.CreateTime()
		_, _ = p.Status()
		_, _ = p.NumThreads()
		_, _ = p.Name()
		if tty {
			_, _ = p.Terminal()
		}
	}
}

func BenchmarkTreeWalk(b *testing.B) {
	fill(b, 10000)
	host := localHost(b)
	tree := self("tree")
	tree.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	root := start(b, tree)
	if line := root.line(b); line != "ready" {
		b.Fatal(line)
	}
	walked := 0
	walk := func() { walked = walkTree(b, host, root.pid) }
	eventually(b, "the tree stands", func() bool { walk(); return walked == 21 })
	ratio, median := against(9, func() {
		for range 20 {
			walk()
		}
	}, func() { bareScan(b) }, cpuTime)
	say(b, fmt.Sprintf("walk of a tree of %d in %v / bare scan of 10,000", walked, (median/20).Round(time.Microsecond)), ratio/20, 0.006, true)
	ratio, _ = against(1, func() { gopsutilTree(b, int32(root.pid)) }, walk, wallClock)
	say(b, "gopsutil Children, all the way down / walk", ratio, 100, false)
}

// walkTree reads the row of every process below root.
func walkTree(b *testing.B, host Host, root int) (n int) {
	for todo := []int{root}; len(todo) > 0; n++ {
		pid := todo[0]
		kids, err := host.Children(pid)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := readRow(procPath(pid)+"/", pid, 0); err != nil {
			b.Fatal(err)
		}
		todo = append(todo[1:], kids...)
	}
	return n
}

func gopsutilTree(b *testing.B, pid int32) {
	p, err := process.NewProcess(pid)
	if err != nil {
		b.Fatal(err)
	}
	kids, _ := p.Children()
	for _, k := range kids {
		gopsutilTree(b, k.Pid)
	}
}

func BenchmarkVerify(b *testing.B) {
	host := localHost(b)
	pid := start(b, exec.Command("sleep", "600")).pid
	ref := refOf(b, host, pid)
	text := make([]byte, 1024)
	bare := func() {
		for range 1000 {
			bareStat(b, pid, text)
		}
	}
	for what, ref := range map[string]Ref{"inode": ref, "ticks": byToken(ref)} {
		verify := func() {
			for range 1000 {
				h, f := host.Verify(ref)
				if f.Verdict != Owned {
					b.Fatal(f)
				}
				_ = h.Close()
			}
		}
		ratio, median := against(15, verify, bare, cpuTime)
		say(b, fmt.Sprintf("verify by %s in %v / bare stat read", what, median/1000), ratio, 3, true)
	}
}
