package tasks

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"hob/recipes"
	"hob/sweep/gpu"
)

const gib = int64(1 << 30)

// rooms are GPUs with so many GiB free; negative: the driver does not say.
func rooms(free ...int64) []*gpuRoom {
	var list []*gpuRoom
	for i, f := range free {
		r := &gpuRoom{Card: gpu.Card{Index: i, UUID: fmt.Sprintf("GPU-%caaa", 'a'+i)}}
		if f >= 0 {
			bytes := f * gib
			r.Free = &bytes
		}
		list = append(list, r)
	}
	return list
}

func auto(name string, count int, memory int64) recipes.Task {
	return recipes.Task{Name: name, GPUs: "auto", GPUAuto: &recipes.GPUAuto{Count: count, Memory: memory * gib}}
}

func says(name, gpus string, memory int64) recipes.Task {
	return recipes.Task{Name: name, GPUs: gpus, Needs: recipes.Needs{GPUMemory: memory * gib}}
}

func TestPlanGPUs(t *testing.T) {
	tests := []struct {
		name   string
		rooms  []*gpuRoom
		tasks  []recipes.Task
		grants string // "a=0 b=1"
		wrong  string // the errors
		notes  string
	}{
		{"the one with the most left", rooms(10, 20, 15), []recipes.Task{auto("a", 1, 8)}, "a=1", "", ""},
		{"several, in their order", rooms(10, 20, 15), []recipes.Task{auto("a", 2, 8)}, "a=1,2", "", ""},
		{"what one was given the next has not", rooms(20, 15), []recipes.Task{auto("a", 1, 8), auto("b", 1, 8), auto("c", 1, 8)}, "a=0 b=1 c=0", "", ""},
		{"it does not fit", rooms(20, 15), []recipes.Task{auto("a", 1, 24)}, "",
			"a: it asks for a GPU with 24.0 GiB free, and GPU 0 has 20.0 GiB free, GPU 1 has 15.0 GiB free", ""},
		{"it fits, but not beside the first", rooms(20), []recipes.Task{auto("a", 1, 12), auto("b", 1, 12)}, "a=0",
			"b: it asks for a GPU with 12.0 GiB free, and GPU 0 has 20.0 GiB free, of which 12.0 GiB are for tasks that load", ""},
		{"too few of them", rooms(20, 20), []recipes.Task{auto("a", 3, 8)}, "",
			"a: it asks for 3 GPUs with 8.0 GiB free on each, and GPU 0 has 20.0 GiB free, GPU 1 has 20.0 GiB free", ""},
		{"without figures each has its own", rooms(20, 15), []recipes.Task{auto("a", 1, 0), auto("b", 1, 0)}, "a=0 b=1", "", ""},
		{"without figures there is none left", rooms(20), []recipes.Task{auto("a", 1, 0), auto("b", 1, 0)}, "a=0",
			"b: it asks for a GPU of its own, and GPU 0 is for a", ""},
		{"who needs most comes first", rooms(10, 20), []recipes.Task{auto("a", 1, 9), auto("b", 1, 18)}, "a=0 b=1", "", ""},
		{"room is left for who wants one alone", rooms(20, 20), []recipes.Task{auto("a", 1, 8), auto("b", 1, 9), auto("c", 1, 0)}, "a=0 b=0 c=1", "", ""},
		{"those that name theirs come first", rooms(20, 15), []recipes.Task{auto("a", 1, 0), says("b", "0", 0)}, "a=1 b=0", "", ""},
		{"a driver that does not say", rooms(-1, -1), []recipes.Task{auto("a", 1, 8)}, "",
			"a: it asks for a GPU with 8.0 GiB free, and GPU 0 does not say how much of its memory is free, GPU 1 does not say how much of its memory is free", ""},
		{"a driver that does not say, and nothing asked for", rooms(-1, -1), []recipes.Task{auto("a", 1, 0), auto("b", 1, 0)}, "a=0 b=1", "", ""},
		{"no GPU at all", rooms(), []recipes.Task{auto("a", 1, 0)}, "", "a: it asks for a GPU of its own, and there is no GPU that it may see", ""},

		{"enough on each", rooms(20, 20), []recipes.Task{says("a", "0,1", 18)}, "a=0,1", "", ""},
		{"not enough on one", rooms(20, 4), []recipes.Task{says("a", "0,1", 18)}, "a=0,1", "a needs 18.0 GiB of GPU memory, and GPU 1 has 4.0 GiB free", ""},
		{"not enough for both", rooms(20), []recipes.Task{says("a", "0", 12), says("b", "0", 12)}, "a=0 b=0",
			"b needs 12.0 GiB of GPU memory, and GPU 0 has 20.0 GiB free, of which 12.0 GiB are for tasks that load", ""},
		{"no such GPU", rooms(20), []recipes.Task{says("a", "3", 0)}, "", "a: there is no GPU 3 that it may see; GPU 0 has 20.0 GiB free", ""},
		{"by its UUID", rooms(20, 4), []recipes.Task{says("a", "GPU-b", 2)}, "a=GPU-b", "", ""},
		{"part of a GPU", rooms(20), []recipes.Task{says("a", "MIG-abcd", 0)}, "a=MIG-abcd", "", ""},
		{"it did not say which: one is enough", rooms(2, 20), []recipes.Task{says("a", "", 18)}, "", "", ""},
		{"it did not say which, and none has it", rooms(2, 3), []recipes.Task{says("a", "", 18)}, "",
			"a needs 18.0 GiB of GPU memory, and GPU 0 has 2.0 GiB free, GPU 1 has 3.0 GiB free", ""},
		{"all: each", rooms(2, 20), []recipes.Task{says("a", "all", 18)}, "", "a needs 18.0 GiB of GPU memory, and GPU 0 has 2.0 GiB free", ""},
		{"none needs nothing", rooms(), []recipes.Task{says("a", "none", 18)}, "", "", ""},
		{"no GPU for one that needs one", rooms(), []recipes.Task{says("a", "", 18)}, "", "a needs 18.0 GiB of GPU memory, and there is no GPU that it may see", ""},
		{"what is not said is noted", rooms(-1), []recipes.Task{says("a", "0", 18)}, "a=0", "",
			"a needs 18.0 GiB on GPU 0, which does not say how much of its memory is free"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := planGPUs(tt.tasks, gpuView{rooms: tt.rooms})
			var got []string
			for name, g := range p.grants {
				got = append(got, name+"="+g.GPUs)
			}
			slices.Sort(got)
			if g := strings.Join(got, " "); g != tt.grants {
				t.Errorf("grants %q, want %q", g, tt.grants)
			}
			if err := errors.Join(p.errs...); err == nil && tt.wrong != "" || err != nil && err.Error() != tt.wrong {
				t.Errorf("errors\n%v\nwant\n%s", err, tt.wrong)
			}
			if n := strings.Join(p.notes, "\n"); n != tt.notes {
				t.Errorf("notes %q, want %q", n, tt.notes)
			}
		})
	}
}

// Where the GPUs cannot be seen nothing is chosen, and nothing taken for granted.
func TestBlindPlan(t *testing.T) {
	missing := &exec.Error{Name: "nvidia-smi", Err: exec.ErrNotFound}
	p := planGPUs([]recipes.Task{auto("a", 1, 8), says("b", "0", 18), says("c", "0", 0)}, gpuView{err: missing})
	if len(p.errs) != 1 || p.errs[0].Error() != "a: GPUs cannot be chosen for it: nvidia-smi is not on the PATH" {
		t.Errorf("%v", p.errs)
	}
	if len(p.notes) != 1 || !strings.HasPrefix(p.notes[0], "b needs 18.0 GiB of GPU memory, and that could not be looked at") {
		t.Errorf("%q", p.notes)
	}
}

// What outlived a task of hob's is named with what ends it, a stranger with itself.
func TestWhoHasTheGPU(t *testing.T) {
	n := 12 * gib
	v := gpuView{rooms: rooms(4), who: func(indexes []string) holds {
		if !slices.Equal(indexes, []string{"0"}) {
			t.Errorf("asked about %q", indexes)
		}
		return holds{{words: "pid 7 (train.py)", bytes: &n}, {words: "pid 8 (VLLM::EngineCore)", bytes: &n, task: Name{"old", "llm"}},
			{words: "pid 9 (ollama)", bytes: &n, task: Name{"up", "llm"}, lives: true}}
	}}
	for _, task := range []recipes.Task{auto("a", 1, 18), says("a", "0", 18)} {
		p := planGPUs([]recipes.Task{task}, v)
		var problem *Problem
		if len(p.errs) != 1 || !errors.As(p.errs[0], &problem) {
			t.Fatalf("%v", p.errs)
		}
		if want := "; it is held by pid 7 (train.py) with 12.0 GiB, pid 8 (VLLM::EngineCore), which outlived old/llm with 12.0 GiB, pid 9 (ollama) of up/llm with 12.0 GiB"; !strings.HasSuffix(problem.Msg, want) {
			t.Errorf("%s\nwant …%s", problem.Msg, want)
		}
		if want := "hob sweep old/llm ends what outlived it; hob down up/llm ends it"; problem.Tip != want {
			t.Errorf("%s, want %s", problem.Tip, want)
		}
	}
}

func TestVisible(t *testing.T) {
	for _, tt := range []struct {
		set   bool
		value string
		want  string
	}{
		{false, "", "[0 1 2]"}, {true, "", "[]"}, {true, "2,0", "[2 0]"}, {true, "1, 2", "[1 2]"}, {true, "GPU-b", "[1]"},
		{true, "-1", "[]"}, {true, "0,-1,2", "[0]"}, {true, "NoDevFiles", "[]"}, {true, "7", "[]"},
	} {
		got := []int{}
		for _, r := range visible(rooms(1, 1, 1), tt.set, tt.value) {
			got = append(got, r.Index)
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%t %q: %v, want %s", tt.set, tt.value, got, tt.want)
		}
	}
}

// A task that has GPUs beside those that this caller sees has its claim on these.
func TestGrantsBesideWhatIsSeen(t *testing.T) {
	all := rooms(20, 20, 20)
	for gpus, want := range map[string]int{"0,2": 1, "2": 0, "0,1": 2, "GPU-ba": 1, "": 0} {
		if got := grantedOf(all[:2], GPUGrant{GPUs: gpus}); len(got) != want {
			t.Errorf("%q: %d of the two that are seen, want %d", gpus, len(got), want)
		}
	}
}
