package tasks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hob/identity/cut"
	"hob/sweep"
)

// TaskDir is runs/<run>/tasks/<task>. Its readers and writers keep the rules of RunDir.
type TaskDir struct {
	Run, Name string
	Path      string
	err       error // the name is not valid
	own       ownFiles
}

// reserveBytes are kept on disk for the records of a stop, so that a disk that
// fills up while a task runs does not leave its capture nowhere to go.
const reserveBytes = 64 << 10

func (t *TaskDir) file(name string) string { return filepath.Join(t.Path, name) }

// Create makes the folder of the task, with room for a capture.
func (t *TaskDir) Create() error {
	if t.err != nil {
		return t.err
	}
	if err := makeDir(t.Path); err != nil {
		return fmt.Errorf("task %s/%s: %w", t.Run, t.Name, err)
	}
	return t.reserve()
}

// reserve takes the room: op.lock has nothing else to hold. One that was cut is
// merely written again.
func (t *TaskDir) reserve() error {
	path := t.file("op.lock")
	if fi, err := os.Lstat(path); err == nil && fi.Size() == reserveBytes && fi.Mode().IsRegular() {
		return nil
	}
	if err := noLockFile(path, nil); err != nil {
		return err
	}
	f, err := openFile(path, os.O_WRONLY|os.O_CREATE)
	err = noLockFile(path, err)
	if err == nil {
		_, err = f.Write(make([]byte, reserveBytes))
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Truncate(path, 0))
		}
	}
	if err != nil {
		return fmt.Errorf("reserve room for the records of a stop: %w", err)
	}
	return nil
}

// Lock waits for op.lock, held through a start, stop or restart of the task.
func (t *TaskDir) Lock(ctx context.Context) (Unlock, error) {
	if t.err != nil {
		return nil, t.err
	}
	return lock(ctx, t.file("op.lock"))
}

// TryLock takes op.lock if nobody holds it; ok is false when somebody does.
func (t *TaskDir) TryLock() (unlock Unlock, ok bool, err error) {
	if t.err != nil {
		return nil, false, t.err
	}
	return tryLock(t.file("op.lock"))
}

// ReadTask reads task.json.
func (t *TaskDir) ReadTask() (Task, error) {
	return read(t, "task.json", t.ownsTask)
}

// WriteTask writes task.json. Only the holder of op.lock does.
func (t *TaskDir) WriteTask(v Task) error { return t.writeTask(v, durable) }

// writeTask is WriteTask with a say in how durable it is: for a step that
// another one follows at once.
func (t *TaskDir) writeTask(v Task, how lasting) error {
	v.Schema = Schema
	put := func() error {
		return write(t, "task.json", v, t.ownsTask, how)
	}
	if v.State == Starting {
		return put() // nothing has begun: a full disk is a reason not to
	}
	return t.reserved(put)
}

// ReadSpec reads spec.json.
func (t *TaskDir) ReadSpec() (Spec, error) {
	return read(t, "spec.json", t.ownsSpec)
}

// WriteSpec writes spec.json. Only the holder of op.lock does, and writes
// task.json next: that makes the folder last, and with it this file.
func (t *TaskDir) WriteSpec(v Spec) error {
	v.Schema = Schema
	return write(t, "spec.json", v, t.ownsSpec, whole)
}

func (t *TaskDir) ownsSpec(v *Spec) error { return t.owns(v.Run, v.Task) }
func (t *TaskDir) ownsTask(v *Task) error { return t.owns(v.Run, v.Task) }

// writeStart writes what a keeper starts by, spec.json first, and makes both last
// together. Only the holder of op.lock does.
func (t *TaskDir) writeStart(s Spec, v Task) error {
	if t.err != nil {
		return t.err
	}
	s.Schema, v.Schema = Schema, Schema
	spec, err := fileOf(&t.own, t.SpecPath(), s, t.ownsSpec)
	if err != nil {
		return err
	}
	task, err := fileOf(&t.own, t.file("task.json"), v, t.ownsTask)
	if err != nil {
		return err
	}
	return replaceFiles(durable, spec, task)
}

// writeEnd writes what a stop came to, report.json first, and makes both last
// together. Only the holder of op.lock does.
func (t *TaskDir) writeEnd(r sweep.Report, v Task) error {
	if t.err != nil {
		return t.err
	}
	r.Schema, v.Schema = Schema, Schema
	return t.reserved(func() error {
		report, reportErr := fileOf(&t.own, t.file("report.json"), r, t.ownsReport)
		task, err := fileOf(&t.own, t.file("task.json"), v, t.ownsTask)
		switch {
		case err != nil && reportErr != nil:
			return errors.Join(reportErr, err)
		case err != nil:
			return errors.Join(replaceFiles(durable, report), err)
		case reportErr != nil: // one that cannot be trusted is in its place, and stays
			return errors.Join(reportErr, replaceFiles(durable, task))
		}
		return replaceFiles(durable, report, task)
	})
}

// ReadKeeper reads keeper.json.
func (t *TaskDir) ReadKeeper() (Keeper, error) {
	return read(t, "keeper.json", func(v *Keeper) error { return ofAStart(v.Nonce) })
}

// writeKeeper writes keeper.json. Only the task's keeper does.
func (t *TaskDir) writeKeeper(v Keeper, how lasting) error {
	v.Schema = Schema
	return write(t, "keeper.json", v, func(v *Keeper) error { return ofAStart(v.Nonce) }, how)
}

// ReadExit reads exit.json.
func (t *TaskDir) ReadExit() (Exit, error) {
	return read(t, "exit.json", func(v *Exit) error { return ofAStart(v.Nonce) })
}

// WriteExit writes exit.json. Only the task's keeper does.
func (t *TaskDir) WriteExit(v Exit) error {
	v.Schema = Schema
	return t.reserved(func() error {
		return write(t, "exit.json", v, func(v *Exit) error { return ofAStart(v.Nonce) }, whole)
	})
}

// ReadReport reads report.json, the last sweep.
func (t *TaskDir) ReadReport() (sweep.Report, error) {
	return read(t, "report.json", t.ownsReport)
}

// WriteReport writes report.json. Only the holder of op.lock does.
func (t *TaskDir) WriteReport(v sweep.Report) error {
	v.Schema = Schema
	return t.reserved(func() error { return write(t, "report.json", v, t.ownsReport, durable) })
}

func (t *TaskDir) ownsReport(v *sweep.Report) error { return t.owns(v.Run, v.Task) }

// ReadStop reads stop.json.
func (t *TaskDir) ReadStop() (StopRequest, error) {
	return read(t, "stop.json", func(v *StopRequest) error { return ofAStart(v.Nonce) })
}

// WriteStop writes stop.json, for the keeper to find when TERM reaches it.
func (t *TaskDir) WriteStop(v StopRequest) error {
	v.Schema = Schema
	return write(t, "stop.json", v, func(v *StopRequest) error { return ofAStart(v.Nonce) }, durable)
}

// LogPath is where the task's log is.
func (t *TaskDir) LogPath() string { return t.file("log") }

// SpecPath is the argument of `hob keeper`.
func (t *TaskDir) SpecPath() string { return t.file("spec.json") }

func read[T any](t *TaskDir, name string, belongs func(*T) error) (T, error) {
	if t.err != nil {
		return *new(T), t.err
	}
	return readRecord(t.file(name), belongs)
}

func write[T any](t *TaskDir, name string, v T, belongs func(*T) error, how lasting) error {
	if t.err != nil {
		return t.err
	}
	f, err := fileOf(&t.own, t.file(name), v, belongs)
	if err != nil {
		return err
	}
	return replaceFiles(how, f)
}

// owns says what is wrong with a record that names another run or task.
func (t *TaskDir) owns(run, task string) error {
	switch {
	case run == "" && task == "":
		return errors.New("it does not say which run and task it is of")
	case run == "":
		return errors.New("it does not say which run it is of")
	case task == "":
		return errors.New("it does not say which task it is of")
	case run != t.Run || task != t.Name:
		return fmt.Errorf("it is of task %s/%s", run, task)
	}
	return nil
}

// ofAStart says what is wrong with a record that belongs to a start of the task and
// does not say to which: read as one of another start it would count as not there.
func ofAStart(nonce string) error {
	if nonce == "" {
		return errors.New("it does not say which start of the task it is of (nonce)")
	}
	return nil
}

// reserved runs a write again, with the reserve given up, when the disk is full.
func (t *TaskDir) reserved(write func() error) error {
	err := write()
	if !noSpace(err) {
		return err
	}
	older := os.Remove(t.file(".reserve")) // where a hob before this one had it
	if os.Truncate(t.file("op.lock"), 0) != nil && older != nil {
		return err
	}
	return write()
}

// forget removes records of an earlier start. A record that is not there is no error.
func (t *TaskDir) forget(names ...string) error {
	for _, name := range names {
		cut.Point("forget", name)
		if err := os.Remove(t.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("task %s/%s: %w", t.Run, t.Name, err)
		}
	}
	return nil
}

// taskOfSpec finds the folders that a spec's path (…/runs/RUN/tasks/TASK/spec.json) is in.
func taskOfSpec(path string) (*RunDir, *TaskDir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, fmt.Errorf("spec %s: %w", path, err)
	}
	task := filepath.Dir(abs)
	run := filepath.Dir(filepath.Dir(task))
	s := &Store{Home: filepath.Dir(filepath.Dir(run))}
	r := s.Run(filepath.Base(run))
	t := r.Task(filepath.Base(task))
	if t.err == nil && t.SpecPath() != abs {
		return nil, nil, fmt.Errorf("spec %s: not in a task's folder (runs/RUN/tasks/TASK/spec.json)", path)
	}
	return r, t, t.err
}
