package tasks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hob/identity"
	"hob/identity/cut"
)

// A crash of the host may tear a record that nobody has made to last: what tells of
// processes that run. They end with the host, so nothing is lost with it that still
// is; but a file that cannot be read would be in the way of the run for ever. Where
// the boot that the run was last brought up in is over, a torn record is explained:
// the task is lost, as any that ran then, and whoever acts on it next sets the file
// aside, as it is, under a name of its own.

// taskRecords are the records of a task.
var taskRecords = []string{"task.json", "spec.json", "keeper.json", "capture.json", "exit.json", "stop.json", "report.json"}

// excuse takes a trouble for explained that is only of torn records of a boot that
// is over.
func (m *Manager) excuse(t *TaskDir, s *Seen) {
	if s.Trouble == nil || !onlyTorn(s.Trouble) || !m.bootOver(t) {
		return
	}
	if pid, err := m.keeperByArgs(t); err == nil && pid == 0 {
		s.Cut, s.Trouble = s.Trouble, nil
	}
}

// bootGoesOn holds what the record says of its boot, that it is over, against the host: by
// that word alone hob would start a task a second time that lives. Records are copied, and
// put right by hand; a keeper that was told to start this task, and runs, is of this boot.
func (m *Manager) bootGoesOn(t *TaskDir, s Seen) error {
	if s.Trouble != nil || s.Keeper == nil || s.Task.State.Settled() || s.adopted() != nil || !rebooted(s) {
		return nil
	}
	path := t.file("keeper.json")
	pid, err := m.keeperByArgs(t)
	switch now, readErr := t.ReadKeeper(); {
	case err != nil:
		return fmt.Errorf("%s is of another boot, and its keeper could not be looked for: %w", path, err)
	case pid == 0, readErr == nil && now.Keeper.Boot != s.Keeper.Keeper.Boot: // it may have been started since it was read
		return nil
	}
	return &RecordError{Path: path, Kind: Foreign, Err: fmt.Errorf("it says that its boot is over, and its task's keeper, pid %d, lives", pid)}
}

// onlyTorn reports whether every error in err is a torn record.
func onlyTorn(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			if !onlyTorn(one) {
				return false
			}
		}
		return true
	}
	var record *RecordError
	return errors.As(err, &record) && record.Kind == Torn
}

// bootOver reports whether the task's run was last brought up in a boot of this host
// that is over (row 3 of the verdict table): nothing of it can live. The run's record
// says so, which is made to last before anything of it starts.
func (m *Manager) bootOver(t *TaskDir) bool {
	run, err := t.run().Read()
	if err != nil || run.Starter == nil {
		return false
	}
	f := m.finding(run.Starter)
	return f.Verdict == identity.Gone && f.Row == "3"
}

func (t *TaskDir) run() *RunDir {
	return &RunDir{Name: t.Run, Path: filepath.Dir(filepath.Dir(t.Path)), err: t.err}
}

// lookToAct is lookHeld for who is about to act on the task: what the end of the
// boot has torn is out of the way then.
func (m *Manager) lookToAct(t *TaskDir) Seen {
	seen := m.lookHeld(t)
	if err := m.setAside(t, seen); err != nil {
		seen.Trouble = errors.Join(seen.Trouble, err)
		return seen
	}
	if seen.Cut == nil {
		return seen
	}
	return m.lookHeld(t)
}

// setAside renames the torn records of a task whose boot is over. Its op.lock is held.
// They are kept: with the run, and in the archive.
func (m *Manager) setAside(t *TaskDir, seen Seen) error {
	if seen.Trouble != nil {
		return nil // its keeper lives, perhaps
	}
	if seen.Cut == nil && (seen.Task == nil || seen.Task.State.Settled() || seen.Keeper != nil && !rebooted(seen)) {
		return nil
	}
	var names []string
	for _, name := range taskRecords {
		_, err := readRecord[struct{ Schema int }](t.file(name), nil)
		if trouble(err) != nil && onlyTorn(err) {
			names = append(names, name)
		}
	}
	if len(names) == 0 || !m.bootOver(t) {
		return nil
	}
	for _, name := range names {
		kept, err := freeName(t.file(name) + ".torn")
		if err == nil {
			cut.Point("aside", name)
			err = os.Rename(t.file(name), kept)
		}
		if err != nil {
			return fmt.Errorf("set %s aside: %w", t.file(name), err)
		}
		m.event(t.run(), t.Name, fmt.Sprintf("%s was torn as the host went down; it is kept as %s", name, filepath.Base(kept)))
	}
	return nil
}

// setAllAside is setAside for the tasks of a run that is given another starter:
// afterwards its record no longer tells which boot they are of.
func (m *Manager) setAllAside(r *RunDir, names []string) error {
	for _, name := range names {
		t := r.Task(name)
		unlock, ok, err := t.TryLock()
		if errors.Is(err, ErrNoRecord) || err == nil && !ok {
			continue // it is gone, or at work: nothing of the last boot
		}
		if record, ok := errors.AsType[*RecordError](err); ok && record.Kind == Unusable {
			continue // whoever starts or stops that task names it, and the others are started
		}
		if err != nil {
			return err
		}
		err = m.setAside(t, m.lookHeld(t))
		unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// freeName is path, or path.2 and so on: the first that nothing bears.
func freeName(path string) (string, error) {
	free := path
	for n := 2; ; n++ {
		_, err := os.Lstat(free)
		if errors.Is(err, fs.ErrNotExist) {
			return free, nil
		}
		if err != nil {
			return "", err
		}
		free = fmt.Sprintf("%s.%d", path, n)
	}
}
