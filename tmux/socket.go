package tmux

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxSocket is the longest socket path in bytes. The kernel's limit is 107 on
// Linux and 103 on macOS and the BSDs, and tmux adds nothing to the path.
const maxSocket = 100

// DefaultSocket is where the server of a state folder listens:
// $XDG_RUNTIME_DIR/hob/<hash>.sock, else hob-<uid>/<hash>.sock in the temp folder
// (in /tmp, if $TMPDIR makes the path too long). A runtime folder that is not
// ours is passed over: sudo and su leave the caller's in the environment.
// It makes nothing; New makes the last folder.
func DefaultSocket(home string, getenv func(string) string) (string, error) {
	name, err := socketName(home)
	if err != nil {
		return "", err
	}
	var tooLong string
	for _, folder := range socketFolders(getenv) {
		path := filepath.Join(folder, name)
		if len(path) <= maxSocket {
			return path, nil
		}
		tooLong = path
	}
	return "", fmt.Errorf("%w: %s has %d bytes, more than %d", ErrSocketPath, tooLong, len(tooLong), maxSocket)
}

// socketName is the hash of the state folder's real path, so that a folder
// reached through a link has one server, not two.
func socketName(home string) (string, error) {
	abs, err := filepath.Abs(home)
	if err != nil {
		return "", fmt.Errorf("find the state folder %s: %w", home, err)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	sum := sha256.Sum256([]byte(abs))
	return hex.EncodeToString(sum[:8]) + ".sock", nil
}

// isSocketName reports whether a file bears the name of a state folder's socket.
func isSocketName(file string) bool {
	hash, ok := strings.CutSuffix(file, ".sock")
	sum, err := hex.DecodeString(hash)
	return ok && err == nil && len(sum) == 8
}

func socketFolders(getenv func(string) string) []string {
	var folders []string
	if dir := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && isOurFolder(dir) {
		folders = append(folders, filepath.Join(dir, "hob"))
	}
	mine := "hob-" + strconv.Itoa(os.Geteuid())
	if dir := getenv("TMPDIR"); filepath.IsAbs(dir) {
		folders = append(folders, filepath.Join(dir, mine))
	}
	return append(folders, filepath.Join("/tmp", mine))
}

func isOurFolder(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir() && ownedByUs(info)
}

// MakeFolder makes the socket's folder, if that has gone, for a server that is to
// bind its socket anew.
func (s *Server) MakeFolder() error { return makeFolder(s.Socket) }

// makeFolder makes the socket's folder, and only that one, if it is missing.
func makeFolder(socket string) error {
	dir := filepath.Dir(socket)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: make its folder: %w", ErrSocketPath, err)
	}
	return checkSocket(socket)
}

// checkSocket refuses a path that the kernel would cut off, and a folder in
// which somebody else could put a server in place of ours. A folder that is
// missing is no fault: then there is no server.
func checkSocket(socket string) error {
	if !filepath.IsAbs(socket) {
		return fmt.Errorf("%w: %q is not an absolute path", ErrSocketPath, socket)
	}
	if len(socket) > maxSocket {
		return fmt.Errorf("%w: %s has %d bytes, more than %d; use a shorter folder", ErrSocketPath, socket, len(socket), maxSocket)
	}
	dir := filepath.Dir(socket)
	info, err := os.Lstat(dir) // a link could be turned to another folder later
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSocketPath, err)
	}
	return checkFolder(dir, info)
}

func checkFolder(dir string, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%w: %s is a link; name the folder itself", ErrSocketPath, dir)
	case !info.IsDir():
		return fmt.Errorf("%w: %s is not a folder; set XDG_RUNTIME_DIR to a folder of your own", ErrSocketPath, dir)
	case !ownedByUs(info):
		return fmt.Errorf("%w: the folder %s belongs to another user; set XDG_RUNTIME_DIR to a folder of your own", ErrSocketPath, dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%w: the folder %s is open to others (%#o); chmod 700 it", ErrSocketPath, dir, info.Mode().Perm())
	}
	return nil
}
