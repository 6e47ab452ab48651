package tasks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"hob/identity"
)

// LogOptions of Logs.
type LogOptions struct {
	Follow bool
	Lines  int // the last so many; negative is all
}

// Logs writes the logs of tasks, from their oldest kept line to the newest,
// through rotations. With Follow it goes on until each task has ended. out gets
// whole lines, one task's at a time.
func (m *Manager) Logs(ctx context.Context, sel []Selection, o LogOptions, out func(Name, []byte) error) error {
	w, err := newWatcher()
	if err != nil {
		return err
	}
	defer w.close()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	for _, s := range sel {
		errs = append(errs, s.Err)
		for _, task := range s.Tasks {
			if err := noLog(s.Run.Task(task)); err != nil {
				errs = append(errs, err)
				continue
			}
			f := &logReader{m: m, dir: s.Run.Task(task), watch: w, o: o}
			f.out = func(b []byte) error {
				mu.Lock()
				defer mu.Unlock()
				return out(Name{f.dir.Run, f.dir.Name}, b)
			}
			read := func() {
				if err := f.run(ctx); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
			if o.Follow {
				wg.Go(read)
			} else {
				read()
			}
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// logReader reads one task's log.
type logReader struct {
	m     *Manager
	dir   *TaskDir
	watch *watcher
	o     LogOptions
	out   func([]byte) error
	file  *os.File // the one that is read; nil before the first is there
	part  []byte   // of a line whose end has not come yet

	expected bool // the task is about to be started: before its first record it has not ended
}

func (l *logReader) run(ctx context.Context) error {
	defer func() { _ = l.close() }()
	if !l.o.Follow {
		return l.all()
	}
	wake, err := l.watch.add(l.dir.Path, logFiles)
	if err != nil {
		return err
	}
	if err := l.all(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return l.follow(ctx, wake)
}

func logFiles(file string) bool {
	return file == "log" || strings.HasPrefix(file, "log.") || stateFiles(file)
}

// follow copies what comes until the task has ended and all of it was read.
func (l *logReader) follow(ctx context.Context, wake <-chan struct{}) error {
	var end <-chan struct{}
	for {
		seen := l.m.look(l.dir)
		over := seen.Trouble != nil || !Derive(seen).State.Lives() && !stillWrites(seen)
		if seen.Task == nil && l.expected {
			over = false
		}
		if err := l.more(); err != nil {
			return err
		}
		if over {
			return l.flush()
		}
		if end == nil {
			end = l.m.silentTurn(ctx, l.dir, seen)
		}
		select {
		case <-wake:
		case <-end:
			end = nil
		case <-ctx.Done():
			return errors.Join(l.more(), l.flush(), context.Cause(ctx))
		}
	}
}

// stillWrites reports whether the keeper may have output to write that the
// command left in its terminal: it reads that to its end before it says that
// the tree is empty.
func stillWrites(s Seen) bool {
	return s.KeeperV.Verdict == identity.Owned && !s.Keeper.Empty
}

// all copies the kept logs, the oldest first, or the last lines of them, and
// stays at the newest one's end.
func (l *logReader) all() error {
	files, err := l.open()
	if err != nil || len(files) == 0 {
		return err
	}
	l.file = files[len(files)-1]
	err = l.copy(files)
	for _, f := range files[:len(files)-1] {
		err = errors.Join(err, f.Close())
	}
	if !l.o.Follow {
		err = errors.Join(err, l.flush())
	}
	return err
}

func (l *logReader) copy(files []*os.File) error {
	if l.o.Lines < 0 {
		for _, f := range files {
			if err := l.read(f); err != nil {
				return err
			}
		}
		return nil
	}
	from, offset, err := lastLines(files, l.o.Lines)
	if err != nil {
		return err
	}
	for i, f := range files[from:] {
		at := int64(0)
		if i == 0 {
			at = offset
		}
		if _, err := f.Seek(at, io.SeekStart); err != nil {
			return err
		}
		if err := l.read(f); err != nil {
			return err
		}
	}
	return nil
}

// open opens the task's logs, the oldest first. It begins with the newest, so
// that a rotation meanwhile leaves none out.
func (l *logReader) open() ([]*os.File, error) {
	var files []*os.File
	for n := 0; ; n++ {
		f, err := openRegular(logName(l.dir.LogPath(), n))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, errors.Join(err, closeAll(files))
		}
		if n > 0 && sameFile(f, files[0]) { // rotated between the two opens
			if err := f.Close(); err != nil {
				return nil, err
			}
			continue
		}
		files = append([]*os.File{f}, files...)
	}
	return files, nil
}

// openRegular opens a file that is one: a pipe in its place would keep us waiting for
// ever (fifo(7)).
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, &RecordError{Path: path, Kind: Unreadable, Err: errors.Join(errors.New("not a regular file"), err)}
	}
	return f, nil
}

func logName(path string, n int) string {
	if n == 0 {
		return path
	}
	return fmt.Sprintf("%s.%d", path, n)
}

func closeAll(files []*os.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

func sameFile(a, b *os.File) bool {
	x, err := a.Stat()
	if err != nil {
		return false
	}
	y, err := b.Stat()
	return err == nil && os.SameFile(x, y)
}

// more reads what was appended; after a rotation the rest of the old file, those
// that came between, and the new one.
func (l *logReader) more() error {
	if l.file == nil {
		return l.all()
	}
	if err := l.read(l.file); err != nil || l.newest() {
		return err
	}
	files, err := l.open()
	if err != nil {
		return err
	}
	at := 0
	for i, f := range files {
		if sameFile(f, l.file) {
			at = i + 1
		}
	}
	newer := files[at:]
	err = closeAll(files[:at])
	if len(newer) == 0 {
		return err
	}
	err = errors.Join(err, l.read(l.file), l.file.Close()) // the last of it, now that it is at rest
	l.file = newer[len(newer)-1]
	for _, f := range newer {
		err = errors.Join(err, l.read(f))
		if f != l.file {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// newest reports whether the file that is read is still the one that is written.
func (l *logReader) newest() bool {
	open, err := l.file.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(l.dir.LogPath())
	return err == nil && os.SameFile(open, now)
}

// read copies whole lines up to the end of f.
func (l *logReader) read(f *os.File) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := f.Read(buf)
		l.part = append(l.part, buf[:n]...)
		if i := bytes.LastIndexByte(l.part, '\n'); i >= 0 {
			if werr := l.out(l.part[:i+1]); werr != nil {
				return werr
			}
			l.part = append([]byte(nil), l.part[i+1:]...)
		}
		if errors.Is(err, io.EOF) || n == 0 && err == nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// flush gives out a last line that has no end.
func (l *logReader) flush() error {
	if len(l.part) == 0 {
		return nil
	}
	err := l.out(append(l.part, '\n'))
	l.part = nil
	return err
}

func (l *logReader) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// lastLines finds where the last n lines begin, through all files (the oldest
// first): in which one, and at what offset.
func lastLines(files []*os.File, n int) (from int, offset int64, err error) {
	want := n + 1 // the end of the line before them
	for i, file := range slices.Backward(files) {
		size, err := file.Seek(0, io.SeekEnd)
		if err != nil {
			return 0, 0, err
		}
		last := i == len(files)-1
		if last && n == 0 {
			return i, size, nil
		}
		if last && !endsLine(file, size) {
			want--
		}
		at, left, err := backwards(file, size, want)
		if err != nil || left == 0 {
			return i, at, err
		}
		want = left
	}
	return 0, 0, nil
}

func endsLine(f *os.File, size int64) bool {
	b := make([]byte, 1)
	if size == 0 {
		return false
	}
	_, err := f.ReadAt(b, size-1)
	return err == nil && b[0] == '\n'
}

// backwards looks for the end of the want-th line from the back of f. left is
// how many are still wanted when f begins before that.
func backwards(f *os.File, size int64, want int) (at int64, left int, err error) {
	buf := make([]byte, 64<<10)
	for end := size; end > 0; {
		begin := max(0, end-int64(len(buf)))
		b := buf[:end-begin]
		if _, err := f.ReadAt(b, begin); err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, err
		}
		for i, v := range slices.Backward(b) {
			if v != '\n' {
				continue
			}
			if want--; want == 0 {
				return begin + int64(i) + 1, 0, nil
			}
		}
		end = begin
	}
	return 0, want, nil
}
