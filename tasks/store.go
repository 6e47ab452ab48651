package tasks

import (
	"context"
	"errors"
	"fmt"

	"hob/sweep"
)

// ErrNoRecord means that the record was never written (or was removed).
var ErrNoRecord = errors.New("no such record")

// RecordError is a record that exists and cannot be trusted. It is kept as it
// is: never overwritten, never read as "empty".
type RecordError struct {
	Path string
	Kind string // torn, newer, foreign, unreadable
	Err  error
}

func (e *RecordError) Error() string { return fmt.Sprintf("%s is %s: %v", e.Path, e.Kind, e.Err) }
func (e *RecordError) Unwrap() error { return e.Err }

// Store is the state folder.
type Store struct{ Home string }

// OpenStore opens (and creates, 0700) the state folder, and checks that it can
// be written and locked.
func OpenStore(home string) (*Store, error) { panic("not written yet") }

// Runs lists the names in runs/, sorted.
func (s *Store) Runs() ([]string, error) { panic("not written yet") }

// Run is the folder of one run. The name has been checked by ValidName.
func (s *Store) Run(name string) *RunDir { panic("not written yet") }

// ValidName reports whether name may be a run's or a task's: [a-z0-9][a-z0-9_-]{0,40}.
func ValidName(name string) bool { panic("not written yet") }

// RunDir is runs/<run>.
type RunDir struct {
	Name string
	Path string
}

// TaskDir is runs/<run>/tasks/<task>.
type TaskDir struct {
	Run, Name string
	Path      string
}

// Unlock gives a lock back.
type Unlock func()

// The methods of the folders. Readers return ErrNoRecord (wrapped) when the file
// does not exist and *RecordError when it exists and cannot be trusted. Writers
// refuse with *RecordError when what is on disk cannot be trusted.
func (r *RunDir) Create() error                                     { panic("not written yet") }
func (r *RunDir) Lock(ctx context.Context) (Unlock, error)          { panic("not written yet") } // run.lock
func (r *RunDir) Read() (Run, error)                                { panic("not written yet") }
func (r *RunDir) Write(Run) error                                   { panic("not written yet") }
func (r *RunDir) Tasks() ([]string, error)                          { panic("not written yet") }
func (r *RunDir) Task(name string) *TaskDir                         { panic("not written yet") }
func (r *RunDir) Append(Event) error                                { panic("not written yet") } // events.jsonl
func (r *RunDir) Archive() (string, error)                          { panic("not written yet") } // to archive/<run>-<time>
func (t *TaskDir) Create() error                                    { panic("not written yet") }
func (t *TaskDir) Lock(ctx context.Context) (Unlock, error)         { panic("not written yet") } // op.lock, waits
func (t *TaskDir) TryLock() (unlock Unlock, ok bool, err error)     { panic("not written yet") }
func (t *TaskDir) ReadTask() (Task, error)                          { panic("not written yet") }
func (t *TaskDir) WriteTask(Task) error                             { panic("not written yet") }
func (t *TaskDir) ReadSpec() (Spec, error)                          { panic("not written yet") }
func (t *TaskDir) WriteSpec(Spec) error                             { panic("not written yet") }
func (t *TaskDir) ReadKeeper() (Keeper, error)                      { panic("not written yet") }
func (t *TaskDir) WriteKeeper(Keeper) error                         { panic("not written yet") }
func (t *TaskDir) ReadCapture() (sweep.Capture, error)              { panic("not written yet") }
func (t *TaskDir) WriteCapture(c sweep.Capture, durable bool) error { panic("not written yet") }
func (t *TaskDir) ReadExit() (Exit, error)                          { panic("not written yet") }
func (t *TaskDir) WriteExit(Exit) error                             { panic("not written yet") }
func (t *TaskDir) ReadReport() (sweep.Report, error)                { panic("not written yet") }
func (t *TaskDir) WriteReport(sweep.Report) error                   { panic("not written yet") }
func (t *TaskDir) ReadStop() (StopRequest, error)                   { panic("not written yet") }
func (t *TaskDir) WriteStop(StopRequest) error                      { panic("not written yet") }
func (t *TaskDir) LogPath() string                                  { panic("not written yet") }
