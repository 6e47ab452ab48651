package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"hob/identity"
	"hob/tasks"
)

// tear cuts a record, as a crash of the host may; a person puts it right later.
// Until then it is named and kept, whatever the other hobs do.
func (s *soak) tear(st step) {
	t := st.task()
	if t == nil {
		return
	}
	st.pot.tearing.Lock() // one at a time: else one would put back what the other has torn
	defer st.pot.tearing.Unlock()
	path, whole := s.torn(st, t)
	if whole == nil {
		return
	}
	over := s.bootOver(st, t)
	for _, words := range [][]string{{"ps", "--json"}, {"down", t.Run, "--json"}} {
		r := s.do(st, st.pot.boot, words, nil)
		over = over || s.bootOver(st, t) || st.pot.archived(t, path, whole[:len(whole)/2])
		if r.code == 128+int(syscall.SIGKILL) {
			continue // the host was restarted meanwhile
		}
		if (r.code != 4 || !strings.Contains(r.err, path)) && !over {
			s.t.Errorf("step %d: %s is torn, and hob %v says: %v", st.n, path, words, r)
		}
	}
	s.mend(st, t, path, whole, over)
}

// mend puts a torn record right, under the task's lock. It must be there as it was
// torn; after a restart of the host it may have been set aside, or archived.
func (s *soak) mend(st step, t *tasks.TaskDir, path string, whole []byte, over bool) {
	half := whole[:len(whole)/2]
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	unlock, err := t.Lock(ctx)
	if err == nil {
		defer unlock()
	}
	now, err := os.ReadFile(path)
	if err == nil && bytes.Equal(now, half) {
		if err := put(path, whole); err != nil {
			s.t.Error(err)
		}
		s.note("%3d %s: %s is whole again", st.n, st.pot.name, path)
		return
	}
	if over = over || s.bootOver(st, t); !over || !st.pot.keeps(t, filepath.Base(path), half) {
		s.t.Errorf("step %d: %s was torn, and is not kept as it was (another boot: %t): %v\n%s", st.n, path, over, err, now)
	}
}

// bootOver reports whether the task's run was last brought up before the host was
// restarted. What is torn of it is explained by that, and set aside by who acts next.
func (s *soak) bootOver(st step, t *tasks.TaskDir) bool {
	run, err := st.pot.runOf(t.Run)
	boot, bootErr := os.ReadFile(st.pot.boot)
	return err == nil && bootErr == nil && run.Starter != nil && run.Starter.Boot != strings.TrimSpace(string(boot))
}

// keeps reports whether a torn record of a task is kept anywhere, under whatever name.
func (p *pot) keeps(t *tasks.TaskDir, name string, half []byte) bool {
	var files []string
	for _, folder := range []string{"runs/" + t.Run, "archive/" + t.Run + "-*"} {
		of, _ := filepath.Glob(filepath.Join(p.home, folder, "tasks", t.Name, name+"*"))
		files = append(files, of...)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && bytes.Equal(text, half)
	})
}

// archived reports whether a torn record is not in its place any more, and is kept as it
// was torn: by an up that had looked at the run before, and made room for its own.
func (p *pot) archived(t *tasks.TaskDir, path string, half []byte) bool {
	now, err := os.ReadFile(path)
	return (err != nil || !bytes.Equal(now, half)) && p.keeps(t, filepath.Base(path), half)
}

// torn tears a record of the task or its run, under the lock that whoever writes
// it holds. A keeper that lives writes without one.
func (s *soak) torn(st step, t *tasks.TaskDir) (path string, whole []byte) {
	run := filepath.Dir(filepath.Dir(t.Path))
	path = filepath.Join(t.Path, []string{"task.json", "keeper.json", "exit.json"}[st.pick/7%3])
	lock := t.Lock
	if st.pick%4 == 0 {
		path = filepath.Join(run, "run.json")
		store, err := tasks.ViewStore(st.pot.home)
		if err != nil {
			return path, nil
		}
		lock = store.Run(t.Run).Lock
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	unlock, err := lock(ctx)
	if err != nil {
		return path, nil // it was removed meanwhile
	}
	defer unlock()
	if strings.HasSuffix(path, "keeper.json") || strings.HasSuffix(path, "exit.json") {
		task, taskErr := t.ReadTask()
		k, err := t.ReadKeeper()
		if err != nil || taskErr != nil || k.Nonce != task.Nonce || s.lives(st, k.Keeper) {
			return path, nil
		}
	}
	whole, err = os.ReadFile(path)
	if err != nil || put(path, whole[:len(whole)/2]) != nil {
		return path, nil
	}
	s.note("%3d %s: %s %s", st.n, st.pot.name, st.name, path)
	return path, whole
}

func (s *soak) lives(st step, ref identity.Ref) bool {
	ref.Boot = st.pot.host.Facts().Boot
	pin, _ := st.pot.host.Verify(ref)
	if pin != nil {
		pin.Close()
	}
	return pin != nil
}

// put replaces a file at once.
func put(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
