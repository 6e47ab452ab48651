//go:build unix

package tmux

import (
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// ownedByUs reports whether the file is the effective user's.
func ownedByUs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// ownGroup keeps Ctrl-C at hob's terminal from ending a tmux client in the
// middle of making a pane.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
