package recipes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write makes a file of a recipe's text. One that is there is left as it is, and
// is an error, unless it may be replaced: then it is by another one, whole.
func Write(file string, text []byte, replace bool) error {
	if !replace {
		return writeNew(file, text, false)
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real // the link stays one
	}
	mode, err := modeOf(file)
	if err != nil {
		return err
	}
	if mode == 0 {
		return writeNew(file, text, false)
	}
	return writeOver(file, text, mode)
}

// modeOf are a file's permissions; 0 where there is none.
func modeOf(file string) (fs.FileMode, error) {
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular():
		return 0, &fs.PathError{Op: "replace", Path: file, Err: errors.New("it is no file")}
	}
	return info.Mode().Perm() | 0o600, nil
}

// writeOver puts a new file in the place of another: a crash leaves one of them.
func writeOver(file string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".hob-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// writeNew makes a file. One that is there is an error, unless it may be replaced.
func writeNew(file string, text []byte, replace bool) error {
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if replace {
		how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(file, how, 0o666) // as an editor would: the umask decides
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
