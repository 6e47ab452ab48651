//go:build !unix || solaris || aix

package child

import (
	"context"

	"hob/identity"
)

// Subreap errors with identity.ErrUnsupported.
func Subreap() error { return identity.ErrUnsupported }

// Stamp errors with identity.ErrUnsupported: no number of these systems is inherited
// for good and shown to others.
func Stamp(uint64) (uint64, error) { return 0, identity.ErrUnsupported }

func start(Command) (pid, pidfd int, err error) { return 0, -1, identity.ErrUnsupported }

func waitExit() {}

func reapAll() ([]Exit, error) { return nil, ErrNoChildren }

func closePidfd(int) {}

const infinity = ^uint64(0)

// OwnLimits are not known here.
func OwnLimits() Limits { return nil }

// CallerLimits are not known here.
func CallerLimits(context.Context) Limits { return nil }

// With cannot take limits here.
func With([]string) int { return 2 }

// KeepToMyself does nothing here.
func KeepToMyself() {}
