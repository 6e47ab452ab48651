package tasks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"hob/identity"
	"hob/identity/child"
)

// RunAfterStop is `hob keeper SPEC after_stop`: a keeper for the after_stop alone, of a
// task that another hob has stopped, whose own keeper has ended with it. That hob waits
// for it, and holds the task's lock meanwhile. So what the hook leaves running is
// captured, ended and reported as what a command leaves, also when that hob is killed.
// A signal that means the end cuts the hook short.
func RunAfterStop(h identity.Host, spec, version string) int {
	signals := catchSignals()
	child.KeepToMyself()
	hurry()
	k, err := newAfterKeeper(h, spec, version)
	if err == nil {
		k.signals = signals
		err = k.openAfter()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hob:", err) // whoever waits reads it
		return keeperFailed
	}
	go k.reaper.Run(func(ended []child.Exit, empty bool) { k.post(func() { k.reaped(ended, empty) }) })
	k.thrift = k.h.Now().Add(thriftAfter)
	k.loop()
	k.finish()
	return 0
}

// newAfterKeeper takes over the records of the keeper that was. Its life is that of a
// task that is over.
func newAfterKeeper(h identity.Host, path, version string) (*keeper, error) {
	run, dir, err := taskOfSpec(path)
	if err != nil {
		return nil, err
	}
	spec, err := dir.ReadSpec()
	if err != nil {
		return nil, err
	}
	k := unadmitted(h, run, dir, spec)
	old, err := dir.ReadKeeper()
	if err != nil {
		return nil, err
	}
	if k.task, err = k.taskNow(); err != nil {
		return nil, err
	}
	exit, err := dir.ReadExit()
	if err != nil && !errors.Is(err, ErrNoRecord) {
		return nil, err
	}
	k.rec, k.wroteAt, k.stopped = old, k.task.UpdatedAt, k.task.State == Stopped // rec with the cgroup and the command that it knew
	k.life = life{began: h.Now(), env: environment(spec, k.home, noTerminal), exit: &exit, reported: true}
	if old.Nonce != spec.Nonce || k.task.Nonce != spec.Nonce || !k.afterDue() {
		return nil, fmt.Errorf("%s of %s/%s is not to be run: it is %s", HookAfterStop, spec.Run, spec.Task, k.task.State)
	}
	if err := k.know(); err != nil {
		return nil, err
	}
	k.rec.Keeper, k.rec.Version, k.rec.Protocol, k.rec.Hook, k.rec.HookNote, k.rec.Empty, k.rec.Left = k.self, version, KeeperProtocol, HookAfterStop, "", false, false
	k.tmux = old.Tmux
	if k.capture, err = dir.ReadCapture(); err != nil && !errors.Is(err, ErrNoRecord) {
		return nil, err
	}
	k.afterOnly = true
	return k, nil
}

// noTerminal is the environment of whoever typed hob down as a hook may see it: in a
// terminal of theirs it does not run.
func noTerminal(string) string { return "" }

// openAfter is open without what belongs to the pane, or was done by the keeper before.
func (k *keeper) openAfter() error {
	if err := child.Subreap(); err != nil && !errors.Is(err, identity.ErrUnsupported) {
		return fmt.Errorf("become the one that adopts orphans: %w", err)
	}
	stampErr := k.stamp()
	go k.inheritLock()
	if err := k.save(); err != nil {
		return err
	}
	log, err := openLog(k.dir.LogPath(), k.spec.Log)
	if err != nil {
		return err
	}
	k.term, err = openTerminal(log, k.post, func() {}) // it has no pane whose end would mean anything
	if err == nil {
		k.complain("stamp", stampErr)
	}
	return err
}

// inheritLock waits for the lock beside all else: should whoever holds it be killed, no
// other hob starts the task anew while its after_stop runs. It ends with the process.
func (k *keeper) inheritLock() {
	unlock, err := k.dir.Lock(bg)
	if err == nil {
		k.post(func() { k.inherited = unlock })
	}
}

// borrowLock stands for the lock that whoever waits for this keeper holds.
func (k *keeper) borrowLock() {
	k.lock = lockAsked
	go k.post(func() { k.gotLock(nil, nil) })
}

// hookContext bounds a hook. An after_stop that runs alone is cut short by the first signal.
func (k *keeper) hookContext(bound time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(bg, bound)
	k.cutHook = cancel
	if k.cut {
		cancel()
	}
	return ctx, cancel
}

// cutShort ends the after_stop that runs alone, also one that is about to be started.
func (k *keeper) cutShort() {
	k.cut = true
	if k.cutHook != nil {
		k.cutHook()
	}
}
