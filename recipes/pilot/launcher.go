package pilot

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// runLauncher starts the server as a child, with the same arguments, and passes
// on the request to end, unless it is mute: then that ends it alone. It returns
// the server's exit code.
func runLauncher(args []string, mute bool) (int, error) {
	cmd, err := again(append([]string{"serve", "--launched"}, args...)...)
	if err != nil {
		return 0, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, fmt.Errorf("start the server: %w", err)
	}
	signals := make(chan os.Signal, 4)
	if !mute {
		signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the server: %w", err)
	}
	logf("launcher: started the server, pid %d", cmd.Process.Pid)
	go passOn(signals, &peer{title: "server", wire: &wire{w: in}})
	return exitCode(cmd.Wait())
}

// passOn asks the server to end at the first signal.
func passOn(signals <-chan os.Signal, server *peer) {
	logf("launcher: %v", <-signals)
	server.quit()
}

// exitCode is what a launcher exits with when its child has ended with err.
func exitCode(err error) (int, error) {
	if err == nil {
		return 0, nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0, fmt.Errorf("wait for the server: %w", err)
	}
	if code := exit.ExitCode(); code >= 0 {
		return code, nil
	}
	return 1, nil // by a signal
}
