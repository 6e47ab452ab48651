//go:build !windows

package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"hob/tmux/tmuxtest"
)

// waitshown SOCKET PANE PROGRAM waits until a program is in a pane's foreground.
func waitShown(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, args[2]+" in the foreground of "+args[1], func() (bool, string) {
		out, err := exec.Command("tmux", "-S", args[0], "display-message", "-p", "-t", args[1], "#{pane_pid} #{pane_current_command}").CombinedOutput()
		first, shown, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
		pid, pidErr := strconv.Atoi(first)
		return shown == args[2] && pidErr == nil && tmuxtest.Started(pid), fmt.Sprint(string(out), err)
	})
}
