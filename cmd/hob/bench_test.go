//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/identity"
	"hob/tasks"
)

// bench is a hob of its own, as it is shipped, with a state folder of its own.
type bench struct {
	b    *testing.B
	dir  string
	hob  string
	env  []string
	home string // its state folder

	peak int64 // most bytes of memory that hob has had resident
}

func newBench(b *testing.B) *bench {
	b.Helper()
	dir, err := os.MkdirTemp("", "hobb")
	if err != nil {
		b.Fatal(err)
	}
	x := &bench{b: b, dir: dir}
	x.hob = x.build("hob-bin", ".")
	x.apart()
	x.fresh()
	b.Cleanup(func() {
		x.run(x.hob, "down", "--all", "--quiet")
		if err := os.RemoveAll(dir); err != nil {
			b.Error(err)
		}
	})
	return x
}

// apart has the state folders of a benchmark lie apart on an ext4 disk (chattr(1), T;
// other file systems do not know it). Where that has no journal, as on many virtual
// machines, a new file passes over each inode of its group that was freed in the last
// minutes, one by one (fs/ext4/ialloc.c, recently_deleted): what earlier rounds wrote
// and removed would be counted against hob, and tmux alone writes no files.
func (x *bench) apart() {
	if out, err := exec.Command("chattr", "+T", x.dir).CombinedOutput(); err != nil {
		x.b.Logf("the rounds share their part of the disk: %v: %s", err, out)
	}
}

// fresh has hob go on in a state folder that is not there yet. Nothing is up in the
// one before.
func (x *bench) fresh() {
	home, err := os.MkdirTemp(x.dir, "home")
	if err != nil {
		x.b.Fatal(err)
	}
	x.home = home
	x.env = append(os.Environ(), "HOB_HOME="+home, "XDG_RUNTIME_DIR="+x.dir)
}

// build builds a program as hob is shipped and installs it as make install does. What the
// linker has written stays in the page cache in small pages, until it is dropped from there:
// with them each start of hob takes 0.7 to 0.9 ms more of a processor.
func (x *bench) build(name, pkg string) string {
	x.b.Helper()
	path := filepath.Join(x.dir, name)
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path+".built", pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		x.b.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	x.run("install", path+".built", path)
	return path
}

// recipe writes a recipe of n tasks that sleep.
func (x *bench) recipe(n int) string {
	var s strings.Builder
	s.WriteString("name: bench\nservers:\n")
	for i := range n {
		fmt.Fprintf(&s, "  t%d: {command: [sleep, \"1000\"]}\n", i)
	}
	file := filepath.Join(x.dir, "bench.yaml")
	if err := os.WriteFile(file, []byte(s.String()), 0o600); err != nil {
		x.b.Fatal(err)
	}
	return file
}

// run runs a command to its end and returns how long it took.
func (x *bench) run(argv ...string) time.Duration {
	x.b.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Env = x.env
	began := time.Now()
	out, err := c.CombinedOutput()
	took := time.Since(began)
	if err != nil {
		x.b.Fatalf("%v: %v\n%s", argv, err, out)
	}
	if use, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok && argv[0] == x.hob && argv[1] == "ps" {
		x.peak = max(x.peak, int64(use.Maxrss)<<10) //nolint:unconvert // it has 32 bits on 386
	}
	return took
}

func (x *bench) socket() string {
	sockets, _ := filepath.Glob(filepath.Join(x.dir, "hob", "*.sock"))
	if len(sockets) != 1 {
		x.b.Fatalf("%d sockets", len(sockets))
	}
	return sockets[0]
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkPs is `hob ps` against `tmux list-panes -a` on the same server, taken
// by turns, and hob's peak of resident memory; the second with an archive, which
// may cost nothing.
func BenchmarkPs(b *testing.B) {
	for _, c := range []struct{ tasks, archived int }{{20, 0}, {200, 0}, {200, 1000}} {
		b.Run(fmt.Sprintf("tasks=%d/archived=%d", c.tasks, c.archived), func(b *testing.B) {
			x := newBench(b)
			x.run(x.hob, "up", x.recipe(c.tasks))
			x.archive(c.archived)
			var ours, theirs []time.Duration
			for b.Loop() {
				for range 21 {
					theirs = append(theirs, x.run("tmux", "-S", x.socket(), "list-panes", "-a"))
					ours = append(ours, x.run(x.hob, "ps"))
				}
			}
			b.ReportMetric(milliseconds(median(ours)), "ms/ps")
			b.ReportMetric(milliseconds(median(theirs)), "ms/list-panes")
			b.ReportMetric(float64(median(ours))/float64(median(theirs)), "ratio")
			b.ReportMetric(float64(x.peak)/(1<<20), "MiB/ps")
		})
	}
}

// archive makes n archived runs of three tasks each.
func (x *bench) archive(n int) {
	x.b.Helper()
	home := x.home
	store, err := tasks.OpenStore(home)
	if err != nil {
		x.b.Fatal(err)
	}
	for i := range n {
		name := fmt.Sprintf("old%d", i%50)
		to := filepath.Join(home, "archive", name+"-"+time.Unix(int64(i), 0).UTC().Format("20060102T150405Z"))
		run := store.Run(name)
		err := run.Create()
		for _, task := range []string{"a", "b", "c"} {
			d := run.Task(task)
			err = errors.Join(err, d.Create(), d.WriteTask(tasks.Task{Run: name, Task: task, Kind: "server", State: tasks.Stopped}))
		}
		err = errors.Join(err, run.Write(tasks.Run{Name: name, Tasks: []string{"a", "b", "c"}}), os.Rename(run.Path, to))
		if err != nil {
			x.b.Fatal(err)
		}
	}
}

// BenchmarkUp is `hob up` of 20 tasks that sleep against a shell loop of 20
// `tmux new-session`, taken by turns, each on a server that it starts itself. The
// loop starts 20 processes and writes nothing; hob writes down what it starts, in a
// state folder that is not there yet, makes that last, starts 40 processes and waits
// until each command runs. What 20 keepers in Go cost at the least is the same loop
// with a keeper that only has a pty. Where the run has been up before, its records
// are settled and archived first (ratio-again).
func BenchmarkUp(b *testing.B) {
	x := newBench(b)
	file, floor := x.recipe(20), x.build("floor", "./testdata/floor")
	socket := filepath.Join(x.dir, "loop")
	loop := func(command string) time.Duration {
		took := x.run("sh", "-c", fmt.Sprintf("for i in $(seq 20); do tmux -S %s -f /dev/null new-session -d -s t$i %s; done", socket, command))
		x.endServer(socket)
		return took
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		b.Fatal(err)
	}
	var ours, again, theirs, least []time.Duration
	for b.Loop() {
		for range 7 {
			theirs = append(theirs, loop("sleep 1000"))
			least = append(least, loop(floor+" "+sleep+" 1000"))
			x.fresh()
			ours = append(ours, x.run(x.hob, "up", file))
			x.run(x.hob, "down")
			again = append(again, x.run(x.hob, "up", file))
			x.run(x.hob, "down")
		}
	}
	b.ReportMetric(milliseconds(median(ours)), "ms/up")
	b.ReportMetric(milliseconds(median(theirs)), "ms/loop")
	b.ReportMetric(float64(median(ours))/float64(median(theirs)), "ratio")
	b.ReportMetric(float64(median(again))/float64(median(theirs)), "ratio-again")
	b.ReportMetric(float64(median(least))/float64(median(theirs)), "ratio-of-bare-keepers")
}

// BenchmarkDown is how long `hob down` goes on after the last process of the
// task has ended.
func BenchmarkDown(b *testing.B) {
	for _, n := range []int{1, 20} {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			x := newBench(b)
			file := x.recipe(n)
			var after []time.Duration
			for b.Loop() {
				for range 7 {
					x.fresh()
					x.run(x.hob, "up", file)
					after = append(after, x.afterLastExit())
				}
			}
			b.ReportMetric(milliseconds(median(after)), "ms/after-last-exit")
		})
	}
}

// endServer ends a tmux server and waits until all that ran in its panes has ended:
// what is measured next must not share the machine with that.
func (x *bench) endServer(socket string) {
	h, err := identity.Local()
	if err != nil {
		x.b.Fatal(err)
	}
	out, err := exec.Command("tmux", "-S", socket, "list-panes", "-a", "-F", "#{pane_pid}").Output()
	if err != nil {
		x.b.Fatal(err)
	}
	var pins []identity.Handle
	pin := func(pid int) {
		if p, err := h.Open(pid); err == nil {
			pins = append(pins, p)
		}
	}
	for word := range strings.FieldsSeq(string(out)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			x.b.Fatal(err)
		}
		pin(pid)
		below, _ := h.Children(pid)
		for _, child := range below {
			pin(child)
		}
	}
	x.run("tmux", "-S", socket, "kill-server")
	for len(pins) > 0 {
		if err := h.Wait(context.Background(), pins, time.Time{}); err != nil {
			x.b.Fatal(err)
		}
		pins = slices.DeleteFunc(pins, func(p identity.Handle) bool { return p.Verify().Verdict != identity.Owned })
	}
}

// afterLastExit stops the run and watches its commands by their pins.
func (x *bench) afterLastExit() time.Duration {
	h, err := identity.Local()
	if err != nil {
		x.b.Fatal(err)
	}
	pins := x.commands(h)
	ended := make(chan time.Time, 1)
	go func() {
		for len(pins) > 0 {
			_ = h.Wait(context.Background(), pins, time.Time{})
			pins = slices.DeleteFunc(pins, func(p identity.Handle) bool { return p.Verify().Verdict != identity.Owned })
		}
		ended <- time.Now()
	}()
	x.run(x.hob, "down")
	returned := time.Now()
	return returned.Sub(<-ended)
}

func (x *bench) commands(h identity.Host) []identity.Handle {
	store, err := tasks.ViewStore(x.home)
	if err != nil {
		x.b.Fatal(err)
	}
	run := store.Run("bench")
	names, err := run.Tasks()
	if err != nil {
		x.b.Fatal(err)
	}
	var pins []identity.Handle
	for _, name := range names {
		k, err := run.Task(name).ReadKeeper()
		if err != nil || k.Command == nil {
			x.b.Fatalf("%s: %v", name, err)
		}
		pin, f := h.Verify(*k.Command)
		if pin == nil {
			x.b.Fatalf("%s: %s", name, f.Reason)
		}
		pins = append(pins, pin)
	}
	return pins
}

// BenchmarkStart is what a process of hob costs before it does anything, against
// the smallest program there is.
func BenchmarkStart(b *testing.B) {
	x := newBench(b)
	var ours, theirs []time.Duration
	for b.Loop() {
		for range 51 {
			theirs = append(theirs, x.run("true"))
			ours = append(ours, x.run(x.hob, "version"))
		}
	}
	b.ReportMetric(milliseconds(median(ours)), "ms/version")
	b.ReportMetric(milliseconds(median(theirs)), "ms/true")
}
