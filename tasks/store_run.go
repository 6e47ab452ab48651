package tasks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hob/identity/cut"
)

// RunDir is runs/<run>, or an ended run's folder in archive/.
//
// Readers return ErrNoRecord (wrapped) when the file does not exist and
// *RecordError when it exists and cannot be trusted. Writers refuse with
// *RecordError when what is on disk cannot be trusted.
type RunDir struct {
	Name  string
	Path  string
	store *Store
	err   error // the name is not valid
	seen  memo[Run]
}

func (r *RunDir) file(name string) string { return filepath.Join(r.Path, name) }

// Create makes the folder of the run; it is no error when there is one.
func (r *RunDir) Create() error {
	if r.err != nil {
		return r.err
	}
	for _, dir := range []string{r.Path, r.file("tasks")} {
		if err := makeDir(dir); err != nil {
			return fmt.Errorf("run %s: %w", r.Name, err)
		}
	}
	return nil
}

// createAll is Create with the folders of tasks, none of which lasts yet.
func (r *RunDir) createAll(names []string) error {
	if r.err != nil {
		return r.err
	}
	if err := checkDir(r.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("run %s: %w", r.Name, err)
	}
	if err := os.MkdirAll(r.file("tasks"), 0o700); err != nil {
		return fmt.Errorf("run %s: %w", r.Name, err)
	}
	for _, name := range names {
		if err := os.Mkdir(r.Task(name).Path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("run %s: %w", r.Name, err)
		}
	}
	return nil
}

// writeAll writes run.json and makes it last, with the run's folders and those of its
// tasks. Its run.lock is held by the caller.
func (r *RunDir) writeAll(v Run) error {
	if err := r.write(v, whole); err != nil {
		return err
	}
	return syncDirs(filepath.Dir(r.Path), r.Path, r.file("tasks"))
}

// Lock waits for run.lock, for one read-modify-write of run.json.
func (r *RunDir) Lock(ctx context.Context) (Unlock, error) {
	if r.err != nil {
		return nil, r.err
	}
	return lock(ctx, r.file("run.lock"))
}

// Read reads run.json.
func (r *RunDir) Read() (Run, error) {
	if r.err != nil {
		return Run{}, r.err
	}
	return readRecord(r.file("run.json"), r.owns)
}

// shared is recorded for those who change nothing in it.
func (r *RunDir) shared() (Run, error) { return r.seen.get(r.file("run.json"), r.recorded) }

// recorded is Read for a run that is there: without run.json, records of its tasks
// say that somebody has removed it.
func (r *RunDir) recorded() (Run, error) {
	v, err := r.Read()
	if !errors.Is(err, ErrNoRecord) {
		return v, err
	}
	names, _ := r.Tasks() // where they cannot be listed that is said by who lists them
	for _, name := range names {
		if _, has := r.Task(name).ReadTask(); !errors.Is(has, ErrNoRecord) {
			if v, err = r.Read(); !errors.Is(err, ErrNoRecord) {
				return v, err // another run of the name was made meanwhile
			}
			return v, &RecordError{Path: r.file("run.json"), Kind: Missing, Err: fmt.Errorf("the record of its task %s is there", name)}
		}
	}
	return v, err
}

// Write writes run.json. Its run.lock is held by the caller.
func (r *RunDir) Write(v Run) error { return r.write(v, durable) }

func (r *RunDir) write(v Run, how lasting) error {
	if r.err != nil {
		return r.err
	}
	v.Schema = Schema
	return writeRecord(r.file("run.json"), v, r.owns, how)
}

func (r *RunDir) owns(v *Run) error {
	if v.Name == "" {
		return errors.New("it does not say which run it is of")
	}
	if v.Name != r.Name {
		return fmt.Errorf("it is of run %q", v.Name)
	}
	return nil
}

// Tasks lists the names in tasks/, sorted.
func (r *RunDir) Tasks() ([]string, error) {
	if r.err != nil {
		return nil, r.err
	}
	return names(r.file("tasks"))
}

// Task is the folder of one task. A name that ValidName refuses makes every
// method of the result fail, as with Store.Run.
func (r *RunDir) Task(name string) *TaskDir {
	t := &TaskDir{Run: r.Name, Name: name, err: r.err}
	if t.err == nil && !ValidName(name) {
		t.err = fmt.Errorf("task %q: %w", name, ErrBadName)
	}
	if t.err == nil {
		t.Path = filepath.Join(r.Path, "tasks", name)
	}
	return t
}

const archiveStamp = "20060102T150405Z"

// Archive moves the run to archive/<run>-<time> and returns where it is then.
// The caller holds run.lock and the op.lock of every task.
func (r *RunDir) Archive() (string, error) {
	if r.err != nil {
		return "", r.err
	}
	base := filepath.Join(r.store.archive(), r.Name+"-"+time.Now().UTC().Format(archiveStamp))
	to, err := freeName(base)
	if err != nil {
		return "", fmt.Errorf("archive run %s: %w", r.Name, err)
	}
	cut.Point("archive", "run")
	if err := os.Rename(r.Path, to); err != nil {
		return "", fmt.Errorf("archive run %s: %w", r.Name, err)
	}
	cut.Point("archived", "run")
	if err := syncDirs(r.store.archive(), r.store.runs()); err != nil {
		return to, fmt.Errorf("archive run %s: %w", r.Name, err)
	}
	return to, nil
}

// splitArchived takes the name of a folder in archive/ apart. A second run
// archived in the same second has ".2" after the time.
func splitArchived(name string) (run, stamp string, ok bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return "", "", false
	}
	run, stamp = name[:i], name[i+1:]
	day, _, _ := strings.Cut(stamp, ".")
	_, err := time.Parse(archiveStamp, day)
	return run, stamp, err == nil && ValidName(run)
}

// archiveTime is when an archived run was archived, as text that sorts.
func archiveTime(r *RunDir) string {
	_, stamp, _ := splitArchived(filepath.Base(r.Path))
	return stamp
}

// archivedAt is when, to the second.
func archivedAt(r *RunDir) (time.Time, bool) {
	day, _, _ := strings.Cut(archiveTime(r), ".")
	at, err := time.Parse(archiveStamp, day)
	return at, err == nil
}

// Remove deletes the run's folder with all in it. It is first renamed, so that a
// removal that was cut leaves nothing that looks like a run.
func (r *RunDir) Remove() error {
	if r.err != nil {
		return r.err
	}
	to := filepath.Join(filepath.Dir(r.Path), ".removed-"+filepath.Base(r.Path))
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("remove run %s: %w", r.Name, err)
	}
	if err := os.Rename(r.Path, to); err != nil {
		return fmt.Errorf("remove run %s: %w", r.Name, err)
	}
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("remove run %s: %w", r.Name, err)
	}
	return syncDirs(filepath.Dir(r.Path))
}
