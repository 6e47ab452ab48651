package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The soak: ten hobs at once do what comes into their heads, on three state
// folders, while keepers, commands, tmux servers and hobs are killed, sockets
// deleted, records torn and a host is restarted. Now and then all rest, and then
// every process that lives must be accounted for: below its keeper, of a task
// whose state says so, or named in a report. At the end nothing may be left,
// every record must say how its task ended, and the strangers, one with the
// command line of each task, must live.
//
// The witness is none of hob's: the soak is a process of its own that adopts
// whatever loses its parent, so that nothing can get out of its sight.

const (
	soakInner  = "HOB_SOAK_INNER" // set in the soak's own process: the folder of the programs under test
	hobsAtOnce = 10
)

// soakSize is how many steps there are, and between how many of them all rest.
func soakSize() (steps, rest int) {
	if os.Getenv("HOB_SOAK") != "" {
		return 500, 50
	}
	return 90, 30
}

func TestSoak(t *testing.T) {
	if os.Getenv(soakInner) != "" {
		soakHere(t)
		return
	}
	t.Parallel()
	needRoot(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestSoak$", "-test.v", "-test.timeout=30m")
	cmd.Env = append(os.Environ(), soakInner+"="+hobs.dir)
	// Into a file: should this process end first, the soak tidies up all the same.
	out, err := os.CreateTemp("", "hobsoak")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	text, readErr := os.ReadFile(out.Name())
	if err = errors.Join(err, readErr); err != nil {
		t.Errorf("%v\n%s", err, text)
		return
	}
	t.Log(string(text))
}

// seed is HOB_SEED's, or a new one; it is told, to be used again.
func seed(t *testing.T) *rand.Rand {
	t.Helper()
	n := rand.Uint64()
	if text := os.Getenv("HOB_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("HOB_SEED=%d", n)
	return rand.New(rand.NewPCG(n, 0))
}

// soak is the whole of it.
type soak struct {
	t     *testing.T
	pots  []*pot
	birth sync.RWMutex // held for reading while a process is started, for writing while orphans are reaped
	mu    sync.Mutex   // of what follows
	mine  map[int]bool // processes that the test has started itself, and waits for
	named map[proc]string
	codes map[string]map[int]int
	tales []string // what was done, for a soak that has failed
	began time.Time
}

// pot is one state folder with its tmux server.
type pot struct {
	*kitchen
	name    string
	boot    string // file with the boot id that hobs here see; "" for the real one
	still   sync.RWMutex
	tearing sync.Mutex
	live    map[*exec.Cmd]bool // hobs that are at work here
}

const soakRecipes = `
name: tree
servers:
  s: {command: [sh, @K/soak.sh, @D, tree], ready: {log: up}, stop: {grace: 300ms, term_grace: 300ms}}
jobs:
  j: {command: [sh, @K/soak.sh, @D, good]}
---
name: mix
servers:
  late: {command: [sh, @K/soak.sh, @D, late], ready: {log: up}, stop: {grace: 200ms, term_grace: 200ms}}
  deaf: {command: [sh, @K/soak.sh, @D, deaf], ready: {log: up}, stop: {grace: 200ms, term_grace: 200ms}}
shells:
  sh: {command: [sh], stop: {grace: 200ms, term_grace: 200ms}}
layout:
  - {window: both, panes: [late, deaf]}
---
name: crash
servers:
  c: {command: [sh, @K/soak.sh, @D, crash], restart: {policy: always, max: 4, backoff: 100ms}, stop: {grace: 100ms, term_grace: 200ms}}
---
name: jobs
jobs:
  good: {command: [sh, @K/soak.sh, @D, good]}
  bad: {command: [sh, @K/soak.sh, @D, bad], stop: {grace: 100ms, term_grace: 200ms}}
  long: {command: [sh, @K/soak.sh, @D, long], stop: {grace: 200ms, term_grace: 200ms}}
---
name: net
servers:
  n: {engine: pilot, port: auto, stop: {grace: 2s, term_grace: 300ms}}
`

// soakKinds are the command lines that strangers share with tasks.
var soakKinds = []string{"tree", "late", "deaf", "crash", "good", "bad", "long"}

// recipesOf are the names of the recipes, each in a file of its name.
var recipesOf = []string{"tree", "mix", "crash", "jobs", "net"}

func soakHere(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	s := &soak{t: t, mine: map[int]bool{}, named: map[proc]string{}, codes: map[string]map[int]int{}, began: time.Now()}
	rnd := seed(t)
	s.open()
	stop := make(chan struct{})
	var reaper sync.WaitGroup
	reaper.Go(func() { s.adopt(stop) })
	t.Cleanup(func() { close(stop); reaper.Wait() })

	steps, rest := soakSize()
	if text := os.Getenv("HOB_SOAK_STEPS"); text != "" {
		steps, _ = strconv.Atoi(text)
	}
	plan := make([]step, steps)
	for i := range plan {
		plan[i] = s.choose(rnd, i)
	}
	for part := range slices.Chunk(plan, rest) {
		s.together(part)
		s.settled(fmt.Sprintf("after step %d", part[len(part)-1].n))
		if t.Failed() {
			break
		}
	}
	s.end()
	s.tell()
}

// open makes the pots, with a stranger for each command line.
func (s *soak) open() {
	for _, name := range []string{"first", "second", "reborn"} {
		p := &pot{kitchen: open(s.t), name: name, live: map[*exec.Cmd]bool{}}
		p.testdata("soak.sh")
		p.check(unix.Mkfifo(p.d()+"/never", 0o600))
		for i, text := range strings.Split(soakRecipes, "\n---\n") {
			p.recipe(text)
			p.check(os.Rename(p.path("hob.yaml"), p.path(recipesOf[i]+".yaml")))
		}
		for _, kind := range soakKinds {
			p.stranger("of kind "+kind+" in "+name, exec.Command("sh", p.path("soak.sh"), p.d(), kind))
		}
		for pid := range p.strange {
			s.mine[pid] = true
		}
		if name == "reborn" {
			p.boot = p.path("boot_id")
			p.newBoot()
		}
		s.pots = append(s.pots, p)
	}
}

// together has ten hobs at once work through the steps.
func (s *soak) together(steps []step) {
	todo := make(chan step)
	var wg sync.WaitGroup
	for range hobsAtOnce {
		wg.Go(func() {
			for st := range todo {
				st.act(s, st)
				s.readNames(st.pot)
			}
		})
	}
	for _, st := range steps {
		todo <- st
	}
	close(todo)
	wg.Wait()
}

// story notes what was done.
func (s *soak) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tales = append(s.tales, fmt.Sprintf("%6.2f ", time.Since(s.began).Seconds())+fmt.Sprintf(format, args...))
}

// tell shows what came of the verbs, and when something went wrong what was done.
func (s *soak) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var verbs []string
	for verb := range s.codes {
		verbs = append(verbs, verb)
	}
	slices.Sort(verbs)
	for _, verb := range verbs {
		s.t.Logf("%-12s exit codes %v", verb, s.codes[verb])
	}
	s.t.Logf("%d processes were named in reports; %s", len(s.named), time.Since(s.began).Round(time.Second))
	if s.t.Failed() || os.Getenv("HOB_SOAK_TALES") != "" {
		s.t.Log("\n" + strings.Join(s.tales, "\n"))
	}
}
