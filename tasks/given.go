package tasks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hob/recipes"
	"hob/sweep"
	"hob/sweep/gpu"
)

// giveGPUs decides which GPUs the tasks get that leave the choice to hob, and
// whether those that the others name have what they need. The server's lock is
// held, so that two ups cannot both take the same room.
func (u *upRun) giveGPUs(ctx context.Context) error {
	var starting []recipes.Task
	asked := false
	for _, t := range u.tasks {
		if t.act != leave {
			starting = append(starting, t.Task)
			asked = asked || t.GPUAuto != nil || t.Needs.GPUMemory > 0
		}
	}
	if !asked { // nvidia-smi takes its time
		u.grants = named(starting)
		return nil
	}
	p := planGPUs(starting, u.gpuView(ctx))
	u.grants, u.notes = p.grants, append(u.notes, p.notes...)
	for _, t := range u.tasks {
		if t.GPUAuto != nil {
			t.gpus = p.grants[t.Name].GPUs
		}
	}
	return errors.Join(p.errs...)
}

// named are the GPUs that the tasks name themselves.
func named(tasks []recipes.Task) map[string]GPUGrant {
	grants := map[string]GPUGrant{}
	for _, t := range tasks {
		switch t.GPUs {
		case "", "all", "none":
		default:
			grants[t.Name] = GPUGrant{GPUs: t.GPUs, Memory: t.Needs.GPUMemory}
		}
	}
	return grants
}

// gpuView looks at the host's GPUs, and at the claims on them of tasks that live.
func (u *upRun) gpuView(ctx context.Context) gpuView {
	cards, err := gpu.Cards(ctx)
	if err != nil {
		return gpuView{err: err}
	}
	var rooms []*gpuRoom
	for _, c := range cards {
		rooms = append(rooms, &gpuRoom{Card: c})
	}
	v := gpuView{who: u.gpuHolds(ctx)}
	value, set := lookupSet(u.Environ, "CUDA_VISIBLE_DEVICES")
	v.rooms = visible(rooms, set, value)
	u.claimGPUs(v.rooms)
	u.freeOwn(v)
	return v
}

// claimGPUs takes note of what tasks that live were given: all of it of those
// that still load, and the GPU itself of those that did not say how much.
func (u *upRun) claimGPUs(rooms []*gpuRoom) {
	all, _ := u.All() // of what cannot be read the notes speak already (claims)
	for _, s := range all {
		run, err := s.Run.Read()
		if err != nil {
			continue
		}
		for task, grant := range run.GPUs {
			d := Derive(u.look(s.Run.Task(task)))
			state := d.State
			if state == Unverified && s.Run.Name != u.dir.Name {
				u.notes = append(u.notes, fmt.Sprintf("GPU %s may be in use by %s, which is unverified: %s", grant.GPUs, Name{s.Run.Name, task}, d.Note))
			}
			if !state.Lives() || s.Run.Name == u.dir.Name && u.starts(task) {
				continue
			}
			if loaded := state == Ready; loaded && grant.Memory > 0 {
				continue // what it took is no longer free
			}
			for _, r := range grantedOf(rooms, grant) {
				r.promise(Name{s.Run.Name, task}.String(), grant.Memory)
			}
		}
	}
}

// grantedOf are those of the rooms that a task was given. It may have others, that
// this caller is not to see.
func grantedOf(rooms []*gpuRoom, g GPUGrant) []*gpuRoom {
	words := strings.Split(g.GPUs, ",")
	return slices.DeleteFunc(slices.Clone(rooms), func(r *gpuRoom) bool { return !slices.ContainsFunc(words, r.named) })
}

// starts reports whether this up starts the task.
func (u *upRun) starts(task string) bool {
	return slices.ContainsFunc(u.tasks, func(t *upTask) bool { return t.Name == task && t.act != leave })
}

// freeOwn counts as free what is held by what outlived the tasks that start: it
// is ended before they do.
func (u *upRun) freeOwn(v gpuView) {
	if !slices.ContainsFunc(u.tasks, func(t *upTask) bool { return t.act == settle }) {
		return
	}
	for _, r := range v.rooms {
		for _, h := range v.holds([]*gpuRoom{r}) {
			if h.bytes != nil && r.Free != nil && h.task.Run == u.dir.Name && u.starts(h.task.Task) {
				free := *r.Free + *h.bytes
				r.Free = &free
			}
		}
	}
}

// fillGPUs writes down which GPUs the tasks have, as their ports: before they start.
func (u *upRun) fillGPUs() {
	r := &u.run
	if r.GPUs == nil {
		r.GPUs = map[string]GPUGrant{}
	}
	maps.DeleteFunc(r.GPUs, func(name string, _ GPUGrant) bool { return u.starts(name) || !slices.Contains(r.Tasks, name) })
	maps.Copy(r.GPUs, u.grants)
}

// afterJob reports whether a job that starts now comes before the task: it may
// download or build what the task needs.
func (u *upRun) afterJob(t *upTask) bool {
	for _, d := range t.DependsOn {
		i := slices.IndexFunc(u.tasks, func(o *upTask) bool { return o.Name == d.Task })
		if i < 0 {
			continue
		}
		if o := u.tasks[i]; o.act != leave && o.Kind == string(sweep.Job) || u.afterJob(o) {
			return true
		}
	}
	return false
}

// warn tells a person what stops nothing.
func (m *Manager) warn(notes []string) {
	if m.Warn == nil {
		return
	}
	for _, n := range notes {
		m.Warn(n)
	}
}

// lookupSet is a variable of an environment, and whether it is there.
func lookupSet(env []string, name string) (string, bool) {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v, true
		}
	}
	return "", false
}
