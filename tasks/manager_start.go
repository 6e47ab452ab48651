package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hob/identity"
	"hob/recipes"
	"hob/sweep"
)

// start makes a task's records and its pane, and waits until its keeper has
// started the command or says why not. The task's lock is held all the while.
func (u *upRun) start(ctx context.Context, t *upTask) error {
	if err := t.dir.Create(); err != nil {
		return err
	}
	unlock, err := u.lockTask(ctx, t.dir, true)
	if err != nil {
		return err
	}
	defer unlock()
	clear, err := u.clear(ctx, t)
	if err != nil || !clear {
		return err
	}
	task, err := u.write(t)
	if err != nil {
		return err
	}
	u.tell(Progress{Name: Name{u.dir.Name, t.Name}, State: Starting, Since: u.now()})
	if err := u.launch(ctx, t, &task); err != nil {
		return errors.Join(err, u.failed(t, task, err))
	}
	u.event(u.dir, t.Name, "started")
	return nil
}

// clear makes sure that nothing of an earlier start is left. It is false when
// somebody else has started the task meanwhile: it lives, or it had the time to
// end since this up looked.
func (u *upRun) clear(ctx context.Context, t *upTask) (bool, error) {
	seen := u.lookToAct(t.dir)
	if seen.Trouble != nil {
		return false, seen.Trouble
	}
	if seen.Task == nil {
		return true, nil
	}
	if s := Derive(seen).State; s.Lives() && s != Stopping || !seen.started().Equal(t.began) {
		return false, nil
	}
	if err := u.stopLocked(ctx, u.dir, t.dir, StopOptions{Reason: "up"}).unsettled(); err != nil {
		return false, &Problem{Err: fmt.Errorf("%s was not started over what is left of it: %w", t.Name, err), Tip: advice(err, "hob sweep "+u.dir.Name)}
	}
	_, captureErr := t.dir.ReadCapture()
	_, stopErr := t.dir.ReadStop()
	if err := errors.Join(trouble(captureErr), trouble(stopErr)); err != nil {
		return false, err // torn: kept, not forgotten
	}
	// Not exit.json: should this hob be killed next, only that says how the task ended. To
	// the next start it is another's, and its keeper removes it.
	return true, t.dir.forget("keeper.json", "stop.json", "capture.json")
}

// write makes the records that the keeper starts by, and makes them last. The spec
// comes first: a keeper that finds the task `starting` finds the spec whole.
func (u *upRun) write(t *upTask) (Task, error) {
	nonce, err := randomHex()
	if err != nil {
		return Task{}, err
	}
	spec, err := u.spec(t, nonce)
	if err != nil {
		return Task{}, err
	}
	now := u.now()
	task := Task{
		Schema: Schema, Run: u.dir.Name, Task: t.Name, Kind: sweep.Kind(t.Kind), Engine: t.Engine,
		State: Starting, Nonce: nonce, URL: t.url(), StartedAt: &now, UpdatedAt: now,
	}
	if t.port > 0 {
		task.Port = &t.port
	}
	return task, t.dir.writeStart(spec, task)
}

// launch makes the pane, writes down where it is, and waits for the keeper.
func (u *upRun) launch(ctx context.Context, t *upTask, task *Task) error {
	wake, err := u.watch.add(t.dir.Path, stateFiles)
	if err != nil {
		return err
	}
	pane, err := u.panes.spawn(ctx, t.Name, []string{u.Self, "keeper", t.dir.SpecPath()})
	if err != nil {
		return err
	}
	end := u.endOf(ctx, pane.PID)
	task.Pane = &Pane{Window: pane.Window, Pane: pane.ID, TTY: pane.TTY, PID: pane.PID, Server: u.panes.serverOf(pane)}
	// Whatever cuts hob from here on finds the pane: by its window's name and what its
	// process was told, by the keeper's record once there is one, or, where windows are
	// shared, by what is written now. Only a crash of the host could lose or tear that,
	// and ends the pane as well (ended.go).
	keeper, begun, err := begun(t, task.Nonce)
	if err != nil {
		return err
	}
	if !begun && u.panes.plan.shares(t.Name) {
		if err := t.dir.writeTask(*task, passing); err != nil {
			return err
		}
	}
	if !begun {
		if keeper, err = u.awaitCommand(ctx, t, task.Nonce, wake, end); err != nil {
			return err
		}
	}
	task.State, task.UpdatedAt = Up, u.now()
	t.begun = Seen{Task: task, Keeper: keeper}
	return t.dir.writeTask(*task, passing)
}

// keeperDeadline is how long a keeper may take to start the command.
const keeperDeadline = 30 * time.Second

// awaitCommand waits until the keeper has written its command's Ref, or why
// there is none.
func (u *upRun) awaitCommand(ctx context.Context, t *upTask, nonce string, wake, end <-chan struct{}) (*Keeper, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, keeperDeadline, errors.New("its keeper did not start the command in "+keeperDeadline.String()))
	defer cancel()
	for ended := false; ; {
		select {
		case <-wake:
		case <-end:
			ended = true // what it wrote last is read once more
		case <-ctx.Done():
			return nil, fmt.Errorf("start %s: %w", t.Name, context.Cause(ctx))
		}
		if keeper, begun, err := begun(t, nonce); begun || err != nil {
			return keeper, err
		}
		if ended {
			return nil, fmt.Errorf("the keeper of %s ended before it could start the command", t.Name)
		}
	}
}

// begun reports whether the keeper of this start has started the command, or what
// comes before it, with what it has written by then, nil when that is not known. The
// error says why it will not.
func begun(t *upTask, nonce string) (*Keeper, bool, error) {
	exit, err := t.dir.ReadExit()
	switch {
	case trouble(err) != nil:
		return nil, false, err
	case err == nil && exit.Nonce == nonce && exit.Error != "":
		return nil, false, fmt.Errorf("%s could not be started: %s", t.Name, exit.Error)
	case err == nil && exit.Nonce == nonce:
		return nil, true, nil
	}
	k, err := t.dir.ReadKeeper()
	if trouble(err) != nil {
		return nil, false, err
	}
	return &k, err == nil && k.Nonce == nonce && (k.Command != nil || k.Hook == hookBefore), nil
}

// endOf is closed when the process has ended, which the kernel says.
func (m *Manager) endOf(ctx context.Context, pid int) <-chan struct{} {
	done := make(chan struct{})
	h, err := m.Host.Open(pid)
	if err != nil {
		close(done)
		return done
	}
	go m.waitEnd(ctx, h, done)
	return done
}

func (m *Manager) waitEnd(ctx context.Context, h identity.Handle, done chan struct{}) {
	defer h.Close()
	if m.Host.Wait(ctx, []identity.Handle{h}, time.Time{}) == nil {
		close(done)
	}
}

// failed writes down that a task could not be started. What a keeper that came
// late finds is no longer `starting`, so that it starts nothing. A keeper that was
// killed on its way may have started the command: then nobody knows what is left,
// and the next stop or sweep looks.
func (u *upRun) failed(t *upTask, task Task, why error) error {
	now := u.now()
	task.State, task.Error, task.EndedAt, task.UpdatedAt = Failed, why.Error(), &now, now
	u.event(u.dir, t.Name, "could not be started: "+why.Error())
	if err := t.dir.WriteTask(task); err != nil {
		return err
	}
	// Looked for after that: a keeper writes itself down and then reads the state,
	// so one that is not seen here has seen it.
	if seen := u.lookHeld(t.dir); seen.Trouble == nil && (seen.Keeper == nil || seen.Exit != nil) {
		return nil
	} else if seen.Trouble == nil && seen.KeeperV.Verdict == identity.Owned && seen.Command.Verdict == identity.Owned {
		task.State, task.Error, task.EndedAt = Up, "", nil // it was hob's waiting that was cut, not the start
		return t.dir.WriteTask(task)
	}
	task.State = Unverified
	return t.dir.WriteTask(task)
}

// spec is what the keeper starts.
func (u *upRun) spec(t *upTask, nonce string) (Spec, error) {
	argv, _ := t.BindLate(u.late(t))
	before, afterReady, afterStop := t.BindHooks(u.late(t))
	stop, err := stopPolicy(t.Stop)
	if err != nil {
		return Spec{}, fmt.Errorf("%s: %w", t.Name, err)
	}
	return Spec{
		Schema: Schema, Run: u.dir.Name, Task: t.Name, RunID: u.run.ID, Nonce: nonce,
		Kind: sweep.Kind(t.Kind), Engine: t.Engine, Args: argv, Dir: t.Dir, Env: u.environment(t), Port: t.port,
		Ready: u.readiness(t, argv), Stop: stop, Restart: Restart(t.Restart),
		Log:      LogPolicy{MaxBytes: DefaultLogBytes, Keep: DefaultLogKeep},
		Lifetime: u.run.Lifetime, Owner: u.run.Owner,
		Before: hookOf(before), AfterReady: hookOf(afterReady), AfterStop: hookOf(afterStop),
		Limits: u.callerLimits(),
	}, nil
}

func hookOf(h *recipes.Hook) *Hook {
	if h == nil {
		return nil
	}
	return &Hook{Args: h.Command, Timeout: h.Timeout}
}

// readiness is how the task shows that it answers, with the key that it asks for.
func (u *upRun) readiness(t *upTask, argv []string) *Readiness {
	r := readinessOf(t.Task, u.late(t))
	if r != nil {
		r.APIKey, _ = apiKey(t.Ready, argv, u.environment(t))
	}
	return r
}

// apiKey is the key that a task's server asks for, and where it comes from: what
// the recipe says for readiness, else the engine's own flag, else its variable. Of
// several that a server takes it is the first.
func apiKey(r *recipes.Ready, argv, env []string) (key, from string) {
	if r == nil || r.HTTP == "" && !r.Completion {
		return "", ""
	}
	if r.APIKey != "" {
		return r.APIKey, "ready.api_key"
	}
	if slices.Contains(r.Names, "Authorization") {
		return "", "" // the recipe says that it asks by other means
	}
	if value, found := recipes.FlagValue(argv, r.KeyFlags); found && value != "" {
		return firstKey(value), strings.Join(r.KeyFlags, " or ")
	}
	for _, name := range r.KeyEnv {
		if value := lookup(env, name); value != "" {
			return firstKey(value), name
		}
	}
	return "", ""
}

func firstKey(keys string) string {
	key, _, _ := strings.Cut(keys, ",")
	return strings.TrimSpace(key)
}

func readinessOf(t recipes.Task, late recipes.Late) *Readiness {
	r := t.BindReadyLate(late)
	if r == nil {
		return nil
	}
	var fields []JSONField
	for _, f := range r.JSON {
		fields = append(fields, JSONField(f))
	}
	var headers []Header
	for _, h := range r.Headers {
		headers = append(headers, Header(h))
	}
	return &Readiness{
		HTTP: r.HTTP, Status: r.Status, Body: r.Body, JSON: fields, Headers: headers, TCP: r.TCP, Log: r.Log, Exec: r.Exec, Completion: r.Completion, Model: t.Model,
		Listener: r.Listener, Timeout: r.Timeout, Interval: r.Interval,
	}
}

func stopPolicy(s recipes.Stop) (sweep.StopPolicy, error) {
	sig, err := signalNamed(s.Signal)
	return sweep.StopPolicy{Signal: sig, Grace: s.Grace, TermGrace: s.TermGrace, Detached: s.Detached, Spare: s.Spare}, err
}

// signalNamed is the number of a signal on this system.
func signalNamed(name string) (syscall.Signal, error) {
	name = strings.TrimPrefix(strings.ToUpper(name), "SIG")
	if name == "" {
		return syscall.SIGTERM, nil
	}
	for n := syscall.Signal(1); n < 65; n++ {
		if identity.SignalName(n) == name {
			return n, nil
		}
	}
	return 0, fmt.Errorf("this system has no signal %q", name)
}

// url is where a server that speaks HTTP is reached.
func (t *upTask) url() string {
	if t.port == 0 || t.Ready == nil || (t.Ready.HTTP == "" && !t.Ready.Completion) {
		return ""
	}
	host := t.Host
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(t.port))
}

// digest tells whether two recipes, as resolved, are the same. Values of the
// recipe's environment count, and stand nowhere but in the hash.
func digest(r *recipes.Recipe) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	_ = enc.Encode(r)
	for _, t := range r.Tasks {
		_ = enc.Encode(t.Env)
		if t.Ready != nil {
			_ = enc.Encode(t.Ready.APIKey)
			_ = enc.Encode(t.Ready.Headers)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Tail are the last lines of a task's log.
func (m *Manager) Tail(n Name, lines int) []string {
	return tail(m.Store.Run(n.Run).Task(n.Task).LogPath(), 16<<10, lines)
}

// endOf is the end of a file, at most so many bytes.
func endOf(path string, most int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	data := make([]byte, min(size, most))
	if _, err := f.ReadAt(data, size-int64(len(data))); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return data, nil
}

// tail are the last lines of a file, and at most so many bytes of it.
func tail(path string, most int64, lines int) []string {
	data, err := endOf(path, most)
	if err != nil {
		return nil
	}
	all := strings.Split(strings.TrimRight(string(data), "\r\n"), "\n")
	if len(all) == 1 && all[0] == "" {
		return nil
	}
	return all[max(0, len(all)-lines):]
}
