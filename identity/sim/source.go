//go:build unix

package sim

import (
	"math/rand/v2"

	"pgregory.net/rapid"
)

// Source is where a world takes its chances from. It is asked for numbers in
// [0, n); 0 is always the quiet choice, so that a source that shrinks towards 0
// shrinks a schedule towards one in which nothing unforeseen happens.
type Source interface {
	Intn(n int) int
}

type seeded struct{ *rand.Rand }

func (s seeded) Intn(n int) int { return s.IntN(n) }

// Seed is a source in which everything follows from the number.
func Seed(seed uint64) Source { return seeded{rand.New(rand.NewPCG(seed, 0x686f62))} }

// Quiet is the source that always makes the quiet choice.
var Quiet Source = quiet{}

type quiet struct{}

func (quiet) Intn(int) int { return 0 }

type drawn struct{ t *rapid.T }

// Drawn lets rapid choose, so that it can shrink a failing schedule and replay it
// from its seed or fail file.
func Drawn(t *rapid.T) Source { return drawn{t} }

func (d drawn) Intn(n int) int {
	if n <= 1 {
		return 0
	}
	return rapid.IntRange(0, n-1).Draw(d.t, "")
}

// chance reports true in so many percent of cases; never is the quiet choice.
func (w *World) chance(percent int) bool {
	return percent > 0 && w.src.Intn(100) >= 100-percent
}

// Pick chooses one of several; the first is the quiet choice.
func Pick[T any](src Source, from ...T) T { return from[src.Intn(len(from))] }
