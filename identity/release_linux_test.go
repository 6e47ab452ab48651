package identity

import (
	"os"
	"strings"
	"testing"
)

func TestKernelRelease(t *testing.T) {
	want, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := KernelRelease(); err != nil || got != strings.TrimSpace(string(want)) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
