//go:build !unix || solaris || aix

package child

import "hob/identity"

// Subreap errors with identity.ErrUnsupported.
func Subreap() error { return identity.ErrUnsupported }

func start(Command) (pid, pidfd int, err error) { return 0, -1, identity.ErrUnsupported }

func waitExit() {}

func reapAll() ([]Exit, error) { return nil, ErrNoChildren }

func closePidfd(int) {}

// KeepToMyself does nothing here.
func KeepToMyself() {}
