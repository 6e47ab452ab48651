//go:build !windows

package main

import (
	"fmt"
	"os/exec"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// waitshown SOCKET PANE PROGRAM waits until a program is in a pane's foreground.
func waitShown(ts *testscript.TestScript, _ bool, args []string) {
	eventually(ts, args[2]+" in the foreground of "+args[1], func() (bool, string) {
		out, err := exec.Command("tmux", "-S", args[0], "display-message", "-p", "-t", args[1], "#{pane_current_command}").CombinedOutput()
		return strings.TrimSpace(string(out)) == args[2], fmt.Sprint(string(out), err)
	})
}
