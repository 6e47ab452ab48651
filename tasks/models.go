package tasks

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shirou/gopsutil/v4/disk"

	"hob/sweep"
)

// checkModel looks for a task's model where the task will. One that a job may
// still bring is not looked for.
func checkModel(w want) (note string, err error) {
	if w.made || w.task.ModelAt == "" {
		return "", nil
	}
	model := w.task.Model
	if w.task.ModelAt == "path" {
		if !filepath.IsAbs(model) {
			model = filepath.Join(w.task.Dir, model)
		}
		_, err := os.Stat(model)
		if err == nil {
			return "", nil
		}
		return "", &Problem{
			Msg: fmt.Sprintf("%s: its model: %v", w.task.Name, err),
			Tip: "model in the recipe names it; a job that brings it is one that the task depends on",
		}
	}
	folder := hubCache(w.env)
	if w.task.Kind == string(sweep.Job) || folder == "" || inHub(folder, model) {
		return "", nil
	}
	if on(lookup(w.env, "HF_HUB_OFFLINE")) {
		return "", &Problem{
			Msg: fmt.Sprintf("%s: its model %s is not in %s, and HF_HUB_OFFLINE forbids to get it", w.task.Name, model, folder),
			Tip: "get it while online: hf download " + model,
		}
	}
	return fmt.Sprintf("%s: its model %s is not in %s yet, and is downloaded first", w.task.Name, model, folder), nil
}

// hubCache is where Hugging Face's library keeps models
// (https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables).
func hubCache(env []string) string {
	if dir := cmp.Or(lookup(env, "HF_HUB_CACHE"), lookup(env, "HUGGINGFACE_HUB_CACHE")); dir != "" {
		return dir
	}
	home := lookup(env, "HF_HOME")
	if home == "" {
		cache := lookup(env, "XDG_CACHE_HOME")
		if user := lookup(env, "HOME"); cache == "" && user != "" {
			cache = filepath.Join(user, ".cache")
		}
		if cache == "" {
			return ""
		}
		home = filepath.Join(cache, "huggingface")
	}
	return filepath.Join(home, "hub")
}

// inHub reports whether the cache has a snapshot of the model, and none of its
// files is still on its way
// (https://huggingface.co/docs/huggingface_hub/guides/manage-cache).
func inHub(cache, model string) bool {
	dir := filepath.Join(cache, "models--"+strings.ReplaceAll(model, "/", "--"))
	snapshots, _ := filepath.Glob(filepath.Join(dir, "snapshots", "*", "*"))
	unfinished, _ := filepath.Glob(filepath.Join(dir, "blobs", "*.incomplete"))
	return len(snapshots) > 0 && len(unfinished) == 0
}

// on reads a switch as Hugging Face's library does.
func on(value string) bool {
	return slices.Contains([]string{"1", "ON", "YES", "TRUE"}, strings.ToUpper(value))
}

// checkDisk sums up what the tasks need on each file system.
func checkDisk(wants []want, g ground) (notes []string, err error) {
	type place struct {
		need, free uint64
		dir        string
		tasks      []string
	}
	places := map[string]*place{}
	var order []*place
	for _, w := range wants {
		if w.task.Needs.Disk == 0 || hasModel(w) {
			continue
		}
		dir := keepsIn(w)
		free, id, err := g.disk(dir)
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s needs %s of disk in %s, and how much is free there could not be read: %v", w.task.Name, Bytes(w.task.Needs.Disk), dir, err))
			continue
		}
		p := places[id]
		if p == nil {
			p = &place{free: free, dir: dir}
			places[id], order = p, append(order, p)
		}
		p.need += uint64(w.task.Needs.Disk)
		p.tasks = append(p.tasks, w.task.Name)
	}
	var errs []error
	for _, p := range order {
		if p.need > p.free {
			errs = append(errs, &Problem{
				Msg: fmt.Sprintf("%s %s of disk, and %s are free in %s", need(p.tasks), Bytes(int64(p.need)), Bytes(int64(p.free)), p.dir),
				Tip: "make room there, or point dir or HF_HOME (in env) to a larger disk",
			})
		}
	}
	return notes, errors.Join(errs...)
}

// need is who needs something.
func need(tasks []string) string {
	if len(tasks) == 1 {
		return tasks[0] + " needs"
	}
	return strings.Join(tasks, ", ") + " need"
}

// hasModel reports whether the model that the room is for is there already.
func hasModel(w want) bool {
	return w.task.ModelAt == "huggingface" && inHub(hubCache(w.env), w.task.Model)
}

// keepsIn is where a task keeps what it needs room for.
func keepsIn(w want) string {
	if w.task.ModelAt == "huggingface" {
		if dir := hubCache(w.env); dir != "" {
			return dir
		}
	}
	return w.task.Dir
}

// freeDisk is what a file system has free for us, and which one it is. A folder
// that is not there yet will be made in the nearest that is.
func freeDisk(dir string) (free uint64, id string, err error) {
	for {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	u, err := disk.Usage(dir)
	if err != nil {
		return 0, "", err
	}
	// Two file systems of the very same size pass for one: then more is asked for
	// than need be, and the message names the folder.
	return u.Free, fmt.Sprint(u.Fstype, u.Total, u.InodesTotal), nil
}
