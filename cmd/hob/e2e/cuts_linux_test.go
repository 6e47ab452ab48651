package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"hob/identity"
	"hob/sweep"
	"hob/tasks"
)

// A cut kills hob, or the keeper, at one of its steps; the next invocation has to
// finish what was begun. Whatever the step: no process is left, no stranger is
// touched, no record is lost or torn, and no process is reported twice.

const stewRecipe = `
name: m
servers:
  stew:
    command: [sh, @K/stew.sh, @D]
    ready: {log: the stew is on, timeout: 1m}
    stop: {grace: 300ms, term_grace: 300ms}
`

// stew are the processes that the task consists of.
var stew = []string{"main", "child", "daemon", "deaf"}

// scene is something that hob or a keeper does, and is cut in.
type scene struct {
	name   string
	keeper bool // the keeper is cut, else hob
	up     bool // the task is up before
	loose  bool // the keeper may be killed before it has seen its tree
	act    func(k *kitchen, cut []string)
}

var scenes = []scene{
	{"up", false, false, false, func(k *kitchen, cut []string) { k.hobWith(cut, "up") }},
	{"down", false, true, false, func(k *kitchen, cut []string) { k.hobWith(cut, "down", "m") }},
	{"restart", false, true, false, func(k *kitchen, cut []string) { k.hobWith(cut, "restart", "m") }},
	{"keeper starts", true, false, true, func(k *kitchen, _ []string) { k.hob("up") }},
	{"keeper under down", true, true, false, func(k *kitchen, _ []string) { k.hob("down", "m") }},
	{"keeper at a hangup", true, true, false, func(k *kitchen, _ []string) { k.tmux("m", "kill-session", "-t", "=m"); k.keeperEnds() }},
	{"keeper after its command", true, true, false, func(k *kitchen, _ []string) {
		k.signal(k.pin("main").Ref(), syscall.SIGKILL)
		k.keeperEnds()
	}},
}

// cuttable is the hob that can be cut.
var cuttable = sync.OnceValues(func() (string, error) {
	path := filepath.Join(hobs.dir, "hobcut")
	return path, build(path, "hobcut")
})

// openCuttable is a kitchen whose hob can be cut.
func openCuttable(t *testing.T) *kitchen {
	t.Helper()
	bin, err := cuttable()
	if err != nil {
		t.Fatal(err)
	}
	k := open(t)
	k.bin = bin
	return k
}

// openStew is a kitchen with a stew, and strangers beside it.
func openStew(t *testing.T) *kitchen {
	t.Helper()
	k := openCuttable(t)
	k.testdata("stew.sh")
	k.check(unix.Mkfifo(k.d()+"/never", 0o600))
	k.recipe(stewRecipe)
	k.stranger("with the same command line", exec.Command("sh", k.path("stew.sh"), k.d()))
	return k
}

func (k *kitchen) hobWith(env []string, args ...string) result {
	k.t.Helper()
	cmd := k.command(args...)
	cmd.Env = append(slices.Clone(k.env), env...)
	return run(k.t, cmd)
}

// play does a scene; what it is told stands in the environment of the hob, or
// where the keeper looks for it.
func (k *kitchen) play(s scene, told string) {
	k.t.Helper()
	k.loose = s.loose
	if s.up {
		k.must("up")
		for _, name := range stew {
			k.pin(name)
		}
		k.captured(stew...)
		k.copyMarker()
	}
	if s.keeper {
		k.check(os.WriteFile(k.path("home.cut"), []byte(told), 0o600))
		s.act(k, nil)
		k.check(os.Remove(k.path("home.cut")))
		return
	}
	s.act(k, []string{"HOB_CUT=" + told})
}

// copyMarker starts a stranger with the run's marker in its environment.
func (k *kitchen) copyMarker() {
	cmd := exec.Command("sleep", "613")
	cmd.Env = append(slices.Clone(k.env), "HOB_RUN=m", "HOB_TASK=stew", "HOB_RUN_ID="+k.run("m").ID)
	k.stranger("with a copied marker", cmd)
}

// captured waits until the rolling capture has them.
func (k *kitchen) captured(names ...string) {
	k.t.Helper()
	k.until("the rolling capture to have all", func() bool {
		c, err := k.task("m/stew").ReadCapture()
		if errors.Is(err, tasks.ErrNoRecord) {
			return false // before its keeper's first look
		}
		k.check(err)
		return !slices.ContainsFunc(names, func(name string) bool {
			ref := k.pin(name).Ref()
			return !slices.ContainsFunc(c.Members, func(m sweep.Member) bool { return m.Ref.PID == ref.PID })
		})
	})
}

// keeperEnds waits for the end of the keeper.
func (k *kitchen) keeperEnds() {
	k.t.Helper()
	rec, err := k.task("m/stew").ReadKeeper()
	k.check(err)
	k.until("the keeper to end", func() bool {
		pin, _ := k.host.Verify(rec.Keeper)
		if pin != nil {
			pin.Close()
		}
		return pin == nil
	})
}

// passed are the points of a scene in order, each with the number of its turn:
// "wrote task.json#2".
func (k *kitchen) passed(s scene) []string {
	k.t.Helper()
	trace := k.path("trace")
	k.play(s, "trace="+trace)
	k.finish(false)
	text, err := os.ReadFile(trace)
	k.check(err)
	turn := map[string]int{}
	var points []string
	for name := range strings.Lines(string(text)) {
		name = strings.TrimSpace(name)
		turn[name]++
		points = append(points, fmt.Sprintf("%s#%d", name, turn[name]))
	}
	if len(points) < 10 {
		k.t.Fatalf("only %d points are passed: %q", len(points), points)
	}
	return points
}

// cutAt plays a scene that is cut, and has the next invocations finish it.
func cutAt(t *testing.T, s scene, point string, again bool) {
	k := openStew(t)
	k.play(s, "cut="+point)
	k.finish(again)
}

// finish is what a person does who finds that hob was killed: `up` again, or only
// `down`. Then all that must hold is checked.
func (k *kitchen) finish(again bool) {
	k.t.Helper()
	before := map[string]bool{}
	for name := range k.pins {
		before[name] = k.alive(name)
	}
	seen := map[proc]bool{}
	k.readReports(seen)
	if again {
		r := k.hob("up")
		if r.code == 4 && k.loose { // nothing is started over what could only be named
			k.readReports(seen)
			k.endNamed()
		}
		if r.code != 0 { // it saw the task up, whose keeper has just been killed, and says so
			k.must("up")
		}
		k.readReports(seen) // of a stop that it finished; that of the next one replaces it
	}
	r := k.hob("down", "--all")
	k.readReports(seen)
	if k.loose {
		k.endNamed()
		r = k.hob("down", "--all")
		k.loose = false
		k.readReports(seen)
	}
	if r.code != 0 {
		k.t.Errorf("hob down: %v", r)
	}
	k.settled(r)
	for name, lived := range before {
		if lived && !seen[procOf(k.pin(name).Ref())] {
			k.t.Errorf("%s (pid %d) is in no report", name, k.pin(name).Ref().PID)
		}
	}
}

// endNamed ends what only could be named, since its keeper was killed before it
// had been seen: it must be named, by the keeper's stamp, which no stranger bears.
func (k *kitchen) endNamed() {
	k.t.Helper()
	for _, p := range k.marked() {
		if k.strange[p.PID] || !k.looks[proc{p.PID, p.Start}] {
			continue
		}
		pin, err := k.host.Open(p.PID)
		k.check(err)
		k.check(pin.Signal(syscall.SIGKILL))
		k.until("a look-alike to end", func() bool { return pin.Verify().Verdict != identity.Owned })
		pin.Close()
	}
}

// proc is a process in a report.
type proc struct {
	pid   int
	start identity.Token
}

func procOf(r identity.Ref) proc { return proc{r.PID, r.Start} }

// settled checks that nothing is left, and that all records can be read.
func (k *kitchen) settled(r result) {
	k.t.Helper()
	for name, state := range k.states() {
		if !state.Settled() {
			k.t.Errorf("%s is %s after: %v", name, state, r)
		}
	}
	for name := range k.pins {
		if k.alive(name) {
			k.t.Errorf("%s lives", name)
		}
	}
}

// readReports reads every report that is in the state folder now, and adds the
// processes in them. Each is there once, and dead.
func (k *kitchen) readReports(seen map[proc]bool) {
	k.t.Helper()
	paths, err := filepath.Glob(k.path("home/*/*/tasks/*/report.json"))
	k.check(err)
	now := map[proc]int{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		k.check(err)
		var rep sweep.Report
		k.check(json.Unmarshal(text, &rep))
		named := 0
		for _, l := range rep.Lookalikes {
			if slices.Contains(l.Why, "stamp") {
				k.looks[proc{l.PID, l.Start}] = true
				named++
			}
		}
		if rep.Verdict != sweep.Clean && (!k.loose || named == 0) {
			k.t.Errorf("%s: %s", path, rep.Verdict)
		}
		for _, m := range rep.Members {
			now[proc{m.PID, m.Start}]++
			if !slices.Contains([]sweep.Fate{sweep.Exited, sweep.Terminated, sweep.Killed}, m.Fate) {
				k.t.Errorf("%s: member %+v", path, m)
			}
		}
	}
	for p, n := range now {
		seen[p] = true
		if n != 1 {
			k.t.Errorf("process %d is reported %d times", p.pid, n)
		}
	}
}

// TestEveryCut cuts each scene once at each of its points; in a soak, each time
// that it is passed.
func TestEveryCut(t *testing.T) {
	soak := os.Getenv("HOB_SOAK") != ""
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for i, point := range openStew(t).passed(s) {
				if !soak && !strings.HasSuffix(point, "#1") {
					continue
				}
				t.Run(point, func(t *testing.T) {
					t.Parallel()
					cutAt(t, s, point, i%2 == 0)
				})
			}
		})
	}
}

// TestRandomCuts cuts at random points, and then the hob that is to finish too,
// in half of the cases. HOB_SEED replays.
func TestRandomCuts(t *testing.T) {
	cuts := 40
	if os.Getenv("HOB_SOAK") != "" {
		cuts = 300
	}
	seed := rand.Uint64()
	if text := os.Getenv("HOB_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("HOB_SEED=%d", seed)
	points := make([][]string, len(scenes))
	t.Run("points", func(t *testing.T) {
		for i, s := range scenes {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				points[i] = openStew(t).passed(s)
			})
		}
	})
	rnd := rand.New(rand.NewPCG(seed, 0))
	pick := func(i int) string { return points[i][rnd.IntN(len(points[i]))] }
	for n := range cuts {
		i := rnd.IntN(len(scenes))
		first, again, verb, second := pick(i), rnd.IntN(2) == 0, rnd.IntN(4), ""
		if verb < 2 {
			second = pick(verb)
		}
		name := fmt.Sprintf("%d, %s at %s", n, scenes[i].name, first)
		if second != "" {
			name += ", then " + scenes[verb].name + " at " + second
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := openStew(t)
			k.play(scenes[i], "cut="+first)
			if second != "" {
				scenes[verb].act(k, []string{"HOB_CUT=cut=" + second})
			}
			k.finish(again)
		})
	}
}
