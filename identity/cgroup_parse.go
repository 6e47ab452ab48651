package identity

import (
	"bytes"
	"path"
	"slices"
	"strconv"
	"strings"
)

// parseCgroupMounts finds where cgroups of version 2 are mounted, in
// /proc/self/mountinfo (proc_pid_mountinfo(5)): the place, and which of the
// cgroups its root is, seen from the reader's cgroup namespace. The last one
// comes first: it is on top.
func parseCgroupMounts(mountinfo []byte) (mounts []cgroupMount) {
	for line := range bytes.Lines(mountinfo) {
		left, right, ok := bytes.Cut(line, []byte(" - "))
		if !ok || !bytes.HasPrefix(right, []byte("cgroup2 ")) {
			continue
		}
		f := strings.Fields(string(left))
		if len(f) < 5 {
			continue
		}
		mounts = append(mounts, cgroupMount{at: unescapeMount(f[4]), root: unescapeMount(f[3])})
	}
	slices.Reverse(mounts)
	return mounts
}

type cgroupMount struct{ at, root string }

// dirOf is the directory of a cgroup below the mount; ok is false when the mount
// does not show it.
func (m cgroupMount) dirOf(cgroup string) (dir string, ok bool) {
	rel, ok := strings.CutPrefix(cgroup, strings.TrimSuffix(m.root, "/"))
	if !ok || rel != "" && rel[0] != '/' || strings.HasPrefix(cgroup, "/..") {
		return "", false
	}
	return path.Join(m.at, rel), true
}

// unescapeMount undoes the octal escapes of mountinfo.
func unescapeMount(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unifiedCgroup is a process's cgroup of version 2 in /proc/PID/cgroup.
func unifiedCgroup(text []byte) (path string, ok bool) {
	for line := range bytes.Lines(text) {
		if p, ok := bytes.CutPrefix(line, []byte("0::")); ok {
			return strings.TrimSuffix(string(p), "\n"), true
		}
	}
	return "", false
}

// saysFrozen reports whether a cgroup.events says that nobody in the cgroup runs.
func saysFrozen(events []byte) bool {
	for line := range bytes.Lines(events) {
		if string(bytes.TrimSpace(line)) == "frozen 1" {
			return true
		}
	}
	return false
}
