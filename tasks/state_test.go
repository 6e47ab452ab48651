package tasks

import (
	"errors"
	"testing"
	"time"

	"hob/identity"
	"hob/sweep"
)

func TestDerive(t *testing.T) {
	owned := identity.Finding{Verdict: identity.Owned, Row: "11"}
	gone := identity.Finding{Verdict: identity.Gone, Row: "5"}
	foreign := identity.Finding{Verdict: identity.Foreign, Row: "9"}
	reboot := identity.Finding{Verdict: identity.Gone, Row: "3"}
	blind := identity.Finding{Verdict: identity.Unverifiable, Row: "2", Reason: "our boot id cannot be read"}
	zero, seven, when := 0, 7, time.Now()
	claim := func(s State) *Task { return &Task{State: s, Kind: sweep.Server} }
	hooked := func(s State) *Task { return &Task{State: s, Kind: sweep.Server, AfterStop: &time.Time{}} }
	job := func(s State) *Task { return &Task{State: s, Kind: sweep.Job} }
	adopted := func(s State) *Task { return &Task{State: s, Kind: sweep.Server, Adopted: &Adoption{}} }
	ok, bad, killed := &Exit{Code: &zero}, &Exit{Code: &seven}, &Exit{Signal: "KILL"}
	done := &Keeper{Empty: true}

	tests := []struct {
		name string
		seen Seen
		want State
		note string
	}{
		{"no record", Seen{}, Stopped, "never started"},
		{"a torn record", Seen{Trouble: errors.New("task.json is torn")}, Unverified, "task.json is torn"},
		{"a torn record outranks living processes", Seen{Trouble: errors.New("x"), Task: claim(Up), KeeperV: owned, Command: owned}, Unverified, "x"},

		{"up, no probe yet", Seen{Task: claim(Up), Keeper: &Keeper{}, KeeperV: owned, Command: owned}, Up, ""},
		{"up and ready", Seen{Task: claim(Up), Keeper: &Keeper{Ready: true, WasReady: true}, KeeperV: owned, Command: owned}, Ready, ""},
		{"a job offers nothing", Seen{Task: job(Up), Keeper: &Keeper{Ready: true, WasReady: true}, KeeperV: owned, Command: owned}, Up, ""},
		{"was ready, answers no more", Seen{Task: claim(Up), Keeper: &Keeper{WasReady: true, ReadyNote: "503"}, KeeperV: owned, Command: owned}, Unready, "503"},
		{"deadline passed", Seen{Task: claim(Up), Keeper: &Keeper{DeadlineHit: true, ReadyNote: "held by 7"}, KeeperV: owned, Command: owned}, Unready, "held by 7"},
		{"ready is nothing without a command", Seen{Task: claim(Up), Keeper: &Keeper{Ready: true}, KeeperV: owned, Command: gone}, Starting, ""},
		{"between restarts", Seen{Task: claim(Up), Keeper: &Keeper{Restarts: 2}, KeeperV: owned}, Starting, "restart 2"},
		{"it has ended, and will be started again", Seen{Task: claim(Up), Keeper: &Keeper{ReadyNote: "exit code 7, restart 1 of 5 in 1s"}, Exit: &Exit{Code: &seven, RestartAt: &when}, KeeperV: owned, Command: gone}, Starting, "exit code 7, restart 1 of 5 in 1s"},
		{"keeper killed by force, command lives", Seen{Task: claim(Up), Keeper: &Keeper{Ready: true}, KeeperV: gone, Command: owned}, Up, "its keeper is gone"},
		{"the keeper's number is a stranger's", Seen{Task: claim(Up), Keeper: &Keeper{}, KeeperV: foreign, Command: foreign}, Lost, "keeper and command are gone, and nobody wrote how"},
		{"both gone without a word", Seen{Task: claim(Up), Keeper: &Keeper{}, KeeperV: gone, Command: gone}, Lost, "keeper and command are gone, and nobody wrote how"},
		{"both gone, and a worker lives", Seen{Task: claim(Up), Keeper: &Keeper{}, KeeperV: gone, Command: gone, Left: Left{Owned: 1, Ended: 1}}, Survivors, "keeper and command are gone, and 1 of its processes live"},
		{"both gone, and a worker cannot be told", Seen{Task: claim(Up), Keeper: &Keeper{}, KeeperV: gone, Command: gone, Left: Left{Unknown: 1}}, Unverified, "keeper and command are gone, and 1 of its processes cannot be told"},
		{"both gone, all captured ended", Seen{Task: claim(Up), Keeper: &Keeper{}, KeeperV: gone, Command: gone, Left: Left{Ended: 2}}, Lost, "keeper and command are gone, and nobody wrote how"},
		{"after a reboot", Seen{Task: claim(Up), Keeper: &Keeper{}, KeeperV: reboot, Command: reboot}, Lost, "the host was restarted"},
		{"after a reboot, its end was written", Seen{Task: claim(Up), Keeper: &Keeper{}, Exit: bad, KeeperV: reboot, Command: reboot}, Failed, "exit code 7"},
		{"cannot be told", Seen{Task: claim(Up), Keeper: &Keeper{}, KeeperV: blind}, Unverified, "our boot id cannot be read"},
		{"the command cannot be told", Seen{Task: claim(Up), Keeper: &Keeper{}, KeeperV: owned, Command: blind}, Unverified, "our boot id cannot be read"},

		{"ended, keeper done", Seen{Task: claim(Up), Keeper: done, Exit: ok, KeeperV: gone, Command: gone}, Exited, ""},
		{"a job ended well", Seen{Task: job(Up), Keeper: done, Exit: ok, KeeperV: gone, Command: gone}, Completed, ""},
		{"a job without a pane stays completed", Seen{Task: job(Completed)}, Completed, ""},
		{"failed", Seen{Task: claim(Up), Keeper: done, Exit: bad, KeeperV: gone, Command: gone}, Failed, "exit code 7"},
		{"its after_stop runs", Seen{Task: claim(Failed), Keeper: &Keeper{Hook: "after_stop"}, Exit: bad, KeeperV: owned, Command: gone}, Failed, "exit code 7; its after_stop runs"},
		{"its after_stop has failed", Seen{Task: hooked(Stopped), Keeper: &Keeper{Empty: true, HookNote: "after_stop ended with exit code 3"}, KeeperV: gone, Command: gone}, Stopped, "after_stop ended with exit code 3"},
		{"it has failed, and its after_stop", Seen{Task: hooked(Failed), Keeper: &Keeper{Empty: true, HookNote: "after_stop: no such file"}, Exit: bad, KeeperV: gone, Command: gone}, Failed, "exit code 7; after_stop: no such file"},
		{"what its after_stop left lives", Seen{Task: hooked(Survivors), Keeper: &Keeper{HookNote: "after_stop was interrupted"}, KeeperV: gone, Command: gone, Left: Left{Owned: 1}}, Survivors, "1 of its processes live; after_stop was interrupted"},
		{"it was after_ready that failed", Seen{Task: hooked(Stopped), Keeper: &Keeper{Empty: true, HookNote: "after_ready ended with exit code 3"}, KeeperV: gone, Command: gone}, Stopped, ""},
		{"its keeper was killed before after_stop was begun", Seen{Task: claim(Failed), Keeper: &Keeper{Hook: "after_stop"}, Exit: bad, KeeperV: gone, Command: gone}, Failed, "exit code 7"},
		{"its keeper was killed while after_stop ran", Seen{Task: hooked(Failed), Keeper: &Keeper{Hook: "after_stop"}, Exit: bad, KeeperV: gone, Command: gone}, Unverified, "the keeper of its after_stop was killed: what that has left is not known"},
		{"and had ended all of it", Seen{Task: hooked(Failed), Keeper: &Keeper{Hook: "after_stop", Empty: true}, Exit: bad, KeeperV: gone, Command: gone}, Failed, "exit code 7"},
		{"the host went down while after_stop ran", Seen{Task: hooked(Stopped), Keeper: &Keeper{Hook: "after_stop"}, KeeperV: reboot, Command: reboot}, Stopped, ""},
		{"before runs", Seen{Task: claim(Up), Keeper: &Keeper{Hook: "before"}, KeeperV: owned}, Starting, "runs before"},
		{"up and ready, its after_ready failed", Seen{Task: claim(Up), Keeper: &Keeper{Ready: true, WasReady: true, HookNote: "after_ready ended with exit code 3"}, KeeperV: owned, Command: owned}, Ready, "after_ready ended with exit code 3"},
		{"failed, and its keeper has written so", Seen{Task: claim(Failed), Keeper: done, Exit: bad, KeeperV: gone, Command: gone}, Failed, "exit code 7"},
		{"killed", Seen{Task: claim(Up), Keeper: done, Exit: killed, KeeperV: gone, Command: gone}, Failed, "ended by KILL"},
		{"a blank status is not 0", Seen{Task: claim(Up), Keeper: done, Exit: &Exit{}, KeeperV: gone, Command: gone}, Failed, "ended, and its exit code is not known"},
		{"could not be started", Seen{Task: claim(Starting), Exit: &Exit{Error: "no such file"}}, Failed, "no such file"},
		{"ended, the keeper still ends the rest", Seen{Task: claim(Up), Keeper: &Keeper{}, Exit: killed, KeeperV: owned, Command: gone}, Failed, "ended by KILL; its keeper sees to what it left behind"},
		{"ended, and the keeper died before it had looked", Seen{Task: claim(Up), Keeper: &Keeper{}, Exit: killed, KeeperV: gone, Command: gone}, Unverified, "it ended, and its keeper died before it could look at what was left"},

		{"adopted", Seen{Task: adopted(Up), Command: owned}, Up, ""},
		{"adopted, ended", Seen{Task: adopted(Up), Command: gone}, Lost, "it has ended, and nobody saw how: it was adopted, and has no keeper"},
		{"adopted, its number is a stranger's", Seen{Task: adopted(Up), Command: foreign}, Lost, "it has ended, and nobody saw how: it was adopted, and has no keeper"},
		{"adopted, a worker is left", Seen{Task: adopted(Up), Command: gone, Left: Left{Owned: 1}}, Survivors, "its command is gone, and 1 of its processes live"},
		{"adopted, a worker cannot be told", Seen{Task: adopted(Up), Command: gone, Left: Left{Unknown: 1}}, Unverified, "its command is gone, and 1 of its processes cannot be told"},
		{"adopted, cannot be told", Seen{Task: adopted(Up), Command: blind}, Unverified, "our boot id cannot be read"},
		{"adopted, after a reboot", Seen{Task: adopted(Up), Command: reboot}, Lost, "the host was restarted"},
		{"adopted, being stopped", Seen{Task: adopted(Stopping), Command: owned}, Stopping, ""},
		{"adopted, its stop was cut", Seen{Task: adopted(Stopping), Command: gone}, Unverified, "its stop was cut"},
		{"adopted, stopped, and it lives", Seen{Task: adopted(Stopped), Command: owned}, Survivors, "the record says stopped, and the command lives"},

		{"starting", Seen{Task: claim(Starting), Busy: true}, Starting, ""},
		{"a cut start", Seen{Task: claim(Starting)}, Lost, "its start was cut before the keeper ran"},
		{"a start cut after the keeper began", Seen{Task: claim(Starting), Keeper: &Keeper{Ready: true}, KeeperV: owned, Command: owned}, Ready, ""},
		{"stopping", Seen{Task: claim(Stopping), Keeper: &Keeper{}, KeeperV: owned, Command: owned}, Stopping, ""},
		{"stopping, all gone, the stop goes on", Seen{Task: claim(Stopping), Keeper: &Keeper{}, KeeperV: gone, Command: gone, Busy: true}, Stopping, ""},
		{"a stop that a reboot has cut", Seen{Task: claim(Stopping), Keeper: &Keeper{}, KeeperV: reboot, Command: reboot}, Lost, "the host was restarted in the middle of its stop"},
		{"a cut stop", Seen{Task: claim(Stopping), Keeper: &Keeper{}, KeeperV: gone, Command: gone}, Unverified, "its stop was cut"},

		{"stopped", Seen{Task: claim(Stopped), Keeper: &Keeper{}, KeeperV: gone, Command: gone}, Stopped, ""},
		{"stopped says the record, and the command lives", Seen{Task: claim(Stopped), Keeper: &Keeper{}, KeeperV: gone, Command: owned}, Survivors, "the record says stopped, and the command lives"},
		{"stopped, and the record is from another host", Seen{Task: claim(Stopped), Keeper: &Keeper{}, KeeperV: blind, Command: blind}, Stopped, ""},
		{"survivors live", Seen{Task: claim(Survivors), Left: Left{Owned: 2}}, Survivors, "2 of its processes live"},
		{"survivors cannot be told", Seen{Task: claim(Survivors), Left: Left{Unknown: 1}}, Unverified, "1 of its processes cannot be told"},
		{"survivors have ended since", Seen{Task: claim(Survivors), Left: Left{Ended: 1}}, Survivors, "those that were left have ended since; a sweep will say so"},
		{"unverified stays so", Seen{Task: claim(Unverified)}, Unverified, "the report of its last sweep says what could not be told"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Derive(tt.seen)
			if got.State != tt.want || got.Note != tt.note {
				t.Errorf("got %s (%q), want %s (%q)", got.State, got.Note, tt.want, tt.note)
			}
		})
	}
}

// A stop of what has ended closes also the pane whose keeper is just ending.
func TestDecideStop(t *testing.T) {
	owned, gone := identity.Finding{Verdict: identity.Owned}, identity.Finding{Verdict: identity.Gone}
	tests := []struct {
		name      string
		keeper    identity.Finding
		d         Derived
		onlyEnded bool
		want      stopping
	}{
		{"it lives", owned, Derived{State: Ready}, false, stopRun},
		{"it has come up since", owned, Derived{State: Ready}, true, stopNothing},
		{"it is over", gone, Derived{State: Failed}, false, stopTidy},
		{"only what has ended: it is over", gone, Derived{State: Failed}, true, stopTidy},
		{"it is over, its keeper ends", owned, Derived{State: Failed}, false, stopRun},
		{"only what has ended: it is over, its keeper ends", owned, Derived{State: Failed}, true, stopRun},
		{"only what has ended: its keeper sees to the rest", owned, Derived{State: Failed, Tended: true}, true, stopNothing},
		{"only what has ended: survivors", gone, Derived{State: Survivors}, true, stopNothing},
	}
	for _, tt := range tests {
		if got := decideStop(Seen{Keeper: &Keeper{}, KeeperV: tt.keeper}, tt.d, tt.onlyEnded); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestArrived(t *testing.T) {
	tests := []struct {
		state State
		goal  string
		done  bool
		fails bool
	}{
		{Starting, condStarted, false, false},
		{Up, condStarted, true, false},
		{Up, condReady, false, false},
		{Ready, condStarted, true, false},
		{Ready, condReady, true, false},
		{Ready, condCompleted, false, false},
		{Unready, condStarted, true, false},
		{Unready, condReady, true, true},
		{Unready, condCompleted, false, false},
		{Completed, condCompleted, true, false},
		{Completed, condStarted, true, false},
		{Failed, condStarted, true, true},
		{Exited, condReady, true, true},
		{Stopped, condReady, true, true},
		{Stopping, condReady, true, true},
		{Lost, condReady, true, true},
		{Unverified, condReady, true, true},
		{Survivors, condReady, true, true},
	}
	for _, tt := range tests {
		done, err := arrived("llm", Derived{State: tt.state}, tt.goal)
		if done != tt.done || (err != nil) != tt.fails {
			t.Errorf("%s to be %s: got %t, %v", tt.state, tt.goal, done, err)
		}
	}
}
