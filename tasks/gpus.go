package tasks

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"hob/recipes"
	"hob/sweep/gpu"
)

// gpuRoom is what is known of one GPU, and who has a claim on it.
type gpuRoom struct {
	gpu.Card
	promised int64    // bytes, to tasks that start now or still load
	whole    []string // tasks that did not say how much they need: it is theirs
}

// left is what of its memory nobody has or was promised; null when the driver
// does not say.
func (r *gpuRoom) left() *int64 {
	if r.Free == nil {
		return nil
	}
	n := max(0, *r.Free-r.promised)
	return &n
}

// promise takes note of a task that will use the GPU.
func (r *gpuRoom) promise(name string, bytes int64) {
	if bytes > 0 {
		r.promised += bytes
		return
	}
	r.whole = append(r.whole, name)
}

// named reports whether a word of the recipe is this GPU: its number, or the
// beginning of its UUID, as CUDA reads it.
func (r *gpuRoom) named(word string) bool {
	n, err := strconv.Atoi(word)
	return err == nil && n == r.Index || err != nil && word != "" && strings.HasPrefix(r.UUID, word)
}

// state is the GPU in words.
func (r *gpuRoom) state() string {
	s := fmt.Sprintf("GPU %d", r.Index)
	switch left := r.left(); {
	case len(r.whole) > 0:
		return s + " is for " + strings.Join(r.whole, ", ")
	case left == nil:
		return s + " does not say how much of its memory is free"
	case r.promised > 0:
		return fmt.Sprintf("%s has %s free, of which %s are for tasks that load", s, Bytes(*r.Free), Bytes(min(r.promised, *r.Free)))
	default:
		return fmt.Sprintf("%s has %s free", s, Bytes(*left))
	}
}

// GPUGrant is which GPUs a task was given, and what it will take of each.
type GPUGrant struct {
	GPUs   string `json:"gpus"`   // "0,1"
	Memory int64  `json:"memory"` // bytes on each; 0: it did not say
}

// gpuView is what could be seen of the host's GPUs.
type gpuView struct {
	rooms []*gpuRoom
	err   error                        // why nothing could
	who   func(indexes []string) holds // who holds their memory; nil: nobody can tell
}

// chooseGPUs picks the GPUs for a task that leaves the choice to hob: those with
// the most memory left, so that tasks do not share GPUs before they must; or those
// with the least that is enough, where others want GPUs of their own. A task that
// does not say what it needs gets GPUs that nobody else was given.
func chooseGPUs(want recipes.GPUAuto, rooms []*gpuRoom, dense bool) ([]*gpuRoom, bool) {
	fit := slices.DeleteFunc(slices.Clone(rooms), func(r *gpuRoom) bool {
		left := r.left()
		if len(r.whole) > 0 {
			return true
		}
		if want.Memory > 0 {
			return left == nil || *left < want.Memory
		}
		return r.promised > 0
	})
	slices.SortStableFunc(fit, func(a, b *gpuRoom) int {
		if dense && want.Memory > 0 {
			return cmp.Compare(orNone(a.left()), orNone(b.left()))
		}
		return cmp.Compare(orNone(b.left()), orNone(a.left()))
	})
	if len(fit) < want.Count {
		return nil, false
	}
	fit = fit[:want.Count]
	slices.SortFunc(fit, func(a, b *gpuRoom) int { return a.Index - b.Index })
	return fit, true
}

func orNone(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// gpuPlan is what was decided about the GPUs of the tasks that start.
type gpuPlan struct {
	grants map[string]GPUGrant
	notes  []string
	errs   []error
}

// planGPUs gives GPUs to the tasks: first those that name theirs, so that what is
// chosen for the others does not land on them; then those that need the most.
func planGPUs(tasks []recipes.Task, v gpuView) gpuPlan {
	p := gpuPlan{grants: map[string]GPUGrant{}}
	for _, t := range tasks {
		if t.GPUAuto == nil {
			p.said(t, v)
		}
	}
	autos := slices.DeleteFunc(slices.Clone(tasks), func(t recipes.Task) bool { return t.GPUAuto == nil })
	slices.SortStableFunc(autos, func(a, b recipes.Task) int { return cmp.Compare(b.GPUAuto.Memory, a.GPUAuto.Memory) })
	dense := len(autos) > 0 && autos[len(autos)-1].GPUAuto.Memory == 0
	for _, t := range autos {
		p.auto(t, v, dense)
	}
	return p
}

// auto chooses for one task. Where hob cannot tell it starts nothing: all GPUs
// would be what nobody asked for.
func (p *gpuPlan) auto(t recipes.Task, v gpuView, dense bool) {
	const tip = "name them, like gpus: [0]; gpus: all lets it see every one"
	want := *t.GPUAuto
	if v.err != nil {
		p.errs = append(p.errs, &Problem{Msg: fmt.Sprintf("%s: GPUs cannot be chosen for it: %v", t.Name, blind(v.err)), Tip: tip})
		return
	}
	rooms, ok := chooseGPUs(want, v.rooms, dense)
	if !ok {
		p.errs = append(p.errs, &Problem{Msg: t.Name + ": " + noRoom(want, v.rooms) + v.holders(v.rooms), Tip: v.advice(v.rooms, autoTip(want))})
		return
	}
	var numbers []string
	for _, r := range rooms {
		r.promise(t.Name, want.Memory)
		numbers = append(numbers, strconv.Itoa(r.Index))
	}
	p.grants[t.Name] = GPUGrant{GPUs: strings.Join(numbers, ","), Memory: want.Memory}
}

func autoTip(want recipes.GPUAuto) string {
	if want.Memory == 0 {
		return "say how much of each it needs, like gpus: {auto: {memory: 18GiB}}, and tasks share GPUs"
	}
	return "end something, or lower what it asks for (gpus, needs)"
}

func noRoom(want recipes.GPUAuto, rooms []*gpuRoom) string {
	asked := "a GPU of its own"
	switch {
	case want.Memory > 0 && want.Count > 1:
		asked = fmt.Sprintf("%d GPUs with %s free on each", want.Count, Bytes(want.Memory))
	case want.Memory > 0:
		asked = fmt.Sprintf("a GPU with %s free", Bytes(want.Memory))
	case want.Count > 1:
		asked = fmt.Sprintf("%d GPUs of its own", want.Count)
	}
	return "it asks for " + asked + ", and " + states(rooms)
}

func states(rooms []*gpuRoom) string {
	if len(rooms) == 0 {
		return "there is no GPU that it may see"
	}
	var words []string
	for _, r := range rooms {
		words = append(words, r.state())
	}
	return strings.Join(words, ", ")
}

// said looks at a task that says which GPUs it sees, or nothing.
func (p *gpuPlan) said(t recipes.Task, v gpuView) {
	need := t.Needs.GPUMemory
	if t.GPUs == "none" || t.GPUs == "" && need == 0 {
		return
	}
	if v.err != nil {
		if need > 0 {
			p.notes = append(p.notes, fmt.Sprintf("%s needs %s of GPU memory, and that could not be looked at: %v", t.Name, Bytes(need), blind(v.err)))
		}
		return
	}
	rooms, missing := seen(t.GPUs, v.rooms)
	switch {
	case missing != "":
		p.errs = append(p.errs, &Problem{Msg: fmt.Sprintf("%s: there is no GPU %s that it may see; %s", t.Name, missing, states(v.rooms)), Tip: "nvidia-smi -L lists them"})
		return
	case len(rooms) == 0 && need > 0:
		p.errs = append(p.errs, &Problem{Msg: fmt.Sprintf("%s needs %s of GPU memory, and there is no GPU that it may see", t.Name, Bytes(need)), Tip: "nvidia-smi -L lists them"})
		return
	}
	if need > 0 {
		p.enough(t, rooms, v)
	}
	if t.GPUs == "" || t.GPUs == "all" && need == 0 {
		return // nobody can tell which of them it will take
	}
	for _, r := range rooms {
		r.promise(t.Name, need)
	}
	if t.GPUs != "all" {
		p.grants[t.Name] = GPUGrant{GPUs: t.GPUs, Memory: need}
	}
}

// enough checks what a task needs of each of its GPUs; of one of them, where it
// did not say which.
func (p *gpuPlan) enough(t recipes.Task, rooms []*gpuRoom, v gpuView) {
	need := t.Needs.GPUMemory
	var short []*gpuRoom
	for _, r := range rooms {
		switch left := r.left(); {
		case left == nil:
			p.notes = append(p.notes, fmt.Sprintf("%s needs %s on GPU %d, which does not say how much of its memory is free", t.Name, Bytes(need), r.Index))
		case *left < need:
			short = append(short, r)
		}
	}
	if len(short) == 0 || t.GPUs == "" && len(short) < len(rooms) {
		return
	}
	p.errs = append(p.errs, &Problem{
		Msg: fmt.Sprintf("%s needs %s of GPU memory, and %s", t.Name, Bytes(need), states(short)) + v.holders(short),
		Tip: v.advice(short, "end something, choose other GPUs, or lower needs.gpu_memory in the recipe"),
	})
}

// seen are the GPUs that a task sees, or the first that is not there.
func seen(gpus string, rooms []*gpuRoom) (list []*gpuRoom, missing string) {
	if gpus == "" || gpus == "all" {
		return rooms, ""
	}
	for word := range strings.SplitSeq(gpus, ",") {
		i := slices.IndexFunc(rooms, func(r *gpuRoom) bool { return r.named(word) })
		switch {
		case i >= 0:
			list = append(list, rooms[i])
		case !strings.HasPrefix(word, "MIG-"): // a part of a GPU, which is not listed
			return nil, word
		}
	}
	return list, ""
}

// visible are the GPUs that the caller lets programs see: a scheduler gives a job
// some of the host's by CUDA_VISIBLE_DEVICES, which is read up to the first word
// that is no GPU (CUDA programming guide, environment variables).
func visible(rooms []*gpuRoom, set bool, value string) []*gpuRoom {
	if !set {
		return rooms
	}
	var list []*gpuRoom
	for word := range strings.SplitSeq(value, ",") {
		i := slices.IndexFunc(rooms, func(r *gpuRoom) bool { return r.named(strings.TrimSpace(word)) })
		if i < 0 {
			break
		}
		list = append(list, rooms[i])
	}
	return list
}

// blind words why the GPUs cannot be seen.
func blind(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("nvidia-smi is not on the PATH")
	}
	return err
}
