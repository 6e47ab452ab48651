package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeSMI is an nvidia-smi on a PATH of its own: this machine has none.
func fakeSMI(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

const twoCards = `case "$1" in
*compute-apps*) echo "100, GPU-aa, 1024"; echo "100, GPU-bb, 512"; echo "200, GPU-bb, [N/A]"; echo "300, GPU-cc, 7";;
*query-gpu*) echo "0, GPU-aa"; echo "1, GPU-bb";;
esac`

func show(uses []Use) string {
	var out []string
	for _, u := range uses {
		size := "?"
		if u.Bytes != nil {
			size = fmt.Sprint(*u.Bytes)
		}
		out = append(out, fmt.Sprintf("%d@%s=%s", u.PID, u.GPU, size))
	}
	return strings.Join(out, " ")
}

func TestNvidia(t *testing.T) {
	fakeSMI(t, twoCards)
	r := Reader{Proc: t.TempDir()}.Read(context.Background(), []int{100})
	if got := show(r.Uses); !r.Known || got != "100@0=1073741824 100@1=536870912 200@1=? 300@GPU-cc=7340032" {
		t.Errorf("%v %s", r.Known, got)
	}
	if n := r.Of(100); n == nil || *n != 1536<<20 {
		t.Errorf("of 100: %v", n)
	}
	if n := r.Of(200); n != nil {
		t.Errorf("what the driver does not say is not %d", *n)
	}
	if n := r.Of(400); n == nil || *n != 0 {
		t.Errorf("one that holds nothing, on a host that was read: %v", n)
	}
	if got := r.GPUs([]int{200, 400}); !slices.Equal(got, []string{"1"}) {
		t.Errorf("GPUs of 200: %v", got)
	}
}

func TestWhatCannotBeReadIsUnknown(t *testing.T) {
	table := []struct {
		name, script, note string
	}{
		{"the driver has gone", "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18", "version mismatch"},
		{"it hangs", "exec sleep 60", "no answer"},
		{"it says something else", "echo 'No devices were found'", "not pid"},
		{"a pid that is none", `echo "x, GPU-aa, 5"`, "for a pid"},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			fakeSMI(t, row.script)
			r := Reader{Proc: t.TempDir(), Wait: 500 * time.Millisecond}.Read(context.Background(), nil)
			if r.Known || r.Of(100) != nil || !strings.Contains(strings.Join(r.Notes, " "), row.note) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestHalfReadIsNotRead: with NVIDIA's driver broken, what another driver says is
// not all that a process holds.
func TestHalfReadIsNotRead(t *testing.T) {
	fakeSMI(t, "exit 9")
	proc := t.TempDir()
	dir := filepath.Join(proc, "5", "fdinfo")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "3"), []byte("drm-driver:\tamdgpu\ndrm-memory-vram:\t1 KiB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := Reader{Proc: proc}.Read(context.Background(), []int{5})
	if r.Known || r.Of(5) != nil || len(r.Uses) != 1 || len(r.Notes) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestCards(t *testing.T) {
	fakeSMI(t, `echo "0, GPU-aa, NVIDIA A100, 40960, 1024"; echo "1, GPU-bb, NVIDIA GB10, [N/A], [N/A]"`)
	cards, err := Cards(context.Background())
	if err != nil || len(cards) != 2 {
		t.Fatalf("%+v, %v", cards, err)
	}
	if c := cards[0]; c.Index != 0 || c.UUID != "GPU-aa" || c.Name != "NVIDIA A100" || *c.Total != 40<<30 || *c.Free != 1<<30 {
		t.Errorf("%+v", c)
	}
	if c := cards[1]; c.Index != 1 || c.Total != nil || c.Free != nil {
		t.Errorf("what the driver does not say is not a number: %+v", c)
	}
	for _, script := range []string{"exit 9", "echo 'No devices were found'", `echo "x, a, b, 1, 1"`, "exec sleep 60"} {
		fakeSMI(t, script)
		if cards, err := (Reader{Wait: 500 * time.Millisecond}).Cards(context.Background()); err == nil {
			t.Errorf("%s: %+v", script, cards)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := Cards(context.Background()); !errors.Is(err, exec.ErrNotFound) {
		t.Error(err)
	}
}

func TestNoGPUAtAll(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	r := Reader{Proc: t.TempDir()}.Read(context.Background(), []int{1})
	if r.Known || r.Of(1) != nil || !slices.Equal(r.Notes, []string{NoGPU}) {
		t.Errorf("%+v", r)
	}
}

func TestDRM(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	proc := t.TempDir()
	write := func(pid int, fd, text string) {
		dir := filepath.Join(proc, fmt.Sprint(pid), "fdinfo")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fd), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	amd := "pos:\t0\nflags:\t02\ndrm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t2048 KiB\ndrm-memory-gtt: \t4096 KiB\n"
	write(5, "3", amd)
	write(5, "4", amd)
	write(5, "0", "pos:\t0\nflags:\t02\n")
	write(6, "3", "drm-driver:\txe\ndrm-client-id:\t9\ndrm-pdev:\t0000:04:00.0\ndrm-total-vram0:\t8 MiB\ndrm-resident-vram0:\t3 MiB\ndrm-total-system:\t1 MiB\n")
	write(7, "3", "drm-driver:\tnouveau\ndrm-client-id:\t1\n")
	write(8, "3", "drm-driver:\tnvidia-drm\ndrm-client-id:\t2\n")
	write(9, "3", "drm-driver:\tamdgpu\ndrm-client-id:\t3\ndrm-memory-vram:\t0\n")
	r := Reader{Proc: proc}.Read(context.Background(), []int{5, 6, 7, 8, 9, 10})
	if got := show(r.Uses); got != "5@0000:03:00.0=2097152 6@0000:04:00.0=3145728 7@nouveau=?" || !r.Known {
		t.Errorf("%s", got)
	}
}
