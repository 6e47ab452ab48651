package gpu

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// drm reads what the processes' DRM files say of themselves
// (Documentation/gpu/drm-usage-stats.rst): amdgpu, i915, xe, nouveau and others.
// It needs no library and no privilege beyond the right to look at the process.
func (r Reader) drm(pids []int) (uses []Use, unread []int) {
	proc := r.Proc
	if proc == "" {
		proc = "/proc"
	}
	for _, pid := range pids {
		clients, err := drmClients(filepath.Join(proc, strconv.Itoa(pid), "fdinfo"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			unread = append(unread, pid)
		}
		for _, c := range clients {
			if c.driver != "nvidia-drm" { // nvidia-smi has it, and its fdinfo has not
				uses = append(uses, Use{PID: pid, GPU: c.device, Bytes: c.bytes})
			}
		}
	}
	return uses, unread
}

// client is one use of a DRM device. A process may have it open several times
// under one client id, and it counts once.
type client struct {
	driver, device, id string
	bytes              *int64
}

func drmClients(dir string) ([]client, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []client
	seen := map[string]bool{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // closed in between
		}
		c, ok := parseFdinfo(text)
		if key := c.device + " " + c.id; ok && !seen[key] {
			seen[key] = true
			out = append(out, c)
		}
	}
	return out, nil
}

// parseFdinfo reads the keys of one file. Memory that lies in the device is
// called vram, vram0, local0 and so on; what is resident is preferred to what
// was only asked for.
func parseFdinfo(text []byte) (client, bool) {
	var c client
	resident, total := map[string]int64{}, map[string]int64{}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		key, value, _ := strings.Cut(s.Text(), ":")
		value = strings.TrimSpace(value)
		switch {
		case key == "drm-driver":
			c.driver = value
		case key == "drm-pdev":
			c.device = value
		case key == "drm-client-id":
			c.id = value
		case strings.HasPrefix(key, "drm-resident-"):
			put(resident, strings.TrimPrefix(key, "drm-resident-"), value)
		case strings.HasPrefix(key, "drm-memory-"):
			put(resident, strings.TrimPrefix(key, "drm-memory-"), value)
		case strings.HasPrefix(key, "drm-total-"):
			put(total, strings.TrimPrefix(key, "drm-total-"), value)
		}
	}
	if c.driver == "" {
		return c, false
	}
	if c.device == "" {
		c.device = c.driver
	}
	c.bytes = sum(resident, total)
	return c, c.bytes == nil || *c.bytes > 0
}

// put keeps a region's size, if the region is memory of the device.
func put(m map[string]int64, region, value string) {
	if !strings.HasPrefix(region, "vram") && !strings.HasPrefix(region, "local") {
		return
	}
	number, unit, _ := strings.Cut(value, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return
	}
	switch strings.TrimSpace(unit) {
	case "KiB":
		n <<= 10
	case "MiB":
		n <<= 20
	}
	m[region] = n
}

func sum(resident, total map[string]int64) *int64 {
	from := resident
	if len(from) == 0 {
		from = total
	}
	if len(from) == 0 {
		return nil
	}
	var n int64
	for _, v := range from {
		n += v
	}
	return &n
}
