package child

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// resources are all limits but that of file locks, which bears the stamp (Stamp).
var resources = map[string]int{
	"as": unix.RLIMIT_AS, "core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "data": unix.RLIMIT_DATA,
	"fsize": unix.RLIMIT_FSIZE, "memlock": unix.RLIMIT_MEMLOCK, "msgqueue": unix.RLIMIT_MSGQUEUE,
	"nice": unix.RLIMIT_NICE, nofileName: unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC, "rss": unix.RLIMIT_RSS,
	"rtprio": unix.RLIMIT_RTPRIO, "rttime": unix.RLIMIT_RTTIME, "sigpending": unix.RLIMIT_SIGPENDING, "stack": unix.RLIMIT_STACK,
}

// threadLimits are the nice level and the processors of the calling thread. All of a
// process have the same, unless it has done something about it.
func threadLimits() Limits {
	l := Limits{}
	if level, err := niceLevel(); err == nil {
		l[priorityName] = strconv.Itoa(level)
	}
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil { // fails where there are more processors than it holds
		l[cpusName] = cpusText(&set)
	}
	return l
}

// niceLevel is that of the calling thread: the kernel counts it as 20 - level, since
// a negative number would be an error (getpriority(2)).
func niceLevel() (int, error) {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	return 20 - raw, err
}

// takeThread gives the calling thread what the caller had. A lower level needs rights
// (RLIMIT_NICE, CAP_SYS_NICE).
func takeThread(name, want string) error {
	if name == cpusName {
		set, err := cpusOf(want)
		if err == nil {
			err = unix.SchedSetaffinity(0, &set)
		}
		return err
	}
	level, err := strconv.Atoi(want)
	if err != nil {
		return err
	}
	err = unix.Setpriority(unix.PRIO_PROCESS, 0, level)
	if have, e := niceLevel(); e == nil && (errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)) {
		return fmt.Errorf("nice level %d, not %d: the tmux server was started with that, and to raise it again needs rights", have, level)
	}
	return err
}

// cpusText lists processors: "0-3+8".
func cpusText(set *unix.CPUSet) string {
	var parts []string
	most := len(set) * strconv.IntSize
	for at := 0; at < most; at++ {
		if !set.IsSet(at) {
			continue
		}
		from := at
		for at+1 < most && set.IsSet(at+1) {
			at++
		}
		if from == at {
			parts = append(parts, strconv.Itoa(from))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", from, at))
		}
	}
	return strings.Join(parts, "+")
}

func cpusOf(text string) (set unix.CPUSet, err error) {
	for part := range strings.SplitSeq(text, "+") {
		first, last, both := strings.Cut(part, "-")
		if !both {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 16)
		to, errTo := strconv.ParseUint(last, 10, 16)
		if err = errors.Join(err, errTo); err != nil {
			return set, fmt.Errorf("processors %.60q: %w", text, err)
		}
		for cpu := from; cpu <= to; cpu++ {
			set.Set(int(cpu))
		}
	}
	return set, nil
}
