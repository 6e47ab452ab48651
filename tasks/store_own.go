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
	return err == nil && os.SameFile(was, now) && now.Size() == was.Size() && now.ModTime().Equal(was.ModTime())
}
