package probe

import (
	"math"
	"strings"
	"testing"
)

func TestLastProgress(t *testing.T) {
	for line, want := range map[string]Progress{
		"Loading safetensors checkpoint shards:  45% Completed | 4/9 [00:02<00:03,  1.60it/s]": {45, "Loading safetensors checkpoint shards", 4, 9, ""},
		"Capturing CUDA graph shapes:  71%|███████▏  | 25/35 [00:11<00:04,  2.22it/s]":         {71, "Capturing CUDA graph shapes", 25, 35, ""},
		"model.safetensors:  12%|█▏        | 1.20G/9.90G [00:10<01:20, 98.3MB/s]":              {12, "model.safetensors", 1.2, 9.9, "GB"},
		"Fetching 7 files:  43%|████▎     | 3/7 [00:01<00:01,  2.9it/s]":                       {43, "Fetching 7 files", 3, 7, ""},
		"pulling 8eeb52dfb3bb...  45% ▕███████         ▏ 2.1 GB/4.7 GB   58 MB/s     44s":      {45, "pulling 8eeb52dfb3bb...", 2.1, 4.7, "GB"},
		"\x1b[?25l\x1b[2K\x1b[1Gpulling manifest 100%":                                         {100, "pulling manifest", 0, 0, ""},
		"(EngineCore pid=7) INFO [loader.py:12] Loading weights 3 of 4":                        {75, "Loading weights", 3, 4, ""},
		"Downloading 512 MiB / 1.0 GiB":                                                        {50, "Downloading", 0.5, 1, "GiB"},
		"Downloading 900M/1.8G":                                                                {50, "Downloading", 0.9, 1.8, "GB"},
		"load_tensors: loading model tensors, progress 12.5%":                                  {12, "load_tensors: loading model tensors, progress", 0, 0, ""},
		"old 10% loaded\r20% loaded\r\n\r\nnothing here\n":                                     {20, "", 0, 0, ""},
		"loading 10%\nloading 200%\n":                                                          {10, "loading", 0, 0, ""},
	} {
		got, ok := LastProgress([]byte(line))
		if !ok || got.Percent != want.Percent || got.What != want.What || got.Unit != want.Unit ||
			math.Abs(got.Done-want.Done) > 1e-9 || got.Total != want.Total {
			t.Errorf("%q:\n got %+v %v\nwant %+v", line, got, ok, want)
		}
	}
}

// What has a percentage or a fraction in it and is no progress.
func TestNoProgress(t *testing.T) {
	for _, line := range []string{
		"",
		"Avg prompt throughput: 0.0 tokens/s, Running: 0 reqs, GPU KV cache usage: 12.1%, Prefix cache hit rate: 0.0%",
		"INFO 01-02 loading model from /models/70/9/x",
		"Loading model /data/12/34",
		"GET /load/3/9 HTTP/1.1",
		"gpu_memory_utilization loading 90%",
		"the CPU is at 45%",
		"loaded 9/3 things",
		"loading 0/0",
		"Loading llama-3.1/8B",
		"loading at 10:20/30",
		"Loading version 1.2/3.4.5",
		"old progress 10%\n" + strings.Repeat("work\n", 4000),
	} {
		if p, ok := LastProgress([]byte(line)); ok {
			t.Errorf("%.80q is read as %+v", line, p)
		}
	}
}

func FuzzLastProgress(f *testing.F) {
	f.Add([]byte("Loading shards:  45%|xx| 4/9 [00:02<00:03]\r"))
	f.Add([]byte("Downloading 900M/1.8GiB"))
	f.Fuzz(func(t *testing.T, log []byte) {
		p, ok := LastProgress(log)
		if ok && (p.Percent < 0 || p.Percent > 100 || p.Done < 0 || p.Done > p.Total || math.IsNaN(p.Done) || math.IsInf(p.Total, 0)) {
			t.Errorf("%q is read as %+v", log, p)
		}
	})
}
