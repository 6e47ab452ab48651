package e2e

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hob/sweep"
)

// races are servers whose children race with the stop, by the name of the file
// in which they count those that are born.
var races = map[string]string{
	"respawner": "respawner", "burst": "burst", "chain20": "chain, 20", "chain1": "chain, 1",
	"setsid-chain20": "setsid-chain, 20", "setsid-chain1": "setsid-chain, 1",
}

// racer is the program that they are.
var racer = sync.OnceValues(func() (string, error) {
	path := filepath.Join(hobs.dir, "races")
	out, err := exec.Command("gcc", "-O1", "-Wall", "-o", path, "testdata/races.c").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return path, err
})

func openRaces(t *testing.T) *kitchen {
	t.Helper()
	path, err := racer()
	if err != nil {
		t.Fatal(err)
	}
	k := open(t)
	var b strings.Builder
	b.WriteString("name: m\nservers:\n")
	for name, args := range races {
		fmt.Fprintf(&b, "  %s:\n    command: [%s, @D, %s]\n", name, path, args)
		b.WriteString("    ready: {log: ready, timeout: 1m}\n    stop: {grace: 200ms, term_grace: 100ms}\n")
	}
	k.recipe(b.String())
	return k
}

// born is how many processes of a race have been born.
func (k *kitchen) born(race string) uint64 {
	k.t.Helper()
	data, err := os.ReadFile(filepath.Join(k.d(), race))
	k.check(err)
	return binary.NativeEndian.Uint64(data)
}

// goOn are the races that go on. Where the kitchen's cgroup shows that nobody is left
// nothing can; else they are given time for many generations.
func (k *kitchen) goOn() []string {
	k.t.Helper()
	before := map[string]uint64{}
	for race := range races {
		before[race] = k.born(race)
	}
	for deadline := time.Now().Add(500 * time.Millisecond); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if somebody, err := k.pen.Populated(); k.pen != nil && err == nil && !somebody {
			break
		}
	}
	var list []string
	for race, n := range before {
		if k.born(race) != n {
			list = append(list, race)
		}
	}
	return list
}

// still checks that no process is born any more, and none lives.
func (k *kitchen) still() {
	k.t.Helper()
	for _, p := range k.marked() {
		k.t.Errorf("alive: %s", line(p))
	}
	if on := k.goOn(); len(on) > 0 {
		k.t.Errorf("these go on after the stop: %q", on)
	}
}

// TestRaces stops each race ten times: by the walk below the subreaper alone, and
// with a cgroup as well.
func TestRaces(t *testing.T) {
	for _, name := range []string{"walk, one half", "walk, other half", "cgroup, one half", "cgroup, other half"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := openRaces(t)
			if strings.HasPrefix(name, "walk") && !k.makeBare() && k.cgroups() {
				return
			}
			for range 5 {
				k.must("up")
				k.endsAllRaces()
			}
		})
	}
}

// endsAllRaces stops them, and checks that nothing goes on.
func (k *kitchen) endsAllRaces() {
	k.t.Helper()
	for _, rep := range k.reports(k.must("down", "--json", "m")) {
		if rep.Verdict != sweep.Clean || len(rep.Lookalikes) > 0 {
			k.t.Errorf("%s: %s, look-alikes %v, %v", rep.Task, rep.Verdict, rep.Lookalikes, rep.Host.Notes)
		}
	}
	k.still()
}

// TestRacesByCgroup kills the keepers first, ten times: there is nothing but the
// cgroup that holds the chains together.
func TestRacesByCgroup(t *testing.T) {
	for _, half := range []string{"one", "other"} {
		t.Run(half, func(t *testing.T) {
			t.Parallel()
			k := openRaces(t)
			if !k.cgroups() {
				return
			}
			for range 5 {
				k.must("up")
				k.killKeepers()
				k.endsAllRaces()
			}
		})
	}
}

func (k *kitchen) killKeepers() {
	k.t.Helper()
	for race := range races {
		rec, err := k.task("m/" + race).ReadKeeper()
		k.check(err)
		k.signal(rec.Keeper, syscall.SIGKILL)
	}
}

// TestRacesWithoutAKeeper kills the keepers first, and there is no cgroup. Then no
// subreaper holds the chains together, and a link lives shorter than a look at the
// host takes: what hob can still prove, it ends, and what goes on it names, or says
// that it could not tell. It calls nothing clean that goes on.
func TestRacesWithoutAKeeper(t *testing.T) {
	t.Parallel()
	k := openRaces(t)
	if !k.makeBare() && k.cgroups() {
		return
	}
	k.must("up")
	k.killKeepers()
	down := k.hob("down", "m")
	unsure := 0
	on := k.goOn()
	for race := range races {
		rep, ok := k.report("m/" + race)
		if !ok || !strings.Contains(strings.Join(rep.Host.Notes, " "), "ended by another hand") {
			t.Errorf("%s: the report does not say that the keeper was killed: %v", race, rep.Host.Notes)
		}
		goesOn := slices.Contains(on, race)
		t.Logf("%s: goes on %t, %s, look-alikes named: %d", race, goesOn, rep.Verdict, len(rep.Lookalikes))
		if goesOn && (!strings.Contains(race, "chain") || rep.Verdict == sweep.Clean) {
			t.Errorf("%s goes on, and the verdict is %s", race, rep.Verdict)
		}
		if rep.Verdict == sweep.Unverified {
			unsure++
		}
		k.endRace(race)
	}
	if want := map[bool]int{true: 4}[unsure > 0]; down.code != want {
		t.Errorf("%d are unverified: %v", unsure, down)
	}
	k.until("all to end", func() bool { return len(k.marked()) == 0 })
	k.must("down", "m")
}

// endRace has a race end itself.
func (k *kitchen) endRace(race string) {
	k.t.Helper()
	f, err := os.OpenFile(filepath.Join(k.d(), race), os.O_WRONLY, 0)
	k.check(err)
	defer f.Close()
	_, err = f.Write(binary.NativeEndian.AppendUint64(nil, 1<<62))
	k.check(err)
}
