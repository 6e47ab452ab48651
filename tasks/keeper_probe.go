package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"hob/identity"
	"hob/identity/child"
)

// probeRuns are the exec probes that are running. They are started and reaped
// by the keeper's own reaper, since only one may wait for children.
type probeRuns struct {
	mu   sync.Mutex
	wait map[int]chan child.Exit
}

func (p *probeRuns) expect(pid int) <-chan child.Exit {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wait == nil {
		p.wait = map[int]chan child.Exit{}
	}
	c := make(chan child.Exit, 1)
	p.wait[pid] = c
	return c
}

// deliver hands the end of a probe to whoever waits for it.
func (p *probeRuns) deliver(e child.Exit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.wait[e.PID]; c != nil {
		c <- e
		delete(p.wait, e.PID)
	}
}

// runProbe is a probe.Runner. It is called beside the loop.
func (k *keeper) runProbe(ctx context.Context, argv, env []string, dir string) (int, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	return k.runChild(ctx, argv, env, dir, []uintptr{null.Fd(), null.Fd(), null.Fd()})
}

// runChild runs a program of the keeper's to its end. It is called beside the loop.
func (k *keeper) runChild(ctx context.Context, argv, env []string, dir string, files []uintptr) (int, error) {
	if len(argv) == 0 {
		return 0, errors.New("there is no command")
	}
	path, err := resolve(argv[0], dir, env)
	if err != nil {
		return 0, err
	}
	var pin identity.Handle
	var ended <-chan child.Exit
	c := k.command(path, argv, env, dir, files...)
	pid, err := k.forkBeside(c, func(pid, pidfd int) (err error) {
		ended = k.ready.probes.expect(pid)
		pin, err = child.Pin(k.h, pid, pidfd)
		return err
	})
	switch {
	case pid == 0:
		return 0, execError(path, err)
	case err != nil:
		return 0, err
	}
	defer pin.Close()
	return awaitProbe(ctx, pin, ended)
}

func awaitProbe(ctx context.Context, pin identity.Handle, ended <-chan child.Exit) (int, error) {
	select {
	case e := <-ended:
		return probeCode(e)
	case <-ctx.Done():
		if err := pin.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, identity.ErrGone) {
			return 0, fmt.Errorf("%w, and it cannot be ended: %w", ctx.Err(), err)
		}
		<-ended
		return 0, ctx.Err()
	}
}

func probeCode(e child.Exit) (int, error) {
	if e.Signal != 0 {
		return 0, fmt.Errorf("ended by signal %s", identity.SignalName(e.Signal))
	}
	return e.Code, nil
}
