package sweep

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"hob/identity"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at is a time n seconds after noon.
func at(n float64) time.Time { return noon.Add(time.Duration(n * float64(time.Second))) }

// show writes a plan down as one line.
func show(actions []Action) string {
	var out []string
	for _, a := range actions {
		switch a.Do {
		case Send:
			out = append(out, fmt.Sprintf("%s %d", identity.SignalName(a.Signal), a.PID))
		case Keep:
			out = append(out, fmt.Sprintf("%s keeper", identity.SignalName(a.Signal)))
		case Wait:
			out = append(out, fmt.Sprintf("wait %.1f", a.Until.Sub(noon).Seconds()))
		case Enter:
			out = append(out, "-> "+string(a.Phase))
		default:
			out = append(out, string(a.Do))
		}
	}
	return strings.Join(out, "; ")
}

func TestPlan(t *testing.T) {
	policy := StopPolicy{Signal: syscall.SIGTERM, Grace: 10 * time.Second, TermGrace: 3 * time.Second}
	hasty := StopPolicy{Signal: syscall.SIGTERM, TermGrace: 3 * time.Second}
	with := func(sig syscall.Signal) StopPolicy { p := policy; p.Signal = sig; return p }
	cmd := Proc{PID: 20, Depth: 0, Command: true, May: true}
	kid := Proc{PID: 21, Depth: 1, May: true}
	deep := Proc{PID: 22, Depth: 2, May: true}
	stopped := Proc{PID: 23, Depth: 1, May: true, Stopped: true}
	spared := Proc{PID: 24, Depth: 1}
	refused := Proc{PID: 25, Depth: 1, May: true, Refused: true}
	told := Proc{PID: 26, Depth: 1, May: true, Sent: []string{"TERM"}}
	keeper := KeeperSeen{Alive: true}
	procs := func(p ...Proc) []Proc { return p }

	table := []struct {
		rule string
		seen Seen
		want string
	}{
		// 3: ask
		{"the stop signal goes to the command alone, and is on disk first",
			Seen{Phase: PhaseAsk, Now: at(0), Since: at(0), Procs: procs(cmd, kid)}, "save; TERM 20; wait 0.5"},
		{"the recipe's signal",
			Seen{Phase: PhaseAsk, Now: at(0), Since: at(0), Policy: with(syscall.SIGINT), Procs: procs(cmd)}, "save; INT 20; wait 0.5"},
		{"shells ignore TERM and get HUP",
			Seen{Phase: PhaseAsk, Kind: Shell, Now: at(0), Since: at(0), Procs: procs(cmd)}, "save; HUP 20; wait 0.5"},
		{"unless the recipe says otherwise",
			Seen{Phase: PhaseAsk, Kind: Shell, Now: at(0), Since: at(0), Policy: with(syscall.SIGINT), Procs: procs(cmd)}, "save; INT 20; wait 0.5"},
		{"what is stopped cannot act on a signal: CONT",
			Seen{Phase: PhaseAsk, Now: at(0), Since: at(0), Procs: procs(cmd, stopped)}, "save; TERM 20; CONT 23; wait 0.5"},
		{"without any grace the rest is told right behind it, deepest first, in the phase of that",
			Seen{Phase: PhaseAsk, Now: at(0), Since: at(-1), Policy: hasty, Procs: procs(cmd, kid, deep, spared, stopped)},
			"save; -> term; TERM 20; TERM 22; TERM 21; TERM 23; CONT 23; wait 0.5"},
		{"the recipe's signal then too",
			Seen{Phase: PhaseAsk, Now: at(0), Since: at(0), Policy: StopPolicy{Signal: syscall.SIGINT, TermGrace: 3 * time.Second}, Procs: procs(cmd, kid)},
			"save; -> term; INT 20; TERM 21; wait 0.5"},
		{"but a command that is alone is asked first",
			Seen{Phase: PhaseAsk, Now: at(0), Since: at(0), Policy: hasty, Procs: procs(cmd, spared)}, "save; TERM 20; wait 0.0"},
		{"asked once, also across a cut",
			Seen{Phase: PhaseAsk, Now: at(4), Since: at(4), Asked: at(0), Procs: procs(cmd)}, "wait 4.5"},
		{"new members go to disk at the next write",
			Seen{Phase: PhaseAsk, Now: at(4), Since: at(0), Asked: at(0), Unsaved: true, Procs: procs(cmd, kid)}, "wait 4.5"},
		{"grace counts from the signal, also across a cut",
			Seen{Phase: PhaseAsk, Now: at(10), Since: at(7), Asked: at(0), Procs: procs(cmd)}, "-> term"},
		{"a clock that went back does not prolong it",
			Seen{Phase: PhaseAsk, Now: at(10), Since: at(0), Asked: at(500), Procs: procs(cmd)}, "-> term"},
		{"two seconds after the command's exit",
			Seen{Phase: PhaseAsk, Now: at(3), Since: at(0), Asked: at(0), CommandEnd: at(1), LastEnd: at(1), Procs: procs(kid)}, "-> term"},
		{"unless others go on ending",
			Seen{Phase: PhaseAsk, Now: at(3), Since: at(0), Asked: at(0), CommandEnd: at(1), LastEnd: at(2.8), Procs: procs(kid)}, "wait 3.5"},
		{"the last wait ends with the grace",
			Seen{Phase: PhaseAsk, Now: at(9.8), Since: at(0), Asked: at(0), Procs: procs(cmd)}, "wait 10.0"},
		{"everything has ended",
			Seen{Phase: PhaseAsk, Now: at(1), Since: at(0), Asked: at(0), CommandEnd: at(1), LastEnd: at(1)}, "-> force"},
		{"a command that was gone before cannot be asked",
			Seen{Phase: PhaseAsk, Now: at(0), Since: at(0), CommandEnd: at(-3), Procs: procs(kid)}, "-> term"},
		{"a command that may not be signalled is not asked",
			Seen{Phase: PhaseAsk, Now: at(0), Since: at(0), Procs: procs(Proc{PID: 20, Command: true}, kid)}, "-> term"},
		{"one that refuses is not asked again and again",
			Seen{Phase: PhaseAsk, Now: at(0), Since: at(0), Procs: procs(Proc{PID: 20, Command: true, May: true, Refused: true}, kid)}, "-> term"},
		{"leaving saves what is new",
			Seen{Phase: PhaseAsk, Now: at(10), Since: at(0), Asked: at(0), Unsaved: true, Procs: procs(cmd)}, "save; -> term"},
		{"no grace",
			Seen{Phase: PhaseAsk, Now: at(0), Since: at(0), Asked: at(0), Policy: StopPolicy{Signal: syscall.SIGTERM, TermGrace: 1}, Procs: procs(cmd)}, "-> term"},

		// before 4: the command of a server has ended by itself
		{"survivors of a server get the grace, without a signal",
			Seen{Phase: PhaseLinger, Now: at(0), Since: at(0), Procs: procs(kid, deep)}, "wait 0.5"},
		{"then TERM", Seen{Phase: PhaseLinger, Now: at(10), Since: at(0), Procs: procs(kid)}, "-> term"},
		{"if they end, at once", Seen{Phase: PhaseLinger, Now: at(1), Since: at(0)}, "-> force"},

		// 4: term
		{"deepest first",
			Seen{Phase: PhaseTerm, Looks: 1, Now: at(0), Since: at(0), Procs: procs(kid, deep)}, "save; TERM 22; TERM 21; wait 0.5"},
		{"the command is excepted if it had its stop signal",
			Seen{Phase: PhaseTerm, Looks: 1, Now: at(0), Since: at(0), Asked: at(-9), Procs: procs(cmd, kid)}, "save; TERM 21; wait 0.5"},
		{"a command that was never asked is not",
			Seen{Phase: PhaseTerm, Looks: 1, Now: at(0), Since: at(0), Procs: procs(cmd, kid)}, "save; TERM 21; TERM 20; wait 0.5"},
		{"with only the command left there is nothing to wait for",
			Seen{Phase: PhaseTerm, Looks: 1, Now: at(0), Since: at(0), Asked: at(-9), Procs: procs(cmd)}, "-> force"},
		{"a command whose child was told gets the time to clean up",
			Seen{Phase: PhaseTerm, Looks: 2, Now: at(1), Since: at(0), Asked: at(-9), Told: true, Procs: procs(cmd)}, "wait 1.5"},
		{"when all who were told have ended, their time is over",
			Seen{Phase: PhaseTerm, Looks: 2, Now: at(1), Since: at(0), Asked: at(-9), Told: true}, "-> force"},
		{"each once",
			Seen{Phase: PhaseTerm, Looks: 2, Now: at(1), Since: at(0), Procs: procs(told)}, "wait 1.5"},
		{"a newcomer is told too",
			Seen{Phase: PhaseTerm, Looks: 2, Now: at(1), Since: at(0), Unsaved: true, Procs: procs(told, deep)}, "save; TERM 22; wait 1.5"},
		{"stopped ones are told and resumed",
			Seen{Phase: PhaseTerm, Looks: 1, Now: at(0), Since: at(0), Procs: procs(stopped)}, "save; TERM 23; CONT 23; wait 0.5"},
		{"what is spared or refuses is not",
			Seen{Phase: PhaseTerm, Looks: 1, Now: at(0), Since: at(0), Procs: procs(spared, refused)}, "-> force"},
		{"term_grace is over",
			Seen{Phase: PhaseTerm, Looks: 9, Now: at(3), Since: at(0), Procs: procs(told)}, "-> force"},
		{"over also for one that forks for ever",
			Seen{Phase: PhaseTerm, Looks: 9, Now: at(3), Since: at(0), Procs: procs(told, kid)}, "-> force"},
		{"without a term_grace everybody is still told",
			Seen{Phase: PhaseTerm, Looks: 1, Now: at(0), Since: at(0), Policy: StopPolicy{Grace: 1}, Procs: procs(kid)}, "save; TERM 21; wait 0.0"},

		// 5: force
		{"one empty round is not enough", Seen{Phase: PhaseForce, Now: at(0), Since: at(0), Quiet: 1}, "look"},
		{"what goes on changing is looked at again, without spinning", Seen{Phase: PhaseForce, Looks: 9, Now: at(0), Since: at(0)}, "wait 0.0"},
		{"three are", Seen{Phase: PhaseForce, Now: at(0), Since: at(0), Quiet: 3}, "-> keeper"},
		{"ECHILD is proof", Seen{Phase: PhaseForce, Now: at(0), Since: at(0), Quiet: 1, Empty: true}, "-> keeper"},
		{"but not for members in other pid namespaces",
			Seen{Phase: PhaseForce, Now: at(0), Since: at(0), Empty: true, Procs: procs(kid)}, "wait 0.1"},
		{"what was killed is waited for", Seen{Phase: PhaseForce, Now: at(1), Since: at(0), Procs: procs(kid)}, "wait 1.1"},
		{"and written down after the round", Seen{Phase: PhaseForce, Now: at(1), Since: at(0), Unsaved: true, Procs: procs(kid)}, "save; wait 1.1"},
		{"what lives after five seconds is stuck", Seen{Phase: PhaseForce, Now: at(5), Since: at(0), Procs: procs(kid)}, "-> keeper"},
		{"what refuses is not waited for", Seen{Phase: PhaseForce, Now: at(0), Since: at(0), Quiet: 3, Procs: procs(refused)}, "-> keeper"},

		// 5 to 6: the keeper
		{"the keeper ends by itself", Seen{Phase: PhaseKeeper, Now: at(0), Since: at(0), Keeper: keeper}, "wait 0.5"},
		{"a stopped one is resumed", Seen{Phase: PhaseKeeper, Now: at(0), Since: at(0), Keeper: KeeperSeen{Alive: true, Stopped: true}}, "CONT keeper; wait 5.0"},
		{"once", Seen{Phase: PhaseKeeper, Now: at(1), Since: at(0), Keeper: KeeperSeen{Alive: true, Stopped: true, Sent: []string{"CONT"}}}, "wait 1.5"},
		{"it has ended", Seen{Phase: PhaseKeeper, Now: at(0), Since: at(0)}, "-> pane"},
		{"not for ever", Seen{Phase: PhaseKeeper, Now: at(5), Since: at(0), Keeper: keeper}, "-> pane"},
		{"it stays while something is below it", Seen{Phase: PhaseKeeper, Now: at(0), Since: at(0), Keeper: keeper, Procs: procs(spared)}, "-> pane"},
		{"or may be", Seen{Phase: PhaseKeeper, Now: at(0), Since: at(0), Keeper: keeper, Blind: true}, "-> pane"},
		{"the keeper itself does not wait for itself", Seen{Phase: PhaseKeeper, Now: at(0), Since: at(0), Keeper: keeper, InKeeper: true}, "-> sweep"},

		// 6: pane
		{"the pane is killed", Seen{Phase: PhasePane, Now: at(0), Since: at(0)}, "close; -> evict"},
		{"not that of a keeper that nobody could verify", Seen{Phase: PhasePane, Now: at(0), Since: at(0), Keeper: KeeperSeen{Unknown: true}}, "-> sweep"},
		{"the keeper has ended", Seen{Phase: PhaseEvict, Now: at(0), Since: at(0)}, "-> sweep"},
		{"never signalled while something is below it", Seen{Phase: PhaseEvict, Now: at(9), Since: at(0), Keeper: keeper, Procs: procs(spared)}, "-> sweep"},
		{"nor when that cannot be told", Seen{Phase: PhaseEvict, Now: at(9), Since: at(0), Keeper: keeper, Blind: true}, "-> sweep"},
		{"hung up on, it gets a moment", Seen{Phase: PhaseEvict, Now: at(0), Since: at(0), Keeper: keeper}, "wait 0.5"},
		{"then TERM", Seen{Phase: PhaseEvict, Now: at(2), Since: at(0), Keeper: keeper}, "TERM keeper; wait 4.0"},
		{"then KILL", Seen{Phase: PhaseEvict, Now: at(4), Since: at(0), Keeper: KeeperSeen{Alive: true, Sent: []string{"TERM"}}}, "KILL keeper; wait 6.0"},
		{"then it is stuck", Seen{Phase: PhaseEvict, Now: at(6), Since: at(0), Keeper: KeeperSeen{Alive: true, Sent: []string{"TERM", "KILL"}}}, "-> sweep"},

		// 7: sweep
		{"the host is quiet", Seen{Phase: PhaseSweep, Now: at(0), Since: at(0), Quiet: 3}, "-> done"},
		{"not yet", Seen{Phase: PhaseSweep, Now: at(0), Since: at(0), Quiet: 2}, "look"},
		{"what was killed is waited for here too", Seen{Phase: PhaseSweep, Now: at(0), Since: at(0), Procs: procs(kid)}, "wait 0.1"},
		{"three seconds", Seen{Phase: PhaseSweep, Now: at(3), Since: at(0), Procs: procs(kid)}, "-> done"},
		{"the last state is saved", Seen{Phase: PhaseSweep, Now: at(0), Since: at(0), Quiet: 3, Unsaved: true}, "save; -> done"},
	}
	for _, row := range table {
		if p := row.seen.Policy; p.Signal == 0 && p.Grace == 0 && p.TermGrace == 0 {
			row.seen.Policy = policy
		}
		if got := show(Plan(row.seen)); got != row.want {
			t.Errorf("%s (%s):\n  got  %s\n  want %s", row.rule, row.seen.Phase, got, row.want)
		}
	}
}

func TestFirstPhase(t *testing.T) {
	table := []struct {
		kind Kind
		from Step
		want Phase
	}{
		{Server, StepAll, PhaseAsk}, {Job, StepAll, PhaseAsk}, {Shell, StepAll, PhaseAsk},
		{Server, StepTerm, PhaseLinger}, {Job, StepTerm, PhaseTerm}, {Shell, StepTerm, PhaseKeeper},
	}
	for _, row := range table {
		if got := firstPhase(row.kind, row.from); got != row.want {
			t.Errorf("%s from %d: %s, want %s", row.kind, row.from, got, row.want)
		}
	}
}

func TestQuietAfter(t *testing.T) {
	table := []struct {
		name                  string
		quiet                 int
		phase                 Phase
		left, moved, anything bool
		want                  int
	}{
		{"nothing found", 1, PhaseForce, false, false, true, 2},
		{"one of ours lives", 2, PhaseForce, true, false, true, 0},
		{"something moved while we looked", 2, PhaseForce, false, true, true, 0},
		{"the host has nothing to look from", 0, PhaseSweep, false, false, false, quietRounds},
		{"spared ones are left to look from", 0, PhaseSweep, false, false, true, 1},
		{"in the force phase three rounds are three", 0, PhaseForce, false, false, false, 1},
	}
	for _, row := range table {
		if got := quietAfter(row.quiet, row.phase, row.left, row.moved, row.anything); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

// TestVetoOf: one alone that may not be signalled stands in the way of a freeze; one that
// has ended since it was listed does not.
func TestVetoOf(t *testing.T) {
	mine, ended, other := occupant{pid: 5, may: true}, occupant{pid: 6, gone: true}, occupant{pid: 7}
	for _, c := range []struct {
		in   []occupant
		veto bool
	}{
		{nil, false}, {[]occupant{mine}, false}, {[]occupant{mine, ended}, false}, {[]occupant{ended}, false},
		{[]occupant{mine, other}, true}, {[]occupant{other, mine}, true}, {[]occupant{mine, ended, other}, true},
	} {
		if err := vetoOf(c.in); errors.Is(err, errVeto) != c.veto || (err != nil) != c.veto {
			t.Errorf("%+v: %v", c.in, err)
		}
	}
}
