//go:build unix && !linux && !solaris && !aix

package child

import "golang.org/x/sys/unix"

var resources = map[string]int{
	"core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "data": unix.RLIMIT_DATA, "fsize": unix.RLIMIT_FSIZE,
	"memlock": unix.RLIMIT_MEMLOCK, nofileName: unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC,
	"rss": unix.RLIMIT_RSS, "stack": unix.RLIMIT_STACK,
}

// threadLimits are not looked up here.
func threadLimits() Limits { return nil }

func takeThread(string, string) error { return nil }
