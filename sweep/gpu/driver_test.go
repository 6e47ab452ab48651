package gpu

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestDriver(t *testing.T) {
	const table = "+-----------------------------------------------------------------------------+\n" +
		"| NVIDIA-SMI 525.105.17   Driver Version: 525.105.17   CUDA Version: 12.0     |\n|---"
	for text, want := range map[string]Driver{
		table: {"525.105.17", "12.0"},
		"| NVIDIA-SMI 580.65.06   Driver Version: 580.65.06   CUDA Version: 13.0 |": {"580.65.06", "13.0"},
		"| NVIDIA-SMI 470.1   Driver Version: 470.1   CUDA Version: N/A |":          {"470.1", ""},
		"Driver Version: 1.2 CUDA Version: ERR!":                                    {"1.2", ""},
		"Driver Version:":                                                           {},
		"":                                                                          {},
	} {
		if got := parseDriver(text); got != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
	failing := Reader{SMI: "nvidia-smi", Run: func(context.Context, []string) ([]byte, error) {
		return []byte("Failed to initialize NVML: Driver/library version mismatch\n"), errors.New("exit status 18")
	}}
	if _, err := failing.Driver(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 18: Failed to initialize NVML") {
		t.Error(err)
	}
}
