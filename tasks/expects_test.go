package tasks

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"hob/identity/child"
	"hob/recipes"
	"hob/sweep/gpu"
)

func TestExpects(t *testing.T) {
	smi := func(d gpu.Driver, err error) hostFacts {
		return hostFacts{driver: func() (gpu.Driver, error) { return d, err }}
	}
	shm := func(free uint64, err error) hostFacts {
		return hostFacts{shm: func() (uint64, error) { return free, err }}
	}
	limits := func(l child.Limits) hostFacts { return hostFacts{limits: func() child.Limits { return l }} }
	cuda := recipes.Expect{Engine: "vllm", What: "cuda", AtLeast: "12.2"}
	room := recipes.Expect{Engine: "vllm", What: "shm", AtLeast: "1GiB"}
	files := recipes.Expect{Engine: "vllm", What: "files", AtLeast: "65535"}
	lock := recipes.Expect{Engine: "llama-server", What: "memlock", AtLeast: "unlimited"}
	for name, c := range map[string]struct {
		host hostFacts
		what recipes.Expect
		want string
	}{
		"new enough":        {smi(gpu.Driver{Version: "535.1", CUDA: "12.2"}, nil), cuda, ""},
		"newer":             {smi(gpu.Driver{Version: "580.1", CUDA: "13.0"}, nil), cuda, ""},
		"newer, two digits": {smi(gpu.Driver{Version: "580.1", CUDA: "12.10"}, nil), cuda, ""},
		"too old":           {smi(gpu.Driver{Version: "470.1", CUDA: "11.4"}, nil), cuda, "vllm expects a driver for CUDA 12.2 or newer, and 470.1 is for CUDA 11.4"},
		"it does not say":   {smi(gpu.Driver{Version: "470.1"}, nil), cuda, "vllm expects CUDA 12.2, and the driver does not say which it has"},
		"no NVIDIA":         {smi(gpu.Driver{}, gpu.ErrNoSMI), cuda, ""},
		"cannot look":       {smi(gpu.Driver{}, errors.New("nvidia-smi: no answer")), cuda, "the NVIDIA driver could not be looked at: nvidia-smi: no answer"},
		"changed under it": {smi(gpu.Driver{}, errors.New("Driver/library version mismatch")), cuda,
			"the NVIDIA driver was changed while its old kernel module runs on, until a reboot: Driver/library version mismatch"},
		"room":        {shm(1<<30, nil), room, ""},
		"Docker's":    {shm(64<<20, nil), room, "vllm expects 1GiB of shared memory between its processes, and /dev/shm has 64.0 MiB free (in a container: --shm-size, or --ipc=host)"},
		"no /dev/shm": {shm(0, &fs.PathError{Err: fs.ErrNotExist}), room, ""},
		"closed shm":  {shm(0, fs.ErrPermission), room, "vllm expects 1GiB of shared memory, and /dev/shm could not be looked at: permission denied"},
		"files":       {limits(child.Limits{"nofile": "1024:65535"}), files, ""},
		"few files":   {limits(child.Limits{"nofile": "1024:4096"}), files, "vllm expects to be allowed 65535 open files, and 4096 is the most here (ulimit -Hn)"},
		"no figure":   {limits(nil), files, ""},
		"locked":      {limits(child.Limits{"memlock": "unlimited:unlimited"}), lock, ""},
		"not locked":  {limits(child.Limits{"memlock": "65536:unlimited"}), lock, "llama-server expects to lock memory, and 64.0 KiB are allowed (ulimit -l)"},
	} {
		if got := c.host.lacks(c.what); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	wants := []want{
		{task: recipes.Task{Name: "a", Expects: []recipes.Expect{files, lock}}},
		{task: recipes.Task{Name: "b", Expects: []recipes.Expect{files}}},
		{task: recipes.Task{Name: "c"}},
	}
	got := checkExpects(wants, limits(child.Limits{"nofile": "1:2", "memlock": "unlimited:unlimited"}))
	if want := []string{"a, b: vllm expects to be allowed 65535 open files, and 2 is the most here (ulimit -Hn)"}; !slices.Equal(got, want) {
		t.Errorf("said once: %s", fmt.Sprintf("%q", got))
	}
}
