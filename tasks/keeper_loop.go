package tasks

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"hob/identity"
	"hob/identity/child"
	"hob/sweep"
)

// Intervals of the keeper. None is waited out where there is an event.
const (
	lookEvery   = time.Second            // between walks of the tree, unless they take long
	lookFirst   = 500 * time.Millisecond // of a life: not while other keepers start their commands
	lookRatio   = 1200                   // times as long as the last walk took of a processor
	nearEvery   = 200 * time.Millisecond // between looks at task.json while a restart is due
	writeEvery  = 2 * time.Second        // between writes of what changes all the time
	sizeEvery   = 5 * time.Second        // between measurements of memory
	thriftAfter = 2 * time.Second        // of a start, until the memory that it took is given back
	lockPatient = 5 * time.Second        // that the end of a task waits to be written down
)

// serve runs the task to its end and returns the exit code.
func (k *keeper) serve() int {
	if err := k.open(); err != nil {
		return k.abort(err)
	}
	go k.reaper.Run(func(ended []child.Exit, empty bool) { k.post(func() { k.reaped(ended, empty) }) })
	k.watchOwner()
	k.begin()
	k.thrift = k.h.Now().Add(thriftAfter)
	k.loop()
	return k.finish()
}

// abort is for a keeper that could not be set up: it says why in the pane, and
// in exit.json, where `up` looks.
func (k *keeper) abort(err error) int {
	err = k.unstarted(err)
	k.leaveCgroup()
	fmt.Fprint(os.Stderr, "hob: ", err, "\r\n") // the pane
	return keeperFailed
}

// open becomes the subreaper, writes down the keeper's own Ref and opens log and terminals.
func (k *keeper) open() error {
	if err := child.Subreap(); err != nil && !errors.Is(err, identity.ErrUnsupported) {
		return fmt.Errorf("become the one that adopts orphans: %w", err)
	}
	stampErr := k.stamp()
	if err := k.dir.forget("exit.json"); err != nil {
		return err
	}
	k.makeCgroup()
	if err := errors.Join(k.save(), k.confirm()); err != nil {
		return err
	}
	log, err := openLog(k.dir.LogPath(), k.spec.Log)
	if err != nil {
		return err
	}
	k.term, err = openTerminal(log, k.post, func() { k.ask("hangup") })
	if err == nil {
		k.complain("stamp", stampErr)
	}
	return err
}

// stamp marks the keeper and all that it will start, so that what leaves the tree
// can be told from others should the keeper be killed. The number is of this start
// alone. Where it cannot be had such an end leaves questions, and nothing else.
func (k *keeper) stamp() error {
	sum := sha256.Sum256([]byte(k.spec.Nonce))
	want := 1<<30 | uint64(binary.BigEndian.Uint32(sum[:4])>>2) // fits the limits of 32-bit kernels
	stamp, err := child.Stamp(want)
	k.rec.Stamp = stamp
	if errors.Is(err, identity.ErrUnsupported) {
		return nil
	}
	return err
}

// post hands the loop something to do.
func (k *keeper) post(f func()) { k.inbox <- f }

// loop is the keeper's life: something happens, then all that is due is done,
// then it is decided what to do next.
func (k *keeper) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		k.tick(k.h.Now())
		for k.act(decide(k.sight(k.h.Now()))) {
		}
		if k.done {
			return
		}
		timer.Reset(time.Until(k.nextDue()))
		select {
		case f := <-k.inbox:
			f()
		case sig := <-k.signals.end:
			k.told(sig.(syscall.Signal))
		case <-k.signals.resize:
			k.term.resize()
		case <-timer.C:
		}
	}
}

// told is a signal that means the end.
func (k *keeper) told(sig syscall.Signal) {
	if k.afterOnly {
		k.cutShort()
		return
	}
	if identity.SignalName(sig) == "HUP" {
		k.ask("hangup")
		return
	}
	reason := "terminated"
	if stop, err := k.dir.ReadStop(); err == nil && stop.Nonce == k.spec.Nonce && stop.Reason != "" {
		reason = stop.Reason
	}
	k.ask(reason)
}

// ask asks for a stop. The first reason stays.
func (k *keeper) ask(reason string) {
	if k.want == "" {
		k.want = reason
		k.note("asked to stop: %s", reason)
		k.readTask()
	}
}

// sight is what there is to decide over.
func (k *keeper) sight(now time.Time) sight {
	l := &k.life
	ours := !k.wroteAt.IsZero() && k.task.UpdatedAt.Equal(k.wroteAt)
	s := sight{
		kind: k.spec.Kind, unstarted: l.failed != nil, ended: l.exit != nil, empty: k.reaper.Empty(),
		graceOver: l.exit != nil && !now.Before(l.graceAt),
		want:      k.want, stopping: k.stopping, stopped: k.stopped, reported: l.reported,
		pending: l.pending != notPending, prepared: l.pending == beforeEnded, hooking: k.hooking, leftover: k.hooked && !k.hooking, after: k.afterDue(),
		restart: l.restart.again && !k.disowned, due: k.restartDue(now),
		afterOnly: k.afterOnly, lock: k.lock, gaveUp: !k.giveUpAt.IsZero() && !now.Before(k.giveUpAt),
		theirs:  k.task.State == Stopping && !ours,
		settled: slices.Contains([]State{Stopped, Survivors, Unverified}, k.task.State) && !ours,
	}
	if over := s.stopped || s.settled || s.reported; over && !s.empty && !s.stopping {
		s.spared = k.onlySpared()
	}
	return s
}

// act does what was decided, and reports whether there may be more to decide at once.
func (k *keeper) act(m move) bool {
	switch m {
	case doAskLock:
		k.waitLock()
	case doTryLock:
		k.tryLock()
		return true
	case doLetGo:
		k.release()
		return true
	case doStopAll:
		k.stop(sweep.StepAll)
	case doStopLeft:
		k.stop(sweep.StepTerm)
	case doRestart:
		k.startAgain()
		return true
	case doStart:
		k.startPending()
		return true
	case doAfter:
		k.afterStop()
		return true
	case doQuit:
		k.done = true
	}
	return false
}

// tick does what is due by time.
func (k *keeper) tick(now time.Time) {
	if !now.Before(k.lookAt) && !k.stopping {
		k.readTask()
		k.look(now)
	}
	if !now.Before(k.sizeAt) && !k.stopping {
		k.measure(now)
	}
	k.tickLock(now)
	k.ready.tick(k, now)
	k.gpus.tick(k, now)
	k.flush(now)
	if !k.thrift.IsZero() && !now.Before(k.thrift) {
		k.thrift = time.Time{}
		economize()
	}
}

// tickLock bounds how long a task that has ended waits to be written down.
func (k *keeper) tickLock(now time.Time) {
	switch {
	case k.lock != lockAsked || !k.reaper.Empty():
		k.giveUpAt = time.Time{}
	case k.giveUpAt.IsZero():
		k.giveUpAt = now.Add(lockPatient)
	}
}

// nextDue is when something is due next. What is overdue has just been done, or
// waits for an event.
func (k *keeper) nextDue() time.Time {
	now := k.h.Now()
	due := now.Add(time.Hour)
	for _, at := range []time.Time{k.lookAt, k.sizeAt, k.writeAt, k.ready.at, k.gpus.at, k.gpus.askAt, k.life.graceAt, k.giveUpAt, k.thrift} {
		if at.After(now) && at.Before(due) {
			due = at
		}
	}
	return due
}
