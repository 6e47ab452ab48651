package tasks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"
)

// bg is the context of looks that are bounded by themselves.
var bg = context.Background()

var errDisowned = errors.New("the records belong to another start of the task now")

// keep runs a write, unless the records are another start's. It looks each time:
// the state folder may have been removed and made anew by an up that could not
// know of this keeper, and what is written over its records would hide its task.
func (k *keeper) keep(write func() error) error {
	if t, err := k.taskNow(); err == nil && t.Nonce != k.spec.Nonce {
		k.disowned = true
	}
	if k.disowned {
		return errDisowned
	}
	return write()
}

// save writes keeper.json. It tells of processes, which end with the host.
func (k *keeper) save() error {
	k.rec.UpdatedAt = k.h.Now()
	err := k.keep(func() error { return k.dir.writeKeeper(k.rec, passing) })
	if err == nil {
		k.written = k.rec
	}
	k.writeAt = time.Time{}
	return err
}

// flush writes keeper.json when it has changed: what is known of the life at
// once, what the output and the memory do not so often.
func (k *keeper) flush(now time.Time) {
	v := k.term.log.view()
	if !v.Last.IsZero() {
		k.rec.LastLog, k.rec.LastLine = &v.Last, v.LastLine
	}
	if v.Lost > 0 {
		k.complain("log", fmt.Errorf("output is lost: %w", v.Err))
	}
	if sameKeeper(k.rec, k.written) {
		return
	}
	loud := !sameKeeper(quiet(k.rec), quiet(k.written))
	if !loud && k.writeAt.IsZero() {
		k.writeAt = k.written.UpdatedAt.Add(writeEvery)
	}
	if loud || !now.Before(k.writeAt) {
		k.complain("keeper.json", k.save())
	}
}

// quiet leaves out what changes all the time.
func quiet(r Keeper) Keeper {
	r.LastLog, r.LastLine, r.MemoryBytes, r.MeasuredAt = nil, "", nil, nil
	r.GPUBytes, r.GPUAt, r.GPUNote = nil, nil, ""
	return r
}

func sameKeeper(a, b Keeper) bool {
	a.UpdatedAt, b.UpdatedAt, a.MeasuredAt, b.MeasuredAt = time.Time{}, time.Time{}, nil, nil
	return reflect.DeepEqual(a, b)
}

// taskNow is task.json. It is read each time, and taken apart when it has changed.
func (k *keeper) taskNow() (Task, error) {
	path := k.dir.file("task.json")
	data, err := readFile(path)
	if err != nil {
		return Task{}, err
	}
	if len(data) > 0 && bytes.Equal(data, k.taskText) {
		return k.taskRead, nil
	}
	var t Task
	if err := takeRecord(path, data, &t, k.dir.ownsTask); err != nil {
		return Task{}, err
	}
	k.taskText, k.taskRead = data, t
	return t, nil
}

// readTask reads task.json: has somebody begun a stop?
func (k *keeper) readTask() {
	t, err := k.taskNow()
	switch {
	case err != nil:
		k.complain("task.json", err)
		t = Task{}
	case t.Nonce != k.spec.Nonce:
		k.disowned = true
		t = Task{}
	}
	k.task = t
}

// writeTask writes task.json; op.lock is held.
func (k *keeper) writeTask(s State, reason, why string) {
	t, err := k.taskNow()
	if err != nil || t.Nonce != k.spec.Nonce {
		k.complain("task.json", errors.Join(err, k.keep(func() error { return nil })))
		return
	}
	now := k.h.Now().UTC().Round(0)
	t.State, t.Reason, t.UpdatedAt = s, reason, now
	if why != "" {
		t.Error = why
	}
	if s != Stopping {
		t.EndedAt = &now
	}
	if err := k.dir.WriteTask(t); err != nil {
		k.complain("task.json", err)
		return
	}
	k.task, k.wroteAt = t, now
}

// note is an event of the run.
func (k *keeper) note(format string, args ...any) {
	err := k.run.Append(Event{At: k.h.Now(), Verb: "keeper", Task: k.spec.Task, PID: os.Getpid(), What: fmt.Sprintf(format, args...)})
	if err != nil && k.said["events"] == 0 {
		k.said["events"]++
		k.term.say("%v", err)
	}
}

// complaints bounds how often the same thing is complained of.
const complaints = 3

// complain notes that something cannot be read or written.
func (k *keeper) complain(what string, err error) {
	if err == nil || k.said[what] >= complaints {
		return
	}
	k.said[what]++
	k.note("%s: %v", what, err)
}

// waitLock waits for op.lock, beside everything else.
func (k *keeper) waitLock() {
	if k.afterOnly {
		k.borrowLock()
		return
	}
	k.lock = lockAsked
	go func() {
		unlock, err := k.dir.Lock(bg)
		k.post(func() { k.gotLock(unlock, err) })
	}()
}

// tryLock takes op.lock if it is free.
func (k *keeper) tryLock() {
	unlock, ok, err := k.dir.TryLock()
	if !ok && err == nil {
		k.lock = lockRefused
		return
	}
	k.gotLock(unlock, err)
}

// gotLock has the lock, and reads what its last holder has left. A lock that
// cannot be had at all (the state folder is gone, its file system refuses) is
// taken as held: no other hob can have it either, and the tree must be ended.
func (k *keeper) gotLock(unlock Unlock, err error) {
	k.complain("op.lock", err)
	k.lock, k.unlock = lockHeld, unlock
	k.readTask()
}

func (k *keeper) release() {
	if k.unlock != nil {
		k.unlock()
	}
	k.lock, k.unlock = lockFree, nil
}
