//go:build unix

package sweep_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hob/identity/sim"
	"hob/sweep"
)

// The real capture, stop and sweep run here against a simulated kernel, under
// schedules that rapid chooses: what the tree looks like, what happens between
// any two looks, where hob is cut off and started again. A failing schedule is
// printed, shrunk, and replayed by the flag that rapid names.
//
// HOB_SCHEDULES says how many to run, in place of 5,000 (500 with -short): 100,000
// and more for a soak.
func TestRandomSchedules(t *testing.T) { runSchedules(t, schedules(t), newScene, nil) }

// TestRandomFreezes runs a fifth as many in which the stop comes to force, in a cgroup
// that can be frozen, and much happens while it is.
func TestRandomFreezes(t *testing.T) { runSchedules(t, schedules(t)/5, icyScene, nil) }

func schedules(t *testing.T) int {
	t.Helper()
	text, set := os.LookupEnv("HOB_SCHEDULES")
	n, err := strconv.Atoi(text)
	switch {
	case set && err != nil:
		t.Fatalf("HOB_SCHEDULES: %v", err)
	case set:
		return n
	case testing.Short():
		return 500
	}
	return 5000
}

// runSchedules runs them in two halves side by side. A fault is planted between
// hob and the world.
func runSchedules(t *testing.T, n int, start func(sim.Source) *scene, fault func(*scene)) {
	old := flag.Lookup("rapid.checks").Value.String()
	if err := flag.Set("rapid.checks", strconv.Itoa((n+1)/2)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set("rapid.checks", old) })
	for half := range 2 {
		t.Run(fmt.Sprint("half", half), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { schedule(t, start, fault) })
		})
	}
}

// schedule runs one. The draws are made inside a generator of their own, which
// keeps rapid from logging each of some thousand.
func schedule(t *rapid.T, start func(sim.Source) *scene, fault func(*scene)) {
	gen := rapid.Custom(func(t *rapid.T) played { return playOn(start(sim.Drawn(t)), fault) })
	if p := gen.Draw(t, "schedule"); len(p.wrong) > 0 {
		t.Fatalf("%s", strings.Join(p.wrong, "\n"))
	}
}

// played is the outcome of a schedule. Printed, it is its trace.
type played struct {
	s     *scene
	wrong []string
}

func (p played) GoString() string { return p.String() }

func (p played) String() string {
	return fmt.Sprintf("%+v\n%s\nmembers: %s\nverdict %s, inspection %s, notes %q", p.s.o, strings.Join(p.s.w.Trace(), "\n"),
		p.s.members(), p.s.report.Verdict, p.s.report.Host.Inspection, p.s.report.Host.Notes)
}

func (s *scene) members() string {
	var b strings.Builder
	for _, m := range s.report.Members {
		fmt.Fprintf(&b, "\n  %d %s %v %v %s %s", m.PID, m.Start, m.Evidence, m.Signals, m.Fate, m.Note)
	}
	for _, l := range s.report.Lookalikes {
		fmt.Fprintf(&b, "\n  look-alike %d %s %v", l.PID, l.Start, l.Why)
	}
	return b.String()
}

// play runs a scene from its start to its last report.
func play(src sim.Source, fault func(*scene)) played { return playOn(newScene(src), fault) }

func playOn(s *scene, fault func(*scene)) played {
	src := s.src
	if fault != nil {
		fault(s)
	}
	s.watch, s.rolling = sweep.NewWatch(s.host), s.disk
	for range src.Intn(4) {
		s.w.Pass(time.Duration(src.Intn(50)) * time.Millisecond)
		s.observe()
	}
	s.watch.Close()
	s.watch = nil
	s.migrations()
	inKeeper := s.happening()
	s.hasty = true
	for range src.Intn(4) {
		s.w.CutAfter(src.Intn(sim.Pick(src, 100, 1000, 5000)))
		if s.stop(inKeeper) {
			inKeeper = false
		}
		s.between()
		inKeeper = inKeeper && s.keeper.Alive()
	}
	s.hasty = false
	s.w.CutAfter(-1)
	s.stop(inKeeper)
	wrong := s.check()
	if len(wrong) == 0 && s.report.Verdict == sweep.Clean && !s.leftSomebody() {
		wrong = s.again()
	}
	return played{s, wrong}
}

// leftSomebody reports whether the report spares anybody, or only names whom a
// later one may be able to prove. A sweep ends nobody in a shell, as a down does.
func (s *scene) leftSomebody() bool {
	if s.target.Kind == sweep.Shell && s.turns[len(s.turns)-1].what == "sweep" {
		return true
	}
	if slices.ContainsFunc(s.report.Lookalikes, func(l sweep.Lookalike) bool { return slices.Contains(l.Why, string(sweep.Cgroup)) }) {
		return true
	}
	return slices.ContainsFunc(s.report.Members, func(m sweep.ReportMember) bool { return m.Fate == sweep.Spared })
}

// again stops what has been stopped: that succeeds, and touches nobody.
func (s *scene) again() []string {
	was := len(s.w.Ledger().Deliveries)
	s.w.Calm()
	s.remake()
	s.run("down, again", sweep.Options{Reason: "down"}, false)
	var wrong []string
	s.checkSignals(func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) })
	if len(wrong) > 0 {
		return wrong
	}
	if s.report.Verdict != sweep.Clean && s.clear() || len(s.w.Ledger().Deliveries) != was {
		return []string{fmt.Sprintf("the second down says %s and has sent %d signals", s.report.Verdict, len(s.w.Ledger().Deliveries)-was)}
	}
	return nil
}

// owesThaw reports whether a hob that was cut off has left the cgroup frozen, and the
// disk says so.
func (s *scene) owesThaw() bool {
	if s.group == nil || s.disk.FrozenAt == nil {
		return false
	}
	on, byHob := s.group.Frozen()
	return on && byHob
}

// lateThaw reports whether an invocation has let that stand longer than it takes to
// verify what is on disk.
func (s *scene) lateThaw(freezes int, began time.Time) bool {
	until := began.Add(settled)
	all := s.w.Ledger().Freezes[freezes:]
	return s.clear() && s.w.Now().After(until) && !slices.ContainsFunc(all, func(f sim.Freeze) bool { return !f.On && !f.At.After(until) })
}

// observe is a round of the keeper's rolling capture.
func (s *scene) observe() {
	if !s.keeper.Alive() {
		return
	}
	was := s.w.Caller()
	s.w.CallFrom(s.keeper)
	defer s.w.CallFrom(was)
	look, prev := s.watch, s.rolling
	if look == nil {
		look, prev = sweep.NewWatch(s.host), s.disk
		defer look.Close()
	}
	c, changed, _ := look.Look(context.Background(), s.target, prev) // the error is what it could not see
	s.rolling = c
	if changed {
		s.keep(c)
	}
}

// happening is why the task comes to be stopped. It reports whether the keeper
// is the one that stops it.
func (s *scene) happening() (inKeeper bool) {
	switch s.src.Intn(8) {
	case 7:
		s.target.Stop.Spare = []string{"worker.py", "python3"}
	case 6:
		s.run("sweep of a living task", sweep.Options{Reason: "sweep"}, true)
	case 5:
		s.run("dry run", sweep.Options{Reason: "down", DryRun: true}, false)
	case 4:
		s.w.Kill(s.command, syscall.SIGKILL)
		s.force()
	case 3:
		s.force()
	case 2:
		s.w.Hangup(keeperTTY)
		return s.keeper.Alive()
	case 1:
		s.w.Kill(s.command, syscall.SIGKILL)
		return s.keeper.Alive()
	}
	return false
}

// force ends the keeper by SIGKILL, with which the inner terminal is closed too.
func (s *scene) force() {
	if s.keeper.Alive() {
		s.forced = true
		if s.src.Intn(3) == 2 { // a keeper that was stopped before saw nothing of this
			s.child(s.anyOfTree())
			s.w.Pass(time.Duration(s.src.Intn(30)) * time.Millisecond)
		}
		s.w.Kill(s.keeper, syscall.SIGKILL)
		for s.keeper.Alive() {
			s.w.Pass(time.Millisecond)
		}
		s.w.Hangup(innerTTY)
		s.w.NextNumber(s.keeper.PID())
		if s.src.Intn(3) == 2 {
			s.child(s.anyOfTree())
		}
	}
}

// between is what happens between two invocations.
func (s *scene) between() {
	s.w.Pass(time.Duration(s.src.Intn(100)) * time.Millisecond)
	switch s.src.Intn(12) {
	case 11:
		s.remake()
	case 10:
		s.intrude()
	case 9:
		s.reboot()
	case 8, 7:
		s.force()
	case 6:
		s.observe()
	case 5:
		s.child(s.anyOfTree())
	}
}

// reboot starts the machine again and fills the numbers with strangers, whose
// start ticks are those of the task's processes.
func (s *scene) reboot() {
	if s.src.Intn(4) != 3 {
		return
	}
	s.w.Reboot()
	for range 20 {
		s.stranger()
	}
}

// stop is one invocation of hob down, or of the keeper's own stop.
func (s *scene) stop(inKeeper bool) (cut bool) {
	if !inKeeper {
		return s.run(s.verb(), sweep.Options{Reason: "down"}, false)
	}
	was := s.w.Caller()
	s.w.CallFrom(s.keeper)
	s.keeper.EndsEmpty(false)
	defer s.keeper.EndsEmpty(true)
	o := sweep.Options{Reason: "hangup", InKeeper: true}
	if !s.command.Alive() {
		o.Reason, o.From = "exited", sweep.StepTerm
	}
	if s.run("keeper's stop", o, false) {
		s.forced = true
		s.w.Hangup(innerTTY)
		return true
	}
	s.w.CallFrom(was)
	if s.report.Verdict == sweep.Clean { // else it goes on watching what is left
		alone := !slices.ContainsFunc(s.keeper.Children(), func(p *sim.Process) bool { return p.Alive() && !s.leftAlone(p) })
		s.forced = s.forced || len(s.keeper.Children()) > 0
		s.left = alone && len(s.keeper.Children()) > 0
		s.keeper.Exit()
	}
	return false
}

// verb is what a person types: a task that has ended can be swept too.
func (s *scene) verb() string {
	if s.command.Alive() || s.keeper.Alive() || s.src.Intn(2) == 0 {
		return "down"
	}
	return "sweep"
}

// patience gives up after a while of the host's time, as Ctrl-C does, except in
// the last invocation.
func (s *scene) patience() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	if s.hasty && s.src.Intn(6) == 5 {
		s.w.At(time.Duration(s.src.Intn(2000))*time.Millisecond, cancel)
	}
	return ctx, cancel
}

// run is an invocation. living: a sweep of a living task.
func (s *scene) run(what string, o sweep.Options, living bool) (cut bool) {
	s.w.Note("invocation: %s", what)
	signals, freezes, frozen := len(s.w.Ledger().Deliveries), len(s.w.Ledger().Freezes), s.owesThaw()
	t := s.target
	t.Spared = append(slices.Clip(t.Spared), s.w.Caller().Ref())
	began := s.w.Now()
	defer func() {
		if r := recover(); r != nil {
			if _, endless := r.(sim.Endless); !endless {
				panic(r)
			}
			s.turns = append(s.turns, turn{what: what, cut: true, took: s.w.Now().Sub(began), endless: true})
		}
	}()
	ctx, cancel := s.patience()
	defer cancel()
	cut = s.w.Run(func() {
		if living || what == "sweep" {
			s.report, s.err = sweep.Sweep(ctx, s.host, t, s.disk, s, living, o)
		} else {
			s.report, s.err = sweep.Stop(ctx, s.host, t, s.disk, s, o)
		}
	})
	harmless := living || o.DryRun
	s.turns = append(s.turns, turn{what: what, cut: cut, pins: s.w.OpenPins(), took: s.w.Now().Sub(began),
		harmful: harmless && len(s.w.Ledger().Deliveries) > signals, idle: frozen && !harmless && s.lateThaw(freezes, began)})
	s.ended = s.w.Now()
	return cut
}
