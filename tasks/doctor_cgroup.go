package tasks

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	"hob/identity"
)

// checkCgroup tries whether a cgroup can be made here, as a keeper does it: below
// the one that this hob is in. A tmux server that hob has started elsewhere may be
// in another one.
func checkCgroup(all identity.Cgroups) Check {
	at, err := all.Place("hob-doctor-" + strconv.Itoa(os.Getpid()))
	var g identity.Cgroup
	if err == nil {
		g, err = all.Make(at)
	}
	if err == nil {
		err = errors.Join(g.Remove(), g.Close())
	}
	return judgeCgroup(err)
}

func judgeCgroup(err error) Check {
	const name = "cgroup"
	const without = "a keeper that is killed by force leaves what it had not yet captured to be named only: "
	switch {
	case err == nil:
		return Check{name, Good, "each task gets one: what is in it is found and ended, also when its keeper was killed by force", ""}
	case errors.Is(err, fs.ErrPermission):
		return Check{name, Warning, without + err.Error(),
			"start hob's first task from a cgroup of your own: systemd-run --user --scope -p Delegate=yes hob up"}
	case errors.Is(err, identity.ErrUnsupported):
		return Check{name, Warning, without + err.Error(), ""}
	}
	return Check{name, Unknown, err.Error(), ""}
}
