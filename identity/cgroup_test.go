package identity

import (
	"errors"
	"slices"
	"testing"
)

func TestUnifiedCgroup(t *testing.T) {
	for text, want := range map[string]string{
		"0::/user.slice/x\n":               "/user.slice/x",
		"5:devices:/a\n0::/b c\n":          "/b c",
		"0::/../other (deleted)\n":         "/../other (deleted)",
		"2:cpu:/a\n1:name=systemd:/init\n": "",
		"":                                 "",
	} {
		if got, ok := unifiedCgroup([]byte(text)); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %t", text, got, ok)
		}
	}
}

func TestCgroupMounts(t *testing.T) {
	const info = `22 1 8:1 / / rw - ext4 /dev/sda1 rw
31 22 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
42 31 0:39 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer
50 22 0:38 /docker/c0 /mnt/a\040b rw - cgroup2 cgroup rw
51 22 0:38 /../.. /outside rw - cgroup2 cgroup rw
torn line
`
	mounts := parseCgroupMounts([]byte(info))
	want := []cgroupMount{{"/outside", "/../.."}, {"/mnt/a b", "/docker/c0"}, {"/sys/fs/cgroup/unified", "/"}}
	if !slices.Equal(mounts, want) {
		t.Fatalf("%v", mounts)
	}
	for _, c := range []struct {
		mount   cgroupMount
		cgroup  string
		dir     string
		visible bool
	}{
		{want[2], "/", "/sys/fs/cgroup/unified", true},
		{want[2], "/user.slice/x", "/sys/fs/cgroup/unified/user.slice/x", true},
		{want[2], "/../x", "", false}, // outside of our cgroup namespace
		{want[1], "/docker/c0", "/mnt/a b", true},
		{want[1], "/docker/c0/in", "/mnt/a b/in", true},
		{want[1], "/docker/c01", "", false},
		{want[1], "/", "", false},
		{want[0], "/", "", false},
	} {
		if dir, ok := c.mount.dirOf(c.cgroup); dir != c.dir || ok != c.visible {
			t.Errorf("%v %q: %q, %t", c.mount, c.cgroup, dir, ok)
		}
	}
}

func TestTokenOlder(t *testing.T) {
	for _, c := range []struct {
		a, b         Token
		older, known bool
	}{
		{"linux:5", "linux:10", true, true},
		{"linux:10", "linux:5", false, true},
		{"linux:5", "linux:5", false, true},
		{"linux:5", "darwin:10", false, false},
		{"linux:x", "linux:10", false, false},
		{"", "linux:10", false, false},
		{"linux:5", "", false, false},
	} {
		if older, known := c.a.Older(c.b); older != c.older || known != c.known {
			t.Errorf("%q, %q: %t, %t", c.a, c.b, older, known)
		}
	}
}

// TestNoCgroups: where there are none nothing was looked for, and so nothing is gone.
func TestNoCgroups(t *testing.T) {
	if err := (noCgroups{}).Discard(CgroupRef{}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("discard: %v", err)
	}
	if _, err := (noCgroups{}).Find("x"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("find: %v", err)
	}
}
