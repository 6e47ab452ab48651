package identity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// local is the real kernel.
type local struct {
	*verifier
	kernel      linuxKernel
	facts       Facts        // but for HidePID
	hidesOthers func() bool  // asked when somebody wants to know: few do, and mountinfo is long
	hasChildren func() bool  // children files
	lastCount   atomic.Int64 // rows of the last Snapshot, to size the next
}

// Local is the host that the caller runs on, seen with the caller's rights and
// from its namespaces. What cannot be seen is in its Facts; it errors only on a
// system that hob does not know.
func Local() (Host, error) {
	l := &local{}
	l.facts = readFacts()
	l.hidesOthers = sync.OnceValue(procHidesOthers)
	l.hasChildren = sync.OnceValue(childrenFile)
	l.kernel = linuxKernel{facts: &l.facts, countsThreads: sync.OnceValue(func() bool { return l.hasChildren() && threadsAreLinks() })}
	l.verifier = &verifier{sys: l.kernel, facts: l.facts, bare: bareWay{sys: l.kernel, facts: l.facts, row: "8"}}
	return l, nil
}

// Facts describes the host and the namespaces that the caller sees it from.
func (l *local) Facts() Facts {
	f := l.facts
	f.HidePID = l.hidesOthers()
	f.Incomplete = slices.Clone(f.Incomplete)
	return f
}

// Now is the wall clock.
func (l *local) Now() time.Time { return time.Now() }

// Verify looks at a recorded process.
func (l *local) Verify(ref Ref) (Handle, Finding) { return l.verify(ref) }

// Open pins whatever process has the number now.
func (l *local) Open(pid int) (Handle, error) { return l.open(pid, l.Now()) }

// OpenRead is Open with a first Read and Verify.
func (l *local) OpenRead(pid int, want Field) (Handle, Process, Finding, error) {
	return l.openRead(pid, want, l.Now())
}

// Looks at few processes are not worth a goroutine, and more than a few of those only
// wait for each other in the kernel.
const (
	looksEach  = 16
	mostAtOnce = 4
)

// atOnce calls one for each of the numbers below n, several at a time where the
// processors allow it: of a large tree each process is looked at for the first time
// in 40 µs, nearly all of it in the kernel.
func (l *local) atOnce(n int, one func(int)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			one(i)
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), mostAtOnce, n/looksEach) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}

// OpenPidfd makes a Handle of a pidfd that came with a fork (CLONE_PIDFD,
// syscall.SysProcAttr.PidFD), so that not even the first look is by number. The
// Handle takes fd over, also when it errors.
func (l *local) OpenPidfd(pid, fd int) (Handle, error) {
	if err := checkPidfd(pid, fd); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("open pid %d by pidfd: %w", pid, err)
	}
	return l.adopt(pid, fd, l.Now())
}

// checkPidfd reads in fdinfo which process a descriptor stands for.
func checkPidfd(pid, fd int) error {
	return withFile("/proc/self/fdinfo/"+strconv.Itoa(fd), func(text []byte) error {
		for line := range bytes.Lines(text) {
			if v, ok := bytes.CutPrefix(line, []byte("Pid:")); ok {
				return matchPid(firstSigned(v), pid)
			}
		}
		return fmt.Errorf("%w: the descriptor is no pidfd", ErrUnverifiable)
	})
}

func matchPid(got int64, pid int) error {
	switch got {
	case int64(pid):
		return nil
	case -1:
		return ErrGone
	}
	return fmt.Errorf("%w: the pidfd is of pid %d", ErrUnverifiable, got)
}

func firstSigned(b []byte) int64 {
	n, ok := decimal(bytes.TrimSpace(b))
	if !ok {
		return math.MinInt64
	}
	return n
}

func readFacts() Facts {
	f := Facts{OS: "linux", UID: os.Geteuid(), Subreaper: true}
	note := func(what string, err error) {
		if err != nil {
			f.Incomplete = append(f.Incomplete, fmt.Sprintf("%s: %v", what, err))
		}
	}
	var err error
	f.Boot, err = readLine("/proc/sys/kernel/random/boot_id")
	note("boot id", err)
	f.Machine = machineID()
	f.Host, err = os.Hostname()
	note("host name", err)
	f.Procfs, err = procfsIsOurs()
	note("procfs", err)
	f.PIDNS, err = namespace("pid", f.Procfs)
	note("pid namespace", err)
	f.TimeNS, err = namespace("time", f.Procfs)
	note("time namespace", err)
	f.InitPIDNS = initialNS(f.PIDNS, "linux")
	f.Pidfd, f.Pidfs, err = probePidfd()
	note("pidfd", err)
	return f
}

// probePidfd tries both on ourselves.
func probePidfd() (pidfd, pidfs bool, err error) {
	k := linuxKernel{}
	fd, err := k.pin(os.Getpid())
	if err != nil {
		return false, false, err
	}
	defer k.unpin(fd)
	id, err := k.id(fd)
	return true, id != nil, err
}

// machineID is machine-id(5), "" when the host has none.
func machineID() string {
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if id, err := readLine(path); err == nil && id != "" && id != "uninitialized" {
			return id
		}
	}
	return ""
}

func readLine(path string) (line string, err error) {
	err = withFile(path, func(text []byte) error {
		line = string(bytes.TrimSpace(text))
		return nil
	})
	return line, err
}

// procfsIsOurs reports whether /proc shows numbers of our own pid namespace.
// NSpid counts from the namespace of the mount down to ours: one number means
// that they are the same. (unshare --pid without a fresh mount shows two.)
func procfsIsOurs() (bool, error) {
	s, err := readStatus("/proc/self")
	switch {
	case err != nil:
		return false, err
	case s.tgid != os.Getpid() || s.nspid > 1:
		return false, errNoProcfs
	}
	return true, nil
}

// namespace names a namespace by its inode, and by the kernel's unique id where
// there is one (NS_GET_ID), since inodes are recycled. Before that, the start
// of its first process tells two pid namespaces with one inode apart.
func namespace(kind string, procfs bool) (string, error) {
	fd, err := openRetry(unix.AT_FDCWD, "/proc/self/ns/"+kind, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) && procfs {
		return "", nil // a kernel without this kind of namespace
	}
	if err != nil {
		return "", err
	}
	defer closeFD(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", err
	}
	inode := strconv.FormatUint(st.Ino, 10)
	if id, err := namespaceID(fd); err == nil {
		return inode + ":" + strconv.FormatUint(id, 10), nil
	}
	if kind == "pid" && inode != initPIDNS && procfs {
		if init, err := readRow("/proc/1/", 1, 0); err == nil {
			return inode + ":1@" + strings.TrimPrefix(string(init.Start), "linux:"), nil
		}
	}
	return inode, nil
}

// procHidesOthers reports whether the procfs on /proc hides processes from this
// caller: hidepid= is set, and neither its gid= nor CAP_SYS_PTRACE (in the
// initial user namespace) exempts us. See proc(5).
func procHidesOthers() bool {
	mode, gid := procOptions()
	if mode == "" || mode == "0" || mode == "off" {
		return false
	}
	s, err := readStatus("/proc/self")
	if err != nil {
		return true
	}
	if mode != "4" && mode != "ptraceable" && (slices.Contains(s.gids, gid) || os.Getegid() == gid) {
		return false
	}
	const capSysPtrace = 1 << 19
	link, _ := os.Readlink("/proc/self/ns/user")
	return s.capEff&capSysPtrace == 0 || link != "user:["+initUserNS+"]"
}

// procOptions finds hidepid= and gid= (root's, unless it says otherwise) of the
// mount that /proc is.
func procOptions() (hidepid string, gid int) {
	_ = withFile("/proc/self/mountinfo", func(text []byte) error {
		for line := range bytes.Lines(text) {
			f := bytes.Fields(line)
			if len(f) > 5 && string(f[4]) == "/proc" { // the last one is on top
				hidepid, gid = mountOptions(string(f[len(f)-1]))
			}
		}
		return nil
	})
	return hidepid, gid
}

// Wait blocks until one of the processes has exited.
func (l *local) Wait(ctx context.Context, hs []Handle, deadline time.Time) error {
	return wait(ctx, hs, deadline)
}
