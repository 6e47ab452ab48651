package tasks

import (
	"io/fs"
	"os"
	"sync"
)

// ownFiles remembers the records that we have put in place ourselves, so that one is
// not read again before it is replaced: it is as trusted as we are for as long as
// neither the file, its size nor its time is another. Nil remembers nothing.
type ownFiles struct {
	mu    sync.Mutex
	files map[string]fs.FileInfo
}

// add remembers an open file that is about to be renamed to path.
func (o *ownFiles) add(path string, f *os.File) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.files == nil {
		o.files = map[string]fs.FileInfo{}
	}
	delete(o.files, path)
	if fi, err := f.Stat(); err == nil {
		o.files[path] = fi
	}
}

// has reports whether what stands at path is what we have put there.
func (o *ownFiles) has(path string) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.files[path]
	if was == nil {
		return false
	}
	now, err := os.Lstat(path)
	return err == nil && unchanged(was, now)
}

// unchanged reports whether nobody has put another file in a record's place, nor
// written to it. Records are replaced and never changed.
func unchanged(was, now fs.FileInfo) bool {
	return os.SameFile(was, now) && now.Size() == was.Size() && now.ModTime().Equal(was.ModTime())
}

// memo is a record as it was last read, for those who change nothing in it: many tasks
// that are stopped side by side ask for the same run.json, which has the whole recipe.
type memo[T any] struct {
	mu sync.Mutex
	at fs.FileInfo
	v  T
}

// get is what stands at path. It is read anew where the file is another.
func (m *memo[T]) get(path string, read func() (T, error)) (T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := os.Lstat(path) // first: what replaces the file next is seen the next time
	if err == nil && m.at != nil && unchanged(m.at, now) {
		return m.v, nil
	}
	m.at = nil
	v, readErr := read()
	if err == nil && readErr == nil {
		m.at, m.v = now, v
	}
	return v, readErr
}
