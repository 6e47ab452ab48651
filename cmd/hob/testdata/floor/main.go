//go:build unix

// Command floor is the least that a keeper written in Go could be: it takes what its
// command leaves behind, gives it a pty, shows what that says, and waits. It writes
// nothing down. Benchmarks measure hob against it too.
package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/creack/pty"

	"hob/identity/child"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGHUP, syscall.SIGTERM)
	_ = child.Subreap()
	master, slave, err := pty.Open()
	if err != nil {
		panic(err)
	}
	tty := slave.Fd()
	sys := &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if _, err = syscall.ForkExec(os.Args[1], os.Args[1:], &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{tty, tty, tty}, Sys: sys}); err != nil {
		panic(err)
	}
	go func() { _, _ = io.Copy(os.Stdout, master) }()
	<-end
}
