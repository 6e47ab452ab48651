package main

import (
	"testing"

	"hob/tasks/probe"
)

func TestLoading(t *testing.T) {
	for want, log := range map[string]string{
		"44% Loading safetensors checkpoint shards (4/9)": "Loading safetensors checkpoint shards:  44% Completed | 4/9 [00:03<00:04,  1.20it/s]\n",
		"12% model.safetensors (1.2/9.9 GB)":              "model.safetensors:  12%|█▏        | 1.2G/9.9G [00:10<01:20, 100MB/s]",
		"7%":                                              "Loading 7%",
	} {
		p, ok := probe.LastProgress([]byte(log))
		if got := loading(p); !ok || got != want && got != want+" Loading" {
			t.Errorf("%q: %t %q, want %q", log, ok, got, want)
		}
	}
	for percent, want := range map[int]string{0: "░░░░░░░░░░░░░░░░░░░░", 50: "██████████░░░░░░░░░░", 100: "████████████████████", 200: "████████████████████"} {
		if got := bar(percent); got != want {
			t.Errorf("%d: %s", percent, got)
		}
	}
	if tenth(nil) != -1 || tenth(&probe.Progress{Percent: 49}) != 4 {
		t.Error("tenths")
	}
}
