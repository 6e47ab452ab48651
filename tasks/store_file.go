package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"syscall"

	"hob/identity/cut"
	"hob/identity/flock"
)

// The kinds of a RecordError.
const (
	Torn       = "torn"       // cut or empty: a crash of the host, or another program's write
	Newer      = "newer"      // a schema that this hob does not know
	Foreign    = "foreign"    // not a record of ours, or of another run or task
	Unreadable = "unreadable" // exists and cannot be read
	Unusable   = "unusable"   // a lock file that is no file, or may not be opened
	Missing    = "missing"    // somebody has removed it: what it tells of is there
)

// maxRecord bounds what is read as a record: far above any real one.
const maxRecord = 64 << 20

func ownerOf(fi fs.FileInfo) int { return flock.Owner(fi) }

// readRecord reads one record. belongs says what is wrong when it is a record
// of another run or task; nil when it names neither.
func readRecord[T any](path string, belongs func(*T) error) (T, error) {
	var v T
	data, err := readFile(path)
	if err != nil {
		return v, err
	}
	if err := takeRecord(path, data, &v, belongs); err != nil {
		return *new(T), err
	}
	return v, nil
}

// takeRecord takes apart what stood in a record's file.
func takeRecord[T any](path string, data []byte, v *T, belongs func(*T) error) error {
	if err := decode(path, data, v); err != nil {
		return err
	}
	if belongs != nil {
		if err := belongs(v); err != nil {
			return &RecordError{Path: path, Kind: Foreign, Err: err}
		}
	}
	return nil
}

func readFile(path string) ([]byte, error) {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path, ErrNoRecord)
	}
	if err == nil && !fi.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, &RecordError{Path: path, Kind: Unreadable, Err: err}
	}
	data, err := readAll(path, fi.Size())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path, ErrNoRecord)
	}
	if err == nil && len(data) > maxRecord {
		err = fmt.Errorf("longer than %d bytes", maxRecord)
	}
	if err != nil {
		return nil, &RecordError{Path: path, Kind: Unreadable, Err: err}
	}
	return data, nil
}

// readAll reads a regular file. It asks the system directly: os.Open would offer
// each file to the poller first, eight calls for nothing, and `hob ps` reads
// five files a task. A file as long as size is not asked for more.
func readAll(path string, size int64) (data []byte, err error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, syscall.Close(fd)) }()
	buf := make([]byte, min(size, maxRecord)+1)
	for {
		n, err := syscall.Read(fd, buf[len(data):])
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return nil, err
		case n == 0 || len(data) > maxRecord:
			return data, nil
		}
		data = buf[:len(data)+n]
		if int64(len(data)) == size {
			return data, nil
		}
		if len(data) == len(buf) {
			buf = append(buf, make([]byte, len(buf))...)
		}
	}
}

// endsWhole reports whether there is a record, and whether what there is ends as encode
// ends one. What a crash of the host leaves is empty, cut, or ends in zeros.
func endsWhole(path string) (has, whole bool) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false, errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = syscall.Close(fd) }() // nothing was written
	end := make([]byte, len(recordEnd))
	if _, err := syscall.Seek(fd, -int64(len(end)), io.SeekEnd); err != nil {
		return true, false
	}
	n, err := syscall.Read(fd, end)
	return true, err == nil && string(end[:n]) == recordEnd
}

const recordEnd = "}\n"

// decode reads a record. Its schema outranks all else that may be wrong with it:
// a newer record may give other types to the rest.
func decode[T any](path string, data []byte, v *T) error {
	err := json.Unmarshal(data, v)
	var head struct {
		Schema *int `json:"schema"`
	}
	bad := func(kind string, err error) error { return &RecordError{Path: path, Kind: kind, Err: err} }
	if err == nil && reflect.ValueOf(v).Elem().FieldByName("Schema").Int() == Schema {
		return nil // all is well, and the record was read once
	}
	if headErr := json.Unmarshal(data, &head); headErr != nil {
		return bad(kindOf(headErr), headErr)
	}
	switch {
	case head.Schema == nil || *head.Schema < 1:
		return bad(Foreign, errors.New("it has no schema number"))
	case *head.Schema > Schema:
		return bad(Newer, fmt.Errorf("schema %d, and this hob knows %d: use the hob that wrote it, or a newer one", *head.Schema, Schema))
	case err != nil:
		return bad(kindOf(err), err)
	}
	return nil
}

// kindOf tells a cut file (broken syntax) from one with other types than ours.
func kindOf(err error) string {
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return Torn
	}
	return Foreign
}

// writeRecord replaces a record, unless what is on disk cannot be trusted.
func writeRecord[T any](path string, v T, belongs func(*T) error, how lasting) error {
	f, err := fileOf(nil, path, v, belongs)
	if err != nil {
		return err
	}
	return replaceFiles(how, f)
}

// fileOf is the file that a record is to be, unless what is on disk in its place
// cannot be trusted. What we have put there ourselves can.
func fileOf[T any](own *ownFiles, path string, v T, belongs func(*T) error) (newFile, error) {
	if belongs != nil {
		if err := belongs(&v); err != nil {
			return newFile{}, fmt.Errorf("write %s: %w", path, err)
		}
	}
	if !own.has(path) {
		if _, err := readRecord(path, belongs); err != nil && !errors.Is(err, ErrNoRecord) {
			return newFile{}, err
		}
	}
	data, err := encode(v)
	if err != nil {
		return newFile{}, fmt.Errorf("write %s: %w", path, err)
	}
	return newFile{path: path, data: data, own: own}, nil
}

func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err := enc.Encode(v)
	return buf.Bytes(), err
}

// lasting is what a record survives. Any survives a crash of hob.
type lasting int

const (
	passing lasting = iota // a crash of the host may lose or tear it: what is written again and again
	whole                  // it may lose it, and leave the one before: what tells of processes, which end with the host
	durable                // nothing
)

// replaceFile writes a file whole or not at all: temp file, fsync, rename, fsync
// of the folder, as far as it is to last. renameio does the first three, but not
// the last, nor without fsync, nor on Windows.
func replaceFile(path string, data []byte, how lasting) error {
	return replaceFiles(how, newFile{path: path, data: data})
}

// newFile is what a file is to hold.
type newFile struct {
	path string
	data []byte
	may  func() error // whether it may take the place of what is there; nobody else writes the file meanwhile
	own  *ownFiles    // remembers it; may be nil
}

func (n newFile) base() string { return filepath.Base(n.path) }

// replaceFiles is replaceFile for files of one folder: each step is done for all
// of them before the next, so that they wait for the disk together, and the folder
// is synced once. They appear in their order.
func replaceFiles(how lasting, files ...newFile) error {
	var temps []*tempFile
	defer func() {
		for _, t := range temps {
			t.unlock()
		}
	}()
	for _, n := range files {
		cut.Point("write", n.base())
		t, err := writeTemp(n)
		if err != nil {
			return fmt.Errorf("write %s: %w", n.path, errors.Join(err, removeTemps(temps)))
		}
		temps = append(temps, t)
	}
	for i, t := range temps {
		if how < whole {
			break
		}
		if err := t.f.Sync(); err != nil {
			return fmt.Errorf("write %s: %w", files[i].path, errors.Join(err, removeTemps(temps)))
		}
	}
	for i, t := range temps {
		cut.Point("rename", files[i].base())
		files[i].own.add(files[i].path, t.f)
		if err := os.Rename(t.path, files[i].path); err != nil {
			return fmt.Errorf("write %s: %w", files[i].path, errors.Join(err, removeTemps(temps[i:])))
		}
	}
	if how == durable {
		if err := syncDirs(filepath.Dir(files[0].path)); err != nil {
			return fmt.Errorf("write %s: %w", files[0].path, err)
		}
	}
	for _, n := range files {
		cut.Point("wrote", n.base())
	}
	return nil
}

// tempFile is an open file that is about to take another one's place.
type tempFile struct {
	path   string
	f      *os.File
	unlock Unlock // closes it too
}

func writeTemp(n newFile) (*tempFile, error) {
	path := filepath.Join(filepath.Dir(n.path), "."+n.base()+".tmp")
	f, unlock, err := openTemp(path)
	if err != nil {
		return nil, err
	}
	t := &tempFile{path, f, unlock}
	if n.may != nil {
		err = n.may()
	}
	if err == nil {
		_, err = f.Write(n.data)
	}
	if err != nil {
		err = errors.Join(err, removeTemps([]*tempFile{t}))
		unlock()
		return nil, err
	}
	return t, nil
}

func removeTemps(temps []*tempFile) error {
	var errs []error
	for _, t := range temps {
		errs = append(errs, os.Remove(t.path))
	}
	return errors.Join(errs...)
}

// openFile opens a file of the state folder (0600, closed when a child starts). It
// asks the system directly, as readAll does and for its reason.
func openFile(path string, flags int) (*os.File, error) {
	for {
		fd, err := syscall.Open(path, flags|syscall.O_CLOEXEC, 0o600)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		default:
			return os.NewFile(uintptr(fd), path), nil
		}
	}
}

// openTemp opens an empty temp file of a fixed name, under a lock on itself. So
// what a crash leaves behind is used again and does not pile up, and two
// writers do not get into each other's file.
func openTemp(path string) (*os.File, Unlock, error) {
	for {
		f, err := openFile(path, os.O_RDWR|os.O_CREATE) // a named pipe would keep waiting who only writes
		if err != nil {
			return nil, nil, noLockFile(path, err)
		}
		unlock, err := lockFile(context.Background(), f, path, silently)
		if err != nil {
			return nil, nil, err
		}
		if !stillAt(f, path) { // the one before has renamed it
			unlock()
			if err := noLockFile(path, nil); err != nil {
				return nil, nil, err
			}
			continue
		}
		if err := empty(f); err != nil {
			unlock()
			return nil, nil, err
		}
		return f, unlock, nil
	}
}

// empty empties a file that is not empty yet. A truncation is what ext4 knows programs
// by that replace a file without a rename: it writes those out as they are closed.
func empty(f *os.File) error {
	if fi, err := f.Stat(); err == nil && fi.Size() == 0 {
		return nil
	}
	return f.Truncate(0)
}

// syncDirs makes renames in folders survive a crash of the host. It waits for all of
// them together, which the disk does in one go where it can.
func syncDirs(dirs ...string) error {
	if runtime.GOOS == "windows" { // has no such call
		return nil
	}
	errs := make([]error, len(dirs))
	var others sync.WaitGroup
	for i, dir := range dirs[1:] {
		others.Go(func() { errs[i+1] = syncDir(dir) })
	}
	errs[0] = syncDir(dirs[0])
	others.Wait()
	return errors.Join(errs...)
}

func syncDir(dir string) error {
	f, err := openFile(dir, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	// Some file systems cannot sync a folder (EINVAL, fsync(2)) and need not.
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

// noSpace reports whether a write failed because the disk or a quota is full.
func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, flock.ErrQuota)
}
