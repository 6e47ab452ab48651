// Package offender signals in every way that the guard must see. Nothing builds
// it but the guard's own test.
package offender

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/shirou/gopsutil/v4/process"
	"golang.org/x/sys/unix"
)

func all(cmd *exec.Cmd, p *os.Process, g *process.Process) {
	_ = syscall.Kill(1, 0)                                      // offence
	_ = unix.Kill(1, 0)                                         // offence
	_ = unix.Tgkill(1, 1, 0)                                    // offence
	_ = unix.PidfdSendSignal(1, 0, nil, 0)                      // offence
	_, _ = os.FindProcess(1)                                    // offence
	_ = p.Kill()                                                // offence
	_ = p.Signal(nil)                                           // offence
	_ = cmd.Process.Kill()                                      // offence
	end := cmd.Process.Signal                                   // offence
	_ = end(nil)                                                //
	_ = g.Kill()                                                // offence
	_ = g.Terminate()                                           // offence
	_ = g.SendSignal(syscall.SIGTERM)                           // offence
	_, _, _ = syscall.Syscall(syscall.SYS_KILL, 1, 0, 0)        // offence
	_, _, _ = unix.Syscall(unix.SYS_PIDFD_SEND_SIGNAL, 1, 0, 0) // offence
	_ = os.WriteFile("cgroup.kill", nil, 0)                     // offence
	_ = exec.Command("pkill", "x")                              // offence
	_ = exec.CommandContext(nil, "/bin/kill", "1")              // offence
}

var _ = all
