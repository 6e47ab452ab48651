package tasks

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"hob/identity"
	"hob/identity/child"
	"hob/identity/cut"
	"hob/sweep"
	"hob/sweep/gpu"
)

// begin starts the command, for the first time or again.
func (k *keeper) begin() {
	k.life = life{began: k.h.Now(), env: environment(k.spec, k.home, os.Getenv)}
	k.rec.Command, k.rec.Ready, k.rec.WasReady, k.rec.ReadyAt, k.rec.DeadlineHit = nil, false, false, nil, false
	k.rec.ReadyNote, k.rec.Hook, k.rec.HookNote = "", "", ""
	if k.spec.Before != nil {
		k.before()
		return
	}
	k.start()
}

// start starts the command itself.
func (k *keeper) start() {
	env := k.life.env
	k.life.began = k.h.Now()
	k.ready.prepare(k, env)
	path, err := k.program(env)
	if err == nil {
		err = k.launch(path, env)
	}
	if err != nil {
		k.notStarted(err)
		return
	}
	k.note("started pid %d", k.life.ref.PID)
	k.sizeAt = k.h.Now().Add(lookEvery) // it has taken nothing yet
	k.lookAt = k.h.Now().Add(lookFirst) // now there is the command alone, which keeper.json tells of
	k.gpus.begin(k)
}

func (k *keeper) program(env []string) (string, error) {
	if len(k.spec.Args) == 0 {
		return "", &startError{127, errors.New("the command is empty")}
	}
	return resolve(k.spec.Args[0], k.spec.Dir, env)
}

// launch forks. A capture of what was before has made room.
func (k *keeper) launch(path string, env []string) error {
	if err := k.newCapture(); err != nil {
		return &startError{126, fmt.Errorf("not started, since its records cannot be written: %w", err)}
	}
	tty := k.term.slave.Fd()
	c := k.command(path, k.spec.Args, env, k.spec.Dir, tty, tty, tty)
	c.Terminal = true
	pid, err := k.fork(c)
	if pid == 0 {
		return execError(path, err)
	}
	if err != nil {
		k.unrecorded(pid, err)
	}
	return nil
}

// command is a command with the limits of whoever asked for the task. Where they
// differ from ours a hob of its own takes them, and becomes the command.
func (k *keeper) command(path string, argv, env []string, dir string, files ...uintptr) child.Command {
	c := child.Command{Path: path, Args: argv, Env: env, Dir: dir, Files: files, NoFile: k.nofile}
	if len(k.limits) == 0 {
		return c
	}
	self := thisProgram
	if _, err := os.Stat(self); err != nil {
		if self, err = os.Executable(); err != nil {
			return c
		}
	}
	c.Path, c.Args = self, k.limits.Through("hob", path, argv)
	return c
}

// thisProgram is ours on Linux, also when its file has been replaced.
const thisProgram = "/proc/self/exe"

// born writes down a command that has just been forked. The reaper waits meanwhile.
func (k *keeper) born(pid, pidfd int) error {
	cut.Point("keeper", "forked")
	k.life.ref = &identity.Ref{PID: pid} // for the reaper, should the pin fail; it verifies as nothing
	pin, err := child.Pin(k.h, pid, pidfd)
	if err != nil {
		return err
	}
	ref, now := pin.Ref(), k.h.Now()
	k.life.pin, k.life.ref = pin, &ref
	k.rec.Command, k.rec.StartedAt, k.rec.GPUNote = &ref, &now, gpu.NotRead
	k.ready.begin(k) // in the same write: who waits for the command sees at once that up is ready
	return k.save()
}

// unrecorded is for a command that runs and could not be written down: it must
// not go on. Whoever waits for it reads why; the stop needs no record on disk.
func (k *keeper) unrecorded(pid int, err error) {
	err = fmt.Errorf("pid %d was started, could not be recorded, and is stopped: %w", pid, err)
	k.term.say("%v", err)
	_ = k.unstarted(err)
	k.ask("terminated")
}

// notStarted says why in the pane, the log and exit.json, where `up` looks.
func (k *keeper) notStarted(err error) {
	k.life.failed = err
	code := 126
	if no, ok := errors.AsType[*startError](err); ok {
		code = no.code
	}
	k.term.say("%v", err)
	e := Exit{Nonce: k.spec.Nonce, Code: &code, Error: err.Error(), At: k.h.Now()}
	k.life.exit = &e
	k.complain("exit.json", k.dir.WriteExit(e))
	k.note("could not be started: %v", err)
	if k.lock == lockHeld { // a restart; at the first start `up` holds it, and writes this
		k.writeTask(Failed, "exited", err.Error())
	}
}

// reaped is what the reaper has to say.
func (k *keeper) reaped(ended []child.Exit, empty bool) {
	for _, e := range ended {
		if l := &k.life; l.ref != nil && l.ref.PID == e.PID && l.exit == nil {
			k.commandEnded(e)
			continue
		}
		k.ready.probes.deliver(e)
	}
	if empty {
		k.readTask()
	}
	// The tree has changed: look soon, but not after every exit of many.
	if soon := k.h.Now().Add(max(20*time.Millisecond, lookRatio/10*k.walk)); soon.Before(k.lookAt) {
		k.lookAt = soon
	}
}

// commandEnded writes exit.json at once.
func (k *keeper) commandEnded(e child.Exit) {
	cut.Point("keeper", "command ended")
	now := k.h.Now()
	exit := Exit{Schema: Schema, Nonce: k.spec.Nonce, At: now}
	if e.Signal != 0 {
		exit.Signal = identity.SignalName(e.Signal)
	} else {
		exit.Code = &e.Code
	}
	l := &k.life
	k.readTask()
	if k.want == "" && k.task.State != Stopping {
		l.restart = planRestart(k.spec.Restart, exit, k.fails, now.Sub(l.began))
	}
	if k.behind && k.want == "" && k.task.State != Stopping {
		k.writeCapture()
	}
	if l.restart.again {
		at := now.Add(l.restart.pause)
		exit.RestartAt = &at
	}
	k.complain("exit.json", k.keep(func() error { return k.dir.WriteExit(exit) }))
	l.exit = &exit
	if l.pin != nil {
		_ = l.pin.Close()
		l.pin = nil
	}
	l.graceAt = now
	if k.spec.Kind == sweep.Server {
		l.graceAt = now.Add(k.spec.Stop.Grace)
	}
	k.ready.end()
	k.gpus.end(k)
	k.rec.Ready, k.rec.ReadyNote = false, exit.outcome()
	if l.restart.why != "" {
		k.rec.ReadyNote += ", " + l.restart.why
	}
	k.note("%s", k.rec.ReadyNote)
	if l.restart.why != "" || l.graceAt.After(now) && !k.reaper.Empty() {
		k.term.tell("%s", k.farewell(now))
	}
	k.flush(now)
}

// farewell says in the pane what comes after the command's end.
func (k *keeper) farewell(now time.Time) string {
	text := k.rec.ReadyNote
	if grace := k.life.graceAt.Sub(now); grace > 0 && !k.reaper.Empty() {
		text += fmt.Sprintf("; what it left behind has %s to end", grace.Round(time.Second))
	}
	return text
}

// restartDue reports whether the pause before a restart is over, and nobody
// holds the port or the GPU memory of the life before.
func (k *keeper) restartDue(now time.Time) bool {
	l := &k.life
	if !l.restart.again || !l.reported || !k.reaper.Empty() || now.Before(l.exit.At.Add(l.restart.pause)) {
		return false
	}
	holder, known := k.portHolder(), true
	if holder == "" && !k.gpus.returned(k, now) {
		holder, known = k.gpus.held, k.gpus.held != ""
		if !known {
			holder = "nvidia-smi has not said yet whether GPU memory is free"
		}
	}
	start, note := startAfter(now.Sub(l.exit.At.Add(l.restart.pause)), holder)
	if note != "" && (known || start) && k.rec.ReadyNote != note {
		k.rec.ReadyNote = note
		k.note("%s", note)
	}
	return start
}

// restartPatience is how long a restart waits for what the life before held. Then the
// command is started all the same, which will say itself what it lacks: that ends as
// any restart that fails, and does not wait for ever for what may never come.
const restartPatience = 5 * time.Minute

// startAfter decides whether a restart that has waited so long waits on for what is
// held, "" when nothing is.
func startAfter(waited time.Duration, holder string) (start bool, note string) {
	switch {
	case holder == "":
		return true, ""
	case waited < restartPatience:
		return false, fmt.Sprintf("restart waits, %s at most: %s", restartPatience, holder)
	}
	return true, fmt.Sprintf("restart has waited %s, and waits no longer: %s", restartPatience, holder)
}

// portHolder says who has the task's port, "" for nobody. A listener that cannot
// be looked for is no reason to wait: the command will say so itself.
func (k *keeper) portHolder() string {
	if k.spec.Port == 0 {
		return ""
	}
	socks, err := k.h.Sockets(bg, 0)
	if err != nil {
		return ""
	}
	for _, s := range socks {
		if s.Listen && int(s.Local.Port()) == k.spec.Port {
			return fmt.Sprintf("port %d is still held", k.spec.Port)
		}
	}
	return ""
}

// startAgain is a restart, under op.lock, after which nobody can have asked for
// a stop that it would undo.
func (k *keeper) startAgain() {
	plan := k.life.restart
	k.readTask()
	if k.disowned || k.task.State != Up && k.task.State != Starting {
		k.life.restart = restartPlan{}
		return
	}
	if err := k.dir.forget("exit.json"); err != nil {
		k.complain("exit.json", err)
	}
	k.fails = plan.fails
	k.rec.Restarts++
	k.begin()
}

// newCapture begins the rolling capture of a life. What an earlier one left
// alive, or could not tell, stays in it: the record is kept until it is clean.
func (k *keeper) newCapture() error {
	old, err := k.dir.ReadCapture()
	if err != nil && !errors.Is(err, ErrNoRecord) {
		return err
	}
	kept := slices.DeleteFunc(old.Members, func(m sweep.Member) bool {
		return m.Fate != "" && m.Fate != sweep.Survived && m.Fate != sweep.Unverifiable
	})
	k.capture = sweep.Capture{Schema: Schema, Run: k.spec.Run, Task: k.spec.Task, TakenAt: k.h.Now(), Phase: PhaseRolling,
		Members: append([]sweep.Member{}, kept...), Cgroup: k.cgroupRef()}
	if old.Cgroup != nil && k.capture.Cgroup != nil && *old.Cgroup == *k.capture.Cgroup {
		k.capture.Guests, k.capture.FrozenAt = old.Guests, old.FrozenAt
	}
	if errors.Is(err, ErrNoRecord) {
		k.bare = true // there is nothing to replace: the first look that has more to say than keeper.json makes it
		return nil
	}
	return k.dir.BeginCapture(k.capture)
}
