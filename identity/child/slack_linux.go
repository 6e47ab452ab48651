package child

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// How late a timer of a thread may be, in nanoseconds (PR_SET_TIMERSLACK of prctl(2)).
const (
	patientSlack  = 1_000_000
	ordinarySlack = 50_000 // the kernel's, where nobody has asked for another
)

// Patiently has f start programs whose timers may each be a millisecond late, and
// theirs, down to what [Reaper.Start] starts. It is for a server whose panes hold
// keepers: the first thing that a program in Go does is to wake every 20 µs, to see
// whether it has something to see to. Twenty that start at once on two processors keep
// each other from it by that; what they wait for are events, not times. Who opens a
// window of their own in that server has this too.
func Patiently(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	old, err := slack()
	if err == nil && old < patientSlack && setSlack(patientSlack) == nil {
		defer func() { _ = setSlack(old) }()
	}
	f()
}

// punctual has this thread start programs as punctual as any, and returns what makes
// it patient again. Other slack than ours is the caller's own choice.
func punctual() (back func()) {
	if old, err := slack(); err != nil || old != patientSlack || setSlack(ordinarySlack) != nil {
		return func() {}
	}
	return func() { _ = setSlack(patientSlack) }
}

func slack() (int, error) { return unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0) }

func setSlack(ns int) error { return unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(ns), 0, 0, 0) }
