package pilot

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// options are how one pilot behaves. They travel to its children as JSON.
type options struct {
	Shape   string
	Host    string
	Port    int
	Model   string
	Context int    // tokens
	Text    string // file that the model is trained on; "": the text that hob carries

	Launcher     bool // the command only starts the server
	MuteLauncher bool
	Core         string
	Worker       string // title of a worker, with %d for its rank
	Lone         string
	Workers      int
	Extra        []string // titles of processes that only belong to the tree
	Retitle      bool

	LoadTime    time.Duration
	EarlyHealth bool
	LateListen  bool
	LateSignals bool
	SilentPort  bool
	ReadyLines  []string
	Routes      []string
	Also        []string
	KeyEnv      []string
	KeyFlags    []string
	ReusePort   bool

	AnswerTime       time.Duration
	BlockCompletions bool

	IgnoreHUP        bool
	IgnoreTERM       bool
	DetachWorkers    bool
	Outlive          bool
	OrphanLimit      time.Duration
	LeakOnSecondTERM bool
	Drain            time.Duration
	ShutdownTime     time.Duration
	TermCode         int
	TermLoadingCode  int
	Memory           int64

	Fail     string
	FailCode int

	key      string // that /v1 asks for, "" for none
	launched bool   // by a launcher, which asks for the end through standard input
}

// add defines the flags of serve.
func (o *options) add(f *pflag.FlagSet) {
	f.StringVar(&o.Shape, "shape", "pilot", "stand for the flags of an engine's shape; flags that are given win")
	f.StringVar(&o.Host, "host", "127.0.0.1", "address to listen on")
	f.IntVar(&o.Port, "port", 8000, "port to listen on")
	f.StringVar(&o.Model, "model", "pilot", "name under which the model is served")
	f.IntVar(&o.Context, "context", 2048, "longest prompt and answer together, in tokens")
	f.StringVar(&o.Text, "text", "", "train the model on this file: a passage a line, or a question and its answer with a tab between")
	o.addTree(f)
	o.addStart(f)
	o.addStop(f)
}

// addTree defines the flags that say which processes there are.
func (o *options) addTree(f *pflag.FlagSet) {
	f.BoolVar(&o.Launcher, "launcher", false, "the command only starts the server, as its child")
	f.BoolVar(&o.MuteLauncher, "mute-launcher", false, "the launcher passes nothing on, as a shell does that waits for its command: a signal ends it alone")
	f.StringVar(&o.Core, "core", "", "title of the engine core; \"\": the server is its own core")
	f.StringVar(&o.Worker, "worker", "", "title of a worker, %d for its rank; \"\": the core does its own work")
	f.StringVar(&o.Lone, "lone", "", "title of the worker when there is one only; none: then the core does its own work")
	f.IntVar(&o.Workers, "workers", 1, "number of workers, each of which holds its part of the model")
	f.StringArrayVar(&o.Extra, "extra", nil, "title of a process that only belongs to the tree")
	f.BoolVar(&o.Retitle, "retitle", false, "children overwrite their command line with their title, and their environment too unless SPT_NOENV is set")
	f.BoolVar(&o.DetachWorkers, "detach-workers", false, "workers are in kernel sessions of their own")
	f.Int64Var(&o.Memory, "memory", 0, "bytes that each worker holds besides the model")
	f.BoolVar(&o.launched, "launched", false, "standard input is a launcher's")
	_ = f.MarkHidden("launched")
}

// addStart defines the flags that say how it gets to answer, or does not.
func (o *options) addStart(f *pflag.FlagSet) {
	f.DurationVar(&o.LoadTime, "load-time", 0, "how long the model takes to load")
	f.BoolVar(&o.EarlyHealth, "early-health", false, "health answers 200 before the model is loaded, not 503")
	f.BoolVar(&o.LateListen, "late-listen", false, "listen only when the model is loaded")
	f.BoolVar(&o.LateSignals, "late-signals", false, "signals have their default action until the model is loaded")
	f.BoolVar(&o.SilentPort, "silent-port", false, "say that it is ready and never listen")
	f.BoolVar(&o.ReusePort, "reuse-port", false, "listen with SO_REUSEPORT")
	f.StringArrayVar(&o.ReadyLines, "ready-line", []string{"ready"}, "what is printed when the model is loaded")
	f.StringArrayVar(&o.KeyEnv, "key-env", nil, "variable with the key that /v1 asks for; without a value it asks for none")
	f.StringArrayVar(&o.KeyFlags, "key-flag", nil, "flag of the engine's own command line that has the key")
	f.StringArrayVar(&o.Routes, "route", nil, "one more path that answers as /health does")
	f.StringArrayVar(&o.Also, "also", nil, "the same, besides the shape's own")
	f.DurationVar(&o.AnswerTime, "answer-time", 0, "how long each answer takes")
	f.BoolVar(&o.BlockCompletions, "block-completions", false, "completions never answer, health does")
	f.StringVar(&o.Fail, "fail", "", "print this line half-way through loading and end")
	f.IntVar(&o.FailCode, "fail-code", 1, "exit code of --fail")
}

// addStop defines the flags that say how it ends, or does not.
func (o *options) addStop(f *pflag.FlagSet) {
	f.BoolVar(&o.IgnoreHUP, "ignore-hup", false, "core and workers ignore HUP")
	f.BoolVar(&o.IgnoreTERM, "ignore-term", false, "core and workers ignore TERM")
	f.BoolVar(&o.Outlive, "outlive", false, "workers live on when server or core end without asking them to end")
	f.DurationVar(&o.OrphanLimit, "orphan-limit", 10*time.Minute, "how long a worker outlives its server at most")
	f.BoolVar(&o.LeakOnSecondTERM, "leak-on-second-term", false, "a second TERM ends the server at once, workers unasked")
	f.DurationVar(&o.Drain, "drain", 0, "how long requests may go on after TERM")
	f.DurationVar(&o.ShutdownTime, "shutdown-time", 0, "how long the end takes besides")
	f.IntVar(&o.TermCode, "term-code", 0, "exit code after TERM")
	f.IntVar(&o.TermLoadingCode, "term-loading-code", 143, "exit code after TERM while loading")
}

// plainPath is a path that a route can be, or the root alone.
var plainPath = lazy(`^(/[A-Za-z0-9._-]+)+$|^/\{\$\}$`)

// noWorker is what Lone says of an engine whose core works itself.
const noWorker = "none"

// settle applies the shape to the flags that were not given and checks the rest.
func (o *options) settle(f *pflag.FlagSet, engineArgs []string) error {
	shape, ok := shapes[o.Shape]
	if !ok {
		return fmt.Errorf("--shape %s: there is no such shape; there are %s", o.Shape, listOfShapes())
	}
	named := f.Changed("worker")
	if err := shape.apply(f); err != nil {
		return fmt.Errorf("--shape %s: %w", o.Shape, err)
	}
	if n := parallelism(engineArgs); n > 0 && !f.Changed("workers") {
		o.Workers = n
	}
	if o.Lone != "" && o.Workers == 1 && !named {
		o.Worker = strings.TrimPrefix(o.Lone, noWorker)
	}
	o.key = keyOf(o.KeyEnv, o.KeyFlags, engineArgs)
	if o.Workers < 1 || o.Workers > 64 {
		return fmt.Errorf("--workers %d: from 1 to 64", o.Workers)
	}
	o.Routes = append(o.Routes, o.Also...)
	for _, path := range o.Routes {
		if !plainPath().MatchString(path) {
			return fmt.Errorf("--route %s: a path like /info", path)
		}
	}
	if o.Worker == "" {
		o.Workers = 1
	}
	return nil
}
