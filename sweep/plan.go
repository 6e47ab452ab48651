package sweep

import (
	"slices"
	"sort"
	"syscall"
	"time"

	"hob/identity"
)

// Phase of a stop. The step numbers are the stop protocol's.
type Phase string

// The phases, in order. A stop of a command that has ended by itself skips PhaseAsk.
const (
	PhaseAsk    Phase = "ask"    // 3: the stop signal to the command
	PhaseLinger Phase = "linger" // before 4: survivors of a server whose command ended get the grace
	PhaseTerm   Phase = "term"   // 4: TERM to the rest, deepest first
	PhaseForce  Phase = "force"  // 5: KILL at discovery until three quiet rounds
	PhaseKeeper Phase = "keeper" // 5 to 6: the keeper ends by itself
	PhasePane   Phase = "pane"   // 6: the pane is killed
	PhaseEvict  Phase = "evict"  // 6: a keeper that does not end, its tree shown empty
	PhaseSweep  Phase = "sweep"  // 7: the whole host
	PhaseDone   Phase = "done"
)

// Bounds of the phases. They are upper limits of waits that end with the event
// they wait for.
const (
	afterCommand = 2 * time.Second        // without another exit, after the command's
	forceBound   = 5 * time.Second        // what lives after that is stuck
	keeperBound  = 5 * time.Second        // for the keeper to write its records and end
	evictBound   = 2 * time.Second        // after TERM to the keeper, and after KILL
	sweepBound   = 3 * time.Second        //
	askLook      = 500 * time.Millisecond // between re-captures in a grace
	forceLook    = 100 * time.Millisecond // between rounds while a KILL takes effect
	stirLook     = 5 * time.Millisecond   // between rounds while something goes on changing

	// quietRounds in a row, without a living process of ours, end a phase. With a
	// subreaper and lists of children one would do: a round counts only if nothing
	// moved, nothing could not be read and nobody who might fork was alive at its
	// begin. Where children are found in a listing, which is of no single moment, the
	// others are for what moved behind it (TestWhatMovesBehindTheListing).
	quietRounds = 3
)

// Seen is what the planner decides over.
type Seen struct {
	Phase    Phase
	Now      time.Time
	Since    time.Time // begin of the phase
	Looks    int       // in this phase, this one included
	Kind     Kind
	From     Step
	Policy   StopPolicy
	InKeeper bool

	Procs      []Proc    // the living members
	Unsaved    bool      // the disk does not have all of it
	CommandEnd time.Time // zero while the command lives, or when there is none
	LastEnd    time.Time // of any member
	Asked      time.Time // when the command had its stop signal; zero: never
	Told       bool      // somebody has been sent TERM in this phase
	Quiet      int       // rounds in a row that found no living process of ours
	Blind      bool      // something below us could not be read
	Empty      bool      // wait has said ECHILD to the keeper
	Keeper     KeeperSeen
}

// Proc is a living member as the planner sees it.
type Proc struct {
	PID     int
	Depth   int
	Command bool
	May     bool // evidence, verdict and rules permit a signal
	Stopped bool // by SIGSTOP or SIGTSTP
	Refused bool // the kernel refuses our signals to it
	Sent    []string
}

// KeeperSeen is the task's keeper as the planner sees it.
type KeeperSeen struct {
	Alive   bool
	Stopped bool
	Unknown bool // could not be verified
	Sent    []string
}

// Verb of an action.
type Verb string

// What a stop can do next.
const (
	Save   Verb = "save"   // write the capture, durably
	Send   Verb = "send"   // a signal, through the pin
	Keep   Verb = "keeper" // a signal to the keeper, through its pin
	Close  Verb = "close"  // the pane
	Wait   Verb = "wait"   // for an exit, at most until
	Enter  Verb = "enter"  // another phase
	Rounds Verb = "look"   // look again at once
)

// Action is one step that the planner wants done.
type Action struct {
	Do     Verb
	PID    int
	Signal syscall.Signal
	Until  time.Time
	Phase  Phase
}

// Plan decides what to do next. It is pure: all it knows is in s. Actions are
// done in order, then everything is looked at again. A Save before a Send has
// the signal in it: it is on disk before it is sent. A KILL at discovery, which
// cannot wait for a disk, is saved right after its round.
func Plan(s Seen) []Action {
	actions := plans[s.Phase](s)
	sends := slices.ContainsFunc(actions, func(a Action) bool { return a.Do == Send })
	leaves := slices.ContainsFunc(actions, func(a Action) bool { return a.Do == Enter })
	killing := s.Phase == PhaseForce || s.Phase == PhaseSweep
	if sends || s.Unsaved && (leaves || killing) {
		return append([]Action{{Do: Save}}, actions...)
	}
	return actions
}

var plans = map[Phase]func(Seen) []Action{
	PhaseAsk: planAsk, PhaseLinger: planLinger, PhaseTerm: planTerm, PhaseForce: planForce,
	PhaseKeeper: planKeeper, PhasePane: planPane, PhaseEvict: planEvict, PhaseSweep: planSweep,
}

// firstPhase is where a stop begins once the capture is on disk.
func firstPhase(kind Kind, from Step) Phase {
	switch {
	case from == StepAll:
		return PhaseAsk
	case kind == Shell:
		return PhaseKeeper
	case kind == Server:
		return PhaseLinger
	}
	return PhaseTerm
}

// planAsk gives the stop signal to the command, once in the life of the record
// (some engines leak their workers on a second one), and waits.
//
// A stop that was cut between the write and the signal has not asked, and the next one
// cannot tell: procfs shows a signal that is pending, not one that was taken. It waits
// all the same, what is left of the grace, and then goes on to force. Nearly every cut
// comes later, in the seconds of the grace and not in the moment between two system
// calls, and there a second signal does harm: uvicorn gives up its connections on it,
// vLLM its clean end, with what it holds on the GPU. Whoever was never asked loses its
// clean end at worst; it is ended, and nothing of it is left unnamed. A second write,
// that the signal was sent, would narrow the moment and not close it.
func planAsk(s Seen) []Action {
	cmd, lives := s.command()
	switch {
	case !s.anyLeft():
		return enter(PhaseForce)
	case lives && cmd.May && !cmd.Refused && s.Asked.IsZero():
		ask := []Action{{Do: Send, PID: cmd.PID, Signal: s.stopSignal()}}
		if rest := s.termAtOnce(); len(rest) > 0 {
			return append(append(enter(PhaseTerm), ask...), rest...)
		}
		return append(append(ask, s.resume()...), s.wait(s.Now.Add(s.Policy.Grace), askLook))
	case s.Asked.IsZero(), !s.Now.Before(s.askUntil()):
		return enter(PhaseTerm)
	}
	return append(s.resume(), s.wait(s.askUntil(), askLook))
}

// termAtOnce is step 4 right behind the stop signal, for a stop without any grace: no
// time passes between the two in which there could be something new to see. It is
// empty where there is a grace, or nobody but the command to tell.
func (s Seen) termAtOnce() []Action {
	if s.Policy.Grace > 0 {
		return nil
	}
	s.Asked, s.Since, s.Looks, s.Told = s.Now, s.Now, 1, false
	if rest := planTerm(s); rest[0].Do != Enter {
		return rest
	}
	return nil
}

// askUntil is when the grace ends: counted from the signal, also across a cut,
// but never longer from now than a whole grace (the clock may have moved).
func (s Seen) askUntil() time.Time {
	until := s.Asked.Add(s.Policy.Grace)
	if limit := s.Since.Add(s.Policy.Grace); until.After(limit) {
		until = limit
	}
	if s.CommandEnd.IsZero() {
		return until
	}
	quiet := latest(s.CommandEnd, s.LastEnd).Add(afterCommand)
	return earliest(until, quiet)
}

// planLinger lets the survivors of a server end by themselves.
func planLinger(s Seen) []Action {
	until := s.Since.Add(s.Policy.Grace)
	switch {
	case !s.anyLeft():
		return enter(PhaseForce)
	case !s.Now.Before(until):
		return enter(PhaseTerm)
	}
	return []Action{s.wait(until, askLook)}
}

// planTerm sends TERM to what is left, deepest first, each once; the command
// is excepted if it had its stop signal.
func planTerm(s Seen) []Action {
	var out []Action
	told := s.Told
	for _, p := range s.deepestFirst() {
		switch {
		case p.Command && !s.Asked.IsZero():
		case slices.Contains(p.Sent, "TERM"):
			told = true
		default:
			out = append(out, Action{Do: Send, PID: p.PID, Signal: syscall.SIGTERM})
			told = true
		}
	}
	until := s.Since.Add(s.Policy.TermGrace)
	over := s.Looks > 1 && !s.Now.Before(until)
	if over || !told || !s.anyLeft() {
		// Without anyone told only the command is left, which had its time.
		// One whose child was told may just be about to clean up after it.
		return enter(PhaseForce)
	}
	return append(append(out, s.resume()...), s.wait(until, askLook))
}

// planForce judges the rounds of walk and KILL. The signals themselves are sent
// at discovery, inside the walk.
func planForce(s Seen) []Action {
	switch {
	case s.Empty && !s.anyLeft(), s.Quiet >= quietRounds:
		return enter(PhaseKeeper)
	case !s.Now.Before(s.Since.Add(forceBound)):
		return enter(PhaseKeeper)
	case s.anyLeft():
		return []Action{s.wait(s.Since.Add(forceBound), forceLook)}
	}
	return s.again()
}

// again looks at once, but does not spin while something goes on changing.
func (s Seen) again() []Action {
	if s.Quiet == 0 && s.Looks > quietRounds {
		return []Action{s.wait(s.Now.Add(stirLook), stirLook)}
	}
	return []Action{{Do: Rounds}}
}

// planKeeper waits for the keeper to end by itself: it does when wait says
// ECHILD, so only where nothing is left below it.
func planKeeper(s Seen) []Action {
	k := s.Keeper
	switch {
	case s.InKeeper:
		return enter(PhaseSweep)
	case !k.Alive, len(s.Procs) > 0, s.Blind, !s.Now.Before(s.Since.Add(keeperBound)):
		return enter(PhasePane)
	case k.Stopped && !slices.Contains(k.Sent, "CONT"):
		return []Action{{Do: Keep, Signal: identity.SigCont}, s.wait(s.Since.Add(keeperBound), keeperBound)}
	}
	return []Action{s.wait(s.Since.Add(keeperBound), askLook)}
}

// planPane kills the pane, but not the pane of a keeper that could not be
// verified: that would hang up on a process that nobody has proven ours.
func planPane(s Seen) []Action {
	if s.Keeper.Unknown {
		return enter(PhaseSweep)
	}
	return append([]Action{{Do: Close}}, enter(PhaseEvict)...)
}

// planEvict ends a keeper that lives on with nothing below it: TERM, then KILL.
func planEvict(s Seen) []Action {
	k := s.Keeper
	if !k.Alive || len(s.Procs) > 0 || s.Blind {
		return enter(PhaseSweep)
	}
	over := func(n time.Duration) bool { return !s.Now.Before(s.Since.Add(n * evictBound)) }
	switch {
	case !slices.Contains(k.Sent, "TERM") && over(1):
		return []Action{{Do: Keep, Signal: syscall.SIGTERM}, s.wait(s.Since.Add(2*evictBound), evictBound)}
	case !slices.Contains(k.Sent, "KILL") && over(2):
		return []Action{{Do: Keep, Signal: syscall.SIGKILL}, s.wait(s.Since.Add(3*evictBound), evictBound)}
	case over(3):
		return enter(PhaseSweep)
	}
	return []Action{s.wait(s.Since.Add(3*evictBound), askLook)}
}

// planSweep judges the rounds over the whole host.
func planSweep(s Seen) []Action {
	switch {
	case s.Quiet >= quietRounds, !s.Now.Before(s.Since.Add(sweepBound)):
		return enter(PhaseDone)
	case s.anyLeft():
		return []Action{s.wait(s.Since.Add(sweepBound), forceLook)}
	}
	return s.again()
}

// command is the task's command, if it lives.
func (s Seen) command() (Proc, bool) {
	i := slices.IndexFunc(s.Procs, func(p Proc) bool { return p.Command })
	if i < 0 {
		return Proc{}, false
	}
	return s.Procs[i], true
}

// anyLeft reports whether anything lives that can still be stopped.
func (s Seen) anyLeft() bool {
	return slices.ContainsFunc(s.Procs, func(p Proc) bool { return p.May && !p.Refused })
}

// stopSignal is the recipe's; shells ignore TERM and get HUP in its place.
func (s Seen) stopSignal() syscall.Signal {
	if s.Kind == Shell && (s.Policy.Signal == 0 || s.Policy.Signal == syscall.SIGTERM) {
		return syscall.SIGHUP
	}
	if s.Policy.Signal == 0 {
		return syscall.SIGTERM
	}
	return s.Policy.Signal
}

// resume sends CONT to what is stopped: it cannot act on a signal otherwise.
func (s Seen) resume() []Action {
	var out []Action
	for _, p := range s.Procs {
		if p.May && p.Stopped && !p.Refused {
			out = append(out, Action{Do: Send, PID: p.PID, Signal: identity.SigCont})
		}
	}
	return out
}

func (s Seen) deepestFirst() []Proc {
	var out []Proc
	for _, p := range s.Procs {
		if p.May && !p.Refused {
			out = append(out, p)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Depth > out[j].Depth })
	return out
}

// wait is for an exit, until the phase is over or it is time to look again.
func (s Seen) wait(until time.Time, look time.Duration) Action {
	return Action{Do: Wait, Until: earliest(until, s.Now.Add(look))}
}

func enter(p Phase) []Action { return []Action{{Do: Enter, Phase: p}} }

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
