package tasks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNoRecord means that the record was never written (or was removed).
var ErrNoRecord = errors.New("no such record")

// ErrBadName means that a run's or a task's name is not one (see ValidName).
var ErrBadName = errors.New("not a valid name: use a-z, 0-9, _ and -, at most 41 characters, the first a letter or digit")

// RecordError is a record that cannot be trusted. It is kept as it is: never
// overwritten, never read as "empty". One that is missing although what it tells of
// lives is no less trouble: somebody has removed it.
type RecordError struct {
	Path string
	Kind string // torn, newer, foreign, unreadable, unusable, missing
	Err  error
}

func (e *RecordError) Error() string { return fmt.Sprintf("%s is %s: %v", e.Path, e.Kind, e.Err) }
func (e *RecordError) Unwrap() error { return e.Err }

// Hint is what a person can do about it.
func (e *RecordError) Hint() string {
	if e.Kind == Newer {
		return "a newer hob wrote it: use that one"
	}
	if e.Kind == Unusable {
		return "see what it is, and move it away: hob makes it anew where it needs it"
	}
	tip := "put the file right from a copy"
	if e.Kind == Missing {
		tip = "put the file back from a copy"
	}
	if e.Kind == Unreadable {
		tip = "put the file right, so that it can be read"
	}
	dir := filepath.Dir(e.Path)
	if tasks := filepath.Dir(dir); filepath.Base(tasks) == "tasks" {
		dir = filepath.Dir(tasks)
	}
	switch kind, name := filepath.Base(filepath.Dir(dir)), filepath.Base(dir); {
	case kind == "runs" && ValidName(name):
		return tip + ", or give the run up by hob rm --forget " + name
	case kind == "archive" && ArchivedRun(name) != "":
		return tip + ", or give the archived run up by hob rm --forget " + name
	case filepath.Base(dir) == "left":
		return tip + ", or move it away once the cgroup of that name is gone"
	case filepath.Base(e.Path) == "server.json":
		return tip + ", or move it away: a tmux server is found by its socket, too"
	}
	return tip
}

// Store is the state folder.
type Store struct{ Home string }

// HomeDir finds the state folder: flag (--home), else $HOB_HOME, else
// $XDG_STATE_HOME/hob, else ~/.local/state/hob. The result is absolute.
func HomeDir(flag string, getenv func(string) string) (string, error) {
	home := flag
	switch {
	case home != "":
	case getenv("HOB_HOME") != "":
		home = getenv("HOB_HOME")
	case filepath.IsAbs(getenv("XDG_STATE_HOME")): // the XDG specification: a relative one is to be ignored
		home = filepath.Join(getenv("XDG_STATE_HOME"), "hob")
	case getenv("HOME") != "":
		home = filepath.Join(getenv("HOME"), ".local", "state", "hob")
	default:
		return "", errors.New("state folder: neither HOB_HOME, XDG_STATE_HOME nor HOME is set; name one with --home")
	}
	abs, err := filepath.Abs(home)
	if err != nil {
		return "", fmt.Errorf("state folder %s: %w", home, err)
	}
	return abs, nil
}

// OpenStore opens (and creates, 0700) the state folder, and checks that it can
// be written and locked, so that a full disk is met before anything starts.
func OpenStore(home string) (*Store, error) {
	s := &Store{Home: home}
	for _, dir := range []string{home, s.runs(), s.archive()} {
		if err := makeDir(dir); err != nil {
			return nil, homeError(home, err)
		}
	}
	if err := probeHome(home, false); err != nil {
		return nil, homeError(home, err)
	}
	return s, nil
}

// OpenToEnd is OpenStore for a verb that ends things: a full disk does not keep it
// from doing so, for each task has room set aside for the records of its stop.
func OpenToEnd(home string) (*Store, error) {
	s, err := OpenStore(home)
	if noSpace(err) {
		return &Store{Home: home}, nil
	}
	return s, err
}

// ViewStore opens the state folder for reading. It creates and writes nothing;
// a folder that does not exist is a store without runs.
func ViewStore(home string) (*Store, error) {
	s := &Store{Home: home}
	for _, dir := range []string{home, s.runs(), s.archive()} {
		if err := checkDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, homeError(home, err)
		}
	}
	return s, nil
}

func homeError(home string, err error) error {
	return fmt.Errorf("state folder %s: %w (another folder can be named with --home)", home, err)
}

// ReadServer reads server.json.
func (s *Store) ReadServer() (Server, error) {
	return readRecord[Server](filepath.Join(s.Home, "server.json"), nil)
}

// WriteServer writes server.json.
func (s *Store) WriteServer(v Server) error {
	v.Schema = Schema
	return writeRecord(filepath.Join(s.Home, "server.json"), v, nil, whole)
}

func (s *Store) runs() string    { return filepath.Join(s.Home, "runs") }
func (s *Store) archive() string { return filepath.Join(s.Home, "archive") }

// Runs lists the names in runs/, sorted.
func (s *Store) Runs() ([]string, error) { return names(s.runs()) }

// Run is the folder of one run. With a name that ValidName refuses every method
// of the result fails with ErrBadName, so that no name leads out of the folder.
func (s *Store) Run(name string) *RunDir {
	if !ValidName(name) {
		return &RunDir{Name: name, err: fmt.Errorf("run %q: %w", name, ErrBadName)}
	}
	return &RunDir{Name: name, Path: filepath.Join(s.runs(), name), store: s}
}

// Archived lists the ended runs in archive/, the oldest first.
func (s *Store) Archived() ([]*RunDir, error) {
	list, err := names(s.archive())
	if err != nil {
		return nil, err
	}
	var runs []*RunDir
	for _, n := range list {
		if run, _, ok := splitArchived(n); ok {
			runs = append(runs, &RunDir{Name: run, Path: filepath.Join(s.archive(), n), store: s})
		}
	}
	slices.SortStableFunc(runs, func(a, b *RunDir) int { return strings.Compare(archiveTime(a), archiveTime(b)) })
	return runs, nil
}

// ValidName reports whether name may be a run's or a task's: [a-z0-9][a-z0-9_-]{0,40}.
func ValidName(name string) bool {
	for i, c := range []byte(name) {
		alnum := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '_' && c != '-') {
			return false
		}
	}
	return name != "" && len(name) <= 41
}

// names lists the folders below dir, without hidden ones. A dir that does not exist is empty.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &RecordError{Path: dir, Kind: Unreadable, Err: err}
	}
	var list []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			list = append(list, e.Name())
		}
	}
	return list, nil
}

// makeDir makes a folder (0700) with its parents, or checks the one that is there.
func makeDir(dir string) error {
	err := checkDir(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDirs(filepath.Dir(dir))
}

// checkDir refuses a folder that another user could fill: records name the
// processes that hob may signal.
func checkDir(dir string) error {
	fi, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	if fi.Mode().Perm()&0o022 != 0 && ownerOf(fi) >= 0 {
		return fmt.Errorf("%s can be written by other users (mode %04o): chmod go-w it", dir, fi.Mode().Perm())
	}
	if uid := ownerOf(fi); uid >= 0 && uid != os.Geteuid() {
		return fmt.Errorf("%s belongs to uid %d, not to you (uid %d)", dir, uid, os.Geteuid())
	}
	return nil
}

// probeHome locks and writes a file, and removes it again. Who only asks has it synced
// too: a verb makes a record of its own last before it starts anything.
func probeHome(home string, sync bool) (err error) {
	path := filepath.Join(home, ".probe")
	f, unlock, err := openTemp(path)
	if err != nil {
		_ = os.Remove(path) // it was made, and could not be locked
		return err
	}
	defer unlock()
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	if _, err := f.Write(make([]byte, 4096)); err != nil || !sync {
		return err
	}
	return f.Sync()
}
