package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/mattn/go-isatty"

	"hob/identity"
	"hob/tasks"
)

// app is one invocation of hob: where it writes, what it was told.
type app struct {
	out, err       io.Writer
	env            []string
	getenv         func(string) string
	outTTY, errTTY bool
	inTTY          bool

	home    string
	noColor bool
	quiet   bool
	json    bool
	dryRun  bool

	ending <-chan struct{} // closed when a signal asks the verb to let go
	folder *tasks.Store    // of a verb that goes by what its own records say; nil: none

	drawing  atomic.Pointer[progress] // what is drawn on the terminal now
	unreaped error                    // why the reaper at the start of the verb could not look
}

func newApp() *app {
	return &app{
		out: os.Stdout, err: os.Stderr, env: os.Environ(), getenv: os.Getenv,
		outTTY: isatty.IsTerminal(os.Stdout.Fd()),
		errTTY: isatty.IsTerminal(os.Stderr.Fd()),
		inTTY:  isatty.IsTerminal(os.Stdin.Fd()),
	}
}

// run executes the command line and returns the exit code.
func (a *app) run(args []string) int {
	ctx, stop := interruptible()
	defer stop()
	a.ending = ctx.Done()
	ctx = tasks.TellWaits(ctx, func(w tasks.Waiting) { a.note("note: %s", w) })
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && ctx.Err() != nil && !errors.Is(err, tasks.ErrInterrupted) {
		err = interrupted(err)
	}
	err = join(err, a.amiss(err))
	a.complain(err)
	return exitCode(err)
}

// amiss are the records of the state folder itself that cannot be trusted, and its locks
// that could not be had, where the verb has not named them yet: it has gone on without.
func (a *app) amiss(said error) error {
	if a.folder == nil {
		return nil
	}
	var errs []error
	for _, e := range leaves(join(a.folder.Amiss(), a.unreaped)) {
		name := e.Error()
		if record, ok := errors.AsType[*tasks.RecordError](e); ok {
			name = record.Path
		}
		if all := join(append(errs, said)...); all == nil || !strings.Contains(all.Error(), name) {
			errs = append(errs, e)
		}
	}
	return errors.Join(errs...)
}

// needsNone are the verbs that go by nothing that the state folder's own records say:
// where its tmux server is, and what is left of tasks that are over.
var needsNone = []string{"completion", "events", "freeze", "logs", "wait"}

// interrupted puts ErrInterrupted on the first line, once; what went wrong because of
// it follows on lines of its own.
func interrupted(err error) error {
	if err == tasks.ErrInterrupted { //nolint:errorlint // that word alone, nothing around it
		return err
	}
	return errors.Join(tasks.ErrInterrupted, err)
}

// interruptible ends with the first INT, TERM, HUP or QUIT (Ctrl-\ is one more way to
// ask a verb to let go, and no reason for a dump); the second one ends hob as
// if it had never listened.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ch := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(ch, syscall.SIGHUP)
	}
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	go func() {
		if _, ok := <-ch; ok {
			cancel(tasks.ErrInterrupted)
			signal.Stop(ch)
		}
	}()
	return ctx, func() { cancel(nil) }
}

// manager opens the state folder for a verb that acts: what would keep it from
// writing there shows now, before anything starts.
// Such a verb goes on to its end also when nobody reads what it writes any more
// (`hob down | head -1`): a stop that is cut leaves survivors.
func (a *app) manager(verb string) (*tasks.Manager, error) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // not ignored, which children would inherit
	open := tasks.OpenStore
	if verb == "down" || verb == "sweep" || verb == "reap" {
		open = tasks.OpenToEnd
	}
	m, err := a.open(verb, open)
	if errors.Is(err, syscall.EROFS) {
		err = &tasks.Problem{Err: err, Tip: a.keepersTip()}
	}
	if err != nil {
		return nil, err
	}
	return m, sighted(verb, m.Host.Facts())
}

// sighted refuses what nobody could do, or watch over, without a view of the
// processes. What ends tasks says itself what it could not see.
func sighted(verb string, f identity.Facts) error {
	if f.OS != "linux" || f.Procfs || verb == "down" || verb == "sweep" || verb == "rm" {
		return nil
	}
	return &tasks.Problem{Kind: tasks.ErrUnverified, Msg: "no procfs is mounted on /proc, so no process can be looked at, and hob " + verb + " does nothing",
		Tip: "mount -t proc proc /proc; hob doctor says what else is missing"}
}

// keepersTip is how tasks are stopped whose records hob cannot write: their keepers
// need none for that.
func (a *app) keepersTip() string {
	m, err := a.viewer("ps")
	if err != nil {
		return ""
	}
	keepers := m.Keepers()
	if len(keepers) == 0 {
		return ""
	}
	return "TERM to a task's keeper stops it all the same: kill " + strings.Trim(fmt.Sprint(keepers), "[]")
}

// viewer opens the state folder for a verb that only looks.
func (a *app) viewer(verb string) (*tasks.Manager, error) { return a.open(verb, tasks.ViewStore) }

func (a *app) open(verb string, open func(string) (*tasks.Store, error)) (*tasks.Manager, error) {
	home, err := tasks.HomeDir(a.home, a.getenv)
	if err != nil {
		return nil, err
	}
	store, err := open(home)
	if err != nil {
		return nil, err
	}
	host, err := identity.Local()
	if err != nil {
		return nil, err
	}
	self, err := program()
	if err != nil {
		return nil, fmt.Errorf("find the hob program, which each pane runs: %w", err)
	}
	if !slices.Contains(needsNone, verb) {
		a.folder = store
	}
	return &tasks.Manager{Store: store, Host: host, Self: self, Version: version, Verb: verb, Environ: a.env}, nil
}

// program is the path of this hob. Without a procfs Linux does not say, and a
// stop must not fail for that: then it is as the shell would find it.
func program() (string, error) {
	self, err := os.Executable()
	if err == nil {
		return self, nil
	}
	found, lookErr := exec.LookPath(os.Args[0])
	if lookErr != nil {
		return "", err
	}
	return filepath.Abs(found)
}

// configDir is where a person's own recipes and engines are.
func (a *app) configDir(name string) string {
	base := a.getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		home := a.getenv("HOME")
		if home == "" {
			return ""
		}
		base = filepath.Join(home, ".config")
	}
	return filepath.Join(base, "hob", name)
}

func (a *app) engineDir() string { return a.configDir("engines") }

func (a *app) recipeDirs() []string {
	if dir := a.configDir("recipes"); dir != "" {
		return []string{dir}
	}
	return nil
}

// say writes a line for people, unless --quiet.
func (a *app) say(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.out, format+"\n", args...)
	}
}
