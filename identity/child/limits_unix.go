//go:build unix && !solaris && !aix

package child

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const infinity = uint64(unix.RLIM_INFINITY)

// OwnLimits are those of this process. It is to be called while nothing else of it
// makes files: the umask cannot be read without being set.
func OwnLimits() Limits {
	l := resourceLimits()
	mask := unix.Umask(0o077)
	unix.Umask(mask)
	l[umaskName] = fmt.Sprintf("%04o", mask)
	return l
}

// resourceLimits are OwnLimits without the umask, which stays as it is.
func resourceLimits() Limits {
	l := Limits{}
	for name, which := range resources {
		var lim unix.Rlimit
		if unix.Getrlimit(which, &lim) == nil {
			l[name] = amountText(count(lim.Cur)) + ":" + amountText(count(lim.Max))
		}
	}
	maps.Copy(l, threadLimits())
	return l
}

// CallerLimits are those that this process was given. Go has raised its soft limit
// of open files meanwhile, and gives it back to what it starts: so a shell is
// asked, for the umask as well: what goes on beside this makes files, and starts
// the tmux server. What the shell does not say is not there.
func CallerLimits(ctx context.Context) Limits {
	l := resourceLimits()
	files := l[nofileName]
	delete(l, nofileName)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "umask; ulimit -Sn")
	cmd.Env, cmd.WaitDelay = []string{}, time.Second
	out, err := cmd.Output()
	said := strings.Fields(string(out))
	if err != nil || len(said) != 2 {
		return l
	}
	if mask, err := strconv.ParseUint(said[0], 8, 32); err == nil {
		l[umaskName] = fmt.Sprintf("%04o", mask)
	}
	_, hard, err := bounds(files)
	if soft, e := amount(said[1]); err == nil && e == nil {
		l[nofileName] = amountText(soft) + ":" + amountText(hard)
	}
	return l
}

// With is a program of ours that takes limits and becomes a command: LIMITS PATH
// ARGV0 ARG… It returns only when it cannot, with the exit code. A limit that may
// not be raised again is taken as far as it goes, and that is said.
func With(args []string) int {
	if len(args) < 3 {
		fmt.Fprintln(os.Stderr, "hob: with: LIMITS PATH ARGV0 …")
		return 2
	}
	runtime.LockOSThread() // some are this thread's alone, and it becomes the command
	for name, want := range limitsOf(args[0]) {
		if err := take(name, want); err != nil {
			fmt.Fprintf(os.Stderr, "hob: limit %s: %v\r\n", name, err)
		}
	}
	err := unix.Exec(args[1], args[2:], os.Environ())
	fmt.Fprintf(os.Stderr, "hob: %s cannot be executed: %v\r\n", args[1], err)
	return 126
}

func take(name, want string) error {
	if name == umaskName {
		mask, err := strconv.ParseUint(want, 8, 32)
		if err == nil {
			unix.Umask(int(mask & 0o777))
		}
		return err
	}
	if name == priorityName || name == cpusName {
		return takeThread(name, want)
	}
	which, known := resources[name]
	soft, hard, err := bounds(want)
	if !known || err != nil {
		return err
	}
	err = setLimit(which, soft, hard)
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	var lim unix.Rlimit
	if err := unix.Getrlimit(which, &lim); err != nil {
		return err
	}
	asked := soft
	soft, hard = settle(soft, hard, count(lim.Max))
	if err := setLimit(which, soft, hard); err != nil || soft == asked {
		return err
	}
	return fmt.Errorf("%s, not %s: the tmux server was started with no more", amountText(soft), amountText(asked))
}

func setLimit(which int, soft, hard uint64) error {
	var lim unix.Rlimit
	put(&lim.Cur, soft)
	put(&lim.Max, hard)
	return unix.Setrlimit(which, &lim)
}

// count reads a field that some systems count with a sign.
func count[T int64 | uint64](n T) uint64 { return uint64(n) }

// put sets such a field.
func put[T int64 | uint64](field *T, n uint64) { *field = T(n) }

// withFiles calls f while the soft limit of open files is another, which what f
// starts inherits. It is low only meanwhile: to look at a large tree takes as many.
func withFiles(soft uint64, f func()) {
	var lim unix.Rlimit
	if soft == 0 || unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) != nil {
		f()
		return
	}
	low := lim
	put(&low.Cur, soft)
	if unix.Setrlimit(unix.RLIMIT_NOFILE, &low) == nil {
		defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &lim) }()
	}
	f()
}
