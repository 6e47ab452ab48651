package tasks

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/sweep"
	"hob/sweep/gpu"
)

// everybodyHolds is what an nvidia-smi says by which each process that there is
// holds 5 MiB.
const everybodyHolds = `case "$1" in
*compute-apps*) for p in /proc/[0-9]*; do echo "${p#/proc/}, GPU-aa, 5"; done;;
*) echo "0, GPU-aa";;
esac`

// withSMI gives the task an nvidia-smi, which this machine has none of.
func (g *rig) withSMI(script string) *rig {
	g.t.Helper()
	dir := g.t.TempDir()
	script = "#!/bin/sh\necho called >>" + filepath.Join(dir, "calls") + "\nenv >" + filepath.Join(dir, "environ") + "\n" + script
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(script), 0o755); err != nil {
		g.t.Fatal(err)
	}
	g.spec.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "HF_TOKEN=s3cr3t"}
	g.spec.Dir = dir
	return g
}

// TestGPUMemoryOfTheTree is read by the keeper, with its time, and is gone with
// the command. A stop of the keeper's says what each process held.
func TestGPUMemoryOfTheTree(t *testing.T) {
	g := newRig(t, sweep.Server).sh(`sleep 1000 & wait`).withSMI(everybodyHolds).start().up()
	g.until("GPU memory of both processes is read", func() bool { n := g.keeper().GPUBytes; return n != nil && *n == 10<<20 })
	k := g.keeper()
	if k.GPUAt == nil || k.GPUAt.Before(*k.StartedAt) || k.GPUNote != "" {
		t.Errorf("%d bytes at %v: %s", *k.GPUBytes, k.GPUAt, k.GPUNote)
	}
	if env, err := os.ReadFile(filepath.Join(g.spec.Dir, "environ")); err != nil || strings.Contains(string(env), "s3cr3t") {
		t.Errorf("nvidia-smi got %q, %v", env, err)
	}
	g.signal(syscall.SIGTERM)
	g.code()
	r := g.report()
	if m := member(r, k.Command.PID); m == nil || m.GPUBytes == nil || *m.GPUBytes != 5<<20 || r.Verdict != sweep.Clean {
		t.Errorf("report %+v", r)
	}
	if k := g.keeper(); k.GPUBytes != nil || k.GPUAt != nil {
		t.Errorf("an ended task holds %v", k.GPUBytes)
	}
}

// TestGPUMemoryIsReadForAll: what one keeper of the state folder has read another
// does not ask for again.
func TestGPUMemoryIsReadForAll(t *testing.T) {
	g := newRig(t, sweep.Server, "sleep", "1000").withSMI("exit 1")
	at := time.Now().Add(time.Minute) // while the record is news, and after the start
	if err := g.run.store.writeGPUs(gpuRecord{Schema: Schema, At: at, Every: time.Hour, Uses: []gpu.Use{}}); err != nil {
		t.Fatal(err)
	}
	g.start().up()
	g.until("GPU memory is known", func() bool { return g.keeper().GPUBytes != nil })
	if k := g.keeper(); *k.GPUBytes != 0 || !k.GPUAt.Equal(at) {
		t.Errorf("%d at %v", *k.GPUBytes, k.GPUAt)
	}
	if _, err := os.Stat(filepath.Join(g.spec.Dir, "calls")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nvidia-smi was asked: %v", err)
	}
}

// TestGPUMemoryThatIsNotKnown is null, with the reason.
func TestGPUMemoryThatIsNotKnown(t *testing.T) {
	for name, c := range map[string]struct{ smi, why string }{
		"a driver that does not answer": {"echo Failed to initialize NVML: Driver/library version mismatch; exit 18", "version mismatch"},
		"a driver that does not say":    {strings.ReplaceAll(everybodyHolds, "GPU-aa, 5", "GPU-aa, [N/A]"), "does not say how much"},
		"nothing that can be read":      {"echo good morning, Dave", "nvidia-smi gave"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, sweep.Server, "sleep", "1000").withSMI(c.smi).start().up()
			g.until("the reason", func() bool { return strings.Contains(g.keeper().GPUNote, c.why) })
			if k := g.keeper(); k.GPUBytes != nil || k.GPUAt != nil {
				t.Errorf("%v at %v", k.GPUBytes, k.GPUAt)
			}
		})
	}
	t.Run("no nvidia-smi", func(t *testing.T) {
		t.Parallel()
		g := newRig(t, sweep.Server, "sleep", "1000")
		g.spec.Env = []string{"PATH=/usr/bin:/bin"}
		g.start().up()
		g.until("the reason", func() bool { return g.keeper().GPUNote == gpu.NoGPU })
	})
}

// TestGPUMemoryWhileAnotherAsks: a driver that does not answer keeps all keepers of the
// state folder waiting; meanwhile they say so, and know no number.
func TestGPUMemoryWhileAnotherAsks(t *testing.T) {
	g := newRig(t, sweep.Server, "sleep", "1000").withSMI(everybodyHolds)
	unlock, ok, err := tryLock(filepath.Join(g.run.store.Home, gpuLock))
	if !ok {
		t.Fatal(err)
	}
	defer unlock()
	g.start().up()
	if k := g.keeper(); k.GPUBytes == nil && k.GPUNote == "" {
		t.Error("it was not looked at, and no note says so")
	}
	g.until("the reason", func() bool { return strings.Contains(g.keeper().GPUNote, "another keeper is asking nvidia-smi") })
	if k := g.keeper(); k.GPUBytes != nil || k.GPUAt != nil {
		t.Errorf("%v at %v", k.GPUBytes, k.GPUAt)
	}
	unlock()
	g.until("GPU memory is read", func() bool { k := g.keeper(); return k.GPUBytes != nil && k.GPUNote == "" })
}

// TestHangingGPUDriver holds up no end: nvidia-smi is ended with the task.
func TestHangingGPUDriver(t *testing.T) {
	for name, end := range map[string]func(*rig){
		"a stop":           func(g *rig) { g.signal(syscall.SIGTERM) },
		"the command ends": func(g *rig) { g.signalPid(g.keeper().Command.PID, syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, sweep.Job, "sleep", "1000").withSMI(`echo $$ >smi; exec sleep 1000`)
			script := filepath.Join(g.spec.Dir, "nvidia-smi")
			text, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			text = []byte(strings.ReplaceAll(string(text), ">smi", ">"+filepath.Join(g.spec.Dir, "smi")))
			if err := os.WriteFile(script, text, 0o755); err != nil {
				t.Fatal(err)
			}
			g.start().up()
			smi := g.pidIn("smi")
			end(g)
			g.code()
			if g.lives(smi) || g.report().Verdict != sweep.Clean {
				t.Errorf("nvidia-smi lives: %t; %+v", g.lives(smi), g.report())
			}
		})
	}
}

func TestGPUNewsAge(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		v    gpuRecord
		want bool
	}{
		{"just read", gpuRecord{Schema: Schema, At: now, Every: time.Minute}, true},
		{"old", gpuRecord{Schema: Schema, At: now.Add(-time.Minute), Every: time.Minute}, false},
		{"the clock was set back", gpuRecord{Schema: Schema, At: now.Add(time.Hour), Every: time.Minute}, false},
		{"none", gpuRecord{}, false},
		{"a newer hob's", gpuRecord{Schema: Schema + 1, At: now, Every: time.Minute}, false},
	} {
		if got := c.v.fresh(now); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// TestRestartWaitsForTheGPU: the memory of the life before must be given back.
func TestRestartWaitsForTheGPU(t *testing.T) {
	g := newRig(t, sweep.Server).sh(`echo $$ >>pids; [ $(wc -l <pids) -lt 2 ] && exit 1; exec sleep 1000`)
	g.withSMI(`case "$1" in
*compute-apps*) cd ` + "${0%/*}" + `; test -e freed || echo "$(head -n 1 pids), GPU-aa, 5";;
*) echo "0, GPU-aa";;
esac`)
	g.spec.Restart = Restart{Policy: "on-failure", Max: 3, Backoff: time.Millisecond}
	g.start().up()
	g.until("it waits for the GPU", func() bool {
		return strings.Contains(g.keeper().ReadyNote, "memory of GPU 0 is still counted for pid ")
	})
	if k := g.keeper(); k.Restarts != 0 {
		t.Errorf("restarts: %d", k.Restarts)
	}
	if err := os.WriteFile(filepath.Join(g.spec.Dir, "freed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g.until("it is started again", func() bool { k := g.keeper(); return k.Restarts == 1 && k.Command != nil })
}
