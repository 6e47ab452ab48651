package tasks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hob/recipes"
)

func TestModelIsThere(t *testing.T) {
	dir := t.TempDir()
	hub := filepath.Join(dir, "hf", "hub")
	put := func(path string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(dir, "m.gguf"))
	put(filepath.Join(hub, "models--a--whole", "snapshots", "1", "config.json"))
	put(filepath.Join(hub, "models--a--part", "snapshots", "1", "config.json"))
	put(filepath.Join(hub, "models--a--part", "blobs", "x.incomplete"))
	env := []string{"HF_HOME=" + filepath.Join(dir, "hf")}
	offline := append([]string{"HF_HUB_OFFLINE=1"}, env...)
	tests := []struct {
		name string
		w    want
		note string
		err  string
	}{
		{"a path", want{task: recipes.Task{ModelAt: "path", Model: filepath.Join(dir, "m.gguf")}}, "", ""},
		{"a path from its folder", want{task: recipes.Task{ModelAt: "path", Model: "m.gguf", Dir: dir}}, "", ""},
		{"no such path", want{task: recipes.Task{ModelAt: "path", Model: "./n.gguf", Dir: dir}}, "", "its model: stat " + dir + "/n.gguf: no such file"},
		{"a job brings it", want{made: true, task: recipes.Task{ModelAt: "path", Model: "./n.gguf", Dir: dir}}, "", ""},
		{"an engine that knows", want{task: recipes.Task{Model: "qwen3"}}, "", ""},
		{"in the cache", want{env: env, task: recipes.Task{ModelAt: "huggingface", Model: "a/whole"}}, "", ""},
		{"on its way", want{env: env, task: recipes.Task{ModelAt: "huggingface", Model: "a/part"}}, "is downloaded first", ""},
		{"not in the cache", want{env: env, task: recipes.Task{ModelAt: "huggingface", Model: "a/other"}}, "a/other is not in " + hub + " yet", ""},
		{"nor can it be got", want{env: offline, task: recipes.Task{ModelAt: "huggingface", Model: "a/other"}}, "", "HF_HUB_OFFLINE"},
		{"the job that gets it", want{env: env, task: recipes.Task{Kind: "job", ModelAt: "huggingface", Model: "a/other"}}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			note, err := checkModel(tt.w)
			if !strings.Contains(note, tt.note) || (note == "") != (tt.note == "") {
				t.Errorf("note %q, want %q", note, tt.note)
			}
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %q", err, tt.err)
			}
		})
	}
}

func TestHubCache(t *testing.T) {
	for env, want := range map[string]string{
		"HOME=/h": "/h/.cache/huggingface/hub", "HOME=/h XDG_CACHE_HOME=/x": "/x/huggingface/hub", "HOME=/h HF_HOME=/f": "/f/hub",
		"HF_HOME=/f HF_HUB_CACHE=/c": "/c", "": "",
	} {
		if got := hubCache(strings.Fields(env)); got != want {
			t.Errorf("%s: %s, want %s", env, got, want)
		}
	}
}

func TestDisk(t *testing.T) {
	g := ground{disk: func(dir string) (uint64, string, error) {
		if strings.HasPrefix(dir, "/big") {
			return 100 << 30, "big", nil
		}
		return 10 << 30, "small", nil
	}}
	need := func(name, dir string, n int64) want {
		return want{task: recipes.Task{Name: name, Dir: dir, Needs: recipes.Needs{Disk: n << 30}}}
	}
	if _, err := checkDisk([]want{need("a", "/big/a", 60), need("b", "/s", 9)}, g); err != nil {
		t.Error(err)
	}
	_, err := checkDisk([]want{need("a", "/big/a", 60), need("b", "/big/b", 60), need("c", "/s", 11)}, g)
	if want := "a, b need 120.0 GiB of disk, and 100.0 GiB are free in /big/a\nc needs 11.0 GiB of disk, and 10.0 GiB are free in /s"; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	if free, _, err := freeDisk(filepath.Join(t.TempDir(), "not", "yet")); err != nil || free == 0 {
		t.Errorf("%d, %v", free, err)
	}
	if _, _, err := freeDisk("/proc/1/nothing\x00"); err == nil {
		t.Error("a folder that cannot be looked at has room")
	}
}
