// Package identity answers one question: is this process the one that was
// written down? It is the only package of hob that signals.
//
// A [Ref] is what is written down about a process. It is a claim, not a handle:
// by the time it is read again its pid may belong to somebody else. [Host.Verify]
// turns the claim into a [Verdict], and, when the process lives and is the
// recorded one, into a [Handle] that pins it, so that nothing can be reused
// between the look and the signal.
//
// Only [Owned] permits a signal. Not being able to look is a verdict of its own
// ([Unverifiable]) and is never folded into "gone" or "ours".
//
// A [Host] is the one door to processes: the real kernel ([Local]) or, in
// tests, the simulated one of identity/sim.
//
// # How a Ref is verified
//
// The record itself comes first (is it one that hob can have written, of this
// boot, of this pid namespace?). Then the number is pinned: on Linux by
// pidfd_open, whose errors each mean something else, ENOENT for instance that the
// number is a thread of another process now. What was pinned is compared: by the
// inode of the pidfd, which no other process of this boot ever has (Linux ≥ 6.9),
// else by the start token, read after the pin and before the pin was reaped. Last
// it is asked, through the pin, whether it lives; the state letter does not count,
// since a leader that is Z may have threads that serve on. In this order (Linux);
// [Finding].Row names the row that decided:
//
//	1   malformed record, pid < 1 or larger than any pid, token of
//	    another system, neither inode nor token                        unverifiable
//	2   our boot id cannot be read                                     unverifiable
//	3   another boot: of this machine (machine id and host name
//	    equal, both in the initial pid namespace)                      gone
//	    another boot, otherwise: a shared home, a container, an
//	    image without a machine id                                     unverifiable
//	4   another pid namespace                                          unverifiable
//	5   pidfd_open: ESRCH                                              gone
//	6   ENOENT, EINVAL: the number is a thread, or dead and still
//	    pinned by a session or group                                   gone
//	    but if it leads a process after all: once more from 5, then    unverifiable
//	7   EMFILE, ENFILE, ENOMEM, anything unknown                       unverifiable
//	8   ENOSYS, or EPERM by seccomp: the unpinned way (token, leader
//	    check, signal, look again)
//	9   pidfs inode differs / equal                                    foreign / 11
//	10  else the start token, read after the pin and with the pin
//	    unreaped: differs / equal                                      foreign / 11
//	10a the row is hidden (hidepid), torn twice, or of another time
//	    namespace                                                      unverifiable
//	11  poll on the pidfd: running, whatever the state letter          owned
//	12  poll: exited                                                   gone
//	13  the signal is refused (EPERM): reported, never counted as
//	    stopped                                                        owned, not permitted
//	14  alive long after KILL (D state, frozen, driver): reported
//	    with state and wait channel                                    owned, stuck
//
// Records without a boot id, as other tools write them: nobody has the number,
// gone; the token differs, foreign; it is equal, or there is none, unverifiable,
// since ticks repeat from boot to boot. A stored Ref may be anything (another
// system's, negative, ten megabytes): it is unverifiable with the reason, never a
// panic, and is written back as it was found.
//
// Where there is no pin (macOS, the BSDs, sandboxes without pidfd_open) the start
// token is compared immediately before each signal and read again after it, and
// the finding says Unpinned.
//
// # From outside
//
//	host, _ := identity.Local()
//	h, err := host.Open(pid)              // pin whatever has the number now
//	record, _ := json.Marshal(h.Ref())    // store
//	// later, perhaps in another program
//	h, found := host.Verify(identity.ParseRef(record))
//	if found.Verdict == identity.Owned {  // exactly then h is not nil
//		err = h.Signal(syscall.SIGTERM)   // verified again, through the pin
//	}
//
// # What is safe to share
//
// Hosts and Handles may be used from several goroutines at once. A Handle must be
// closed; a call on a closed one errors, and never meets a descriptor that has
// been given to another process meanwhile.
package identity

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Verdict is what a Ref turned out to be when it was looked at.
type Verdict string

// The verdicts. Only Owned permits a signal.
const (
	Owned        Verdict = "owned"        // the recorded process, alive
	Gone         Verdict = "gone"         // the recorded process has ended (a zombie has, too)
	Foreign      Verdict = "foreign"      // the number belongs to another process now
	Unverifiable Verdict = "unverifiable" // could not look, or the record cannot prove anything
)

// Errors of this package, to be matched with errors.Is.
var (
	ErrGone         = errors.New("process is gone")
	ErrReused       = errors.New("pid belongs to another process")
	ErrUnverifiable = errors.New("process cannot be verified")
	ErrNotPermitted = errors.New("signal not permitted") // the process exists and is ours, but we may not signal it
	ErrUnsupported  = errors.New("not supported on this system")
)

// Token is the start token of a process: opaque text with its source in front,
// "linux:<ticks>" (field 22 of /proc/PID/stat, raw clock ticks since boot),
// "darwin:<µs>" (p_starttime), "freebsd:<µs>", "openbsd:<µs>" or
// "windows:<FILETIME>". As identity it is compared for equality only.
type Token string

// Older reports whether a process with this token was started before one with
// the other. known is false where the two do not count in the same way. Only
// tokens that were read on one host, in one boot and from one time namespace
// may be compared; in the same tick neither is older.
func (t Token) Older(than Token) (older, known bool) {
	source, mine, ok := strings.Cut(string(t), ":")
	other, theirs, okToo := strings.Cut(string(than), ":")
	a, err := strconv.ParseInt(mine, 10, 64)
	b, errToo := strconv.ParseInt(theirs, 10, 64)
	if !ok || !okToo || source != other || err != nil || errToo != nil {
		return false, false
	}
	return a < b, true
}

// Ref is what is written down about a process, stored as one flat object.
// Command line, executable and name are not in it: they are never identity.
type Ref struct {
	Machine    string    `json:"machine"`     // machine id; "" when the host has none
	Host       string    `json:"host"`        // host name
	Boot       string    `json:"boot"`        // boot id
	PIDNS      string    `json:"pidns"`       // pid namespace: "<inode>", or "<inode>:<unique id>" where the kernel has one (NS_GET_ID, Linux 6.18)
	TimeNS     string    `json:"timens"`      // time namespace, same form
	PID        int       `json:"pid"`         //
	PIDFS      *uint64   `json:"pidfs"`       // pidfd inode, unique per boot (pidfs, Linux ≥ 6.9); null elsewhere
	Start      Token     `json:"start"`       //
	UID        *int      `json:"uid"`         // real uid when recorded; null when unknown
	RecordedAt time.Time `json:"recorded_at"` // RFC 3339; for people, never compared

	bad string // why the stored text cannot be one that hob wrote; "" for a good one
	raw string // that text, to be written back as it was
}

// Finding is what a look at a Ref or a Handle found.
type Finding struct {
	Verdict  Verdict
	Reason   string // why, in words for people; empty only for Owned
	Row      string // the row of the verdict table (package documentation) that decided: "1" … "12", "10a"
	Unpinned bool   // no pin could be had (row 8, macOS, BSD): a small window remains between check and signal
	Zombie   bool   // exited but not reaped; ZombieOf is the parent that does not reap it
	ZombieOf int
}

// Host is the one door to processes: list, walk, pin, verify, read evidence.
// Implementations are safe for concurrent use.
type Host interface {
	// Facts describes the host and the namespaces that the caller sees it from.
	Facts() Facts
	// Snapshot lists all processes in one pass. An error means no view at all;
	// rows that could not be read are named in Table.Unreadable. A listing without
	// our own pid is an error too (with the Table, for a report).
	Snapshot(ctx context.Context, want Field) (*Table, error)
	// Bearers asks every process for its Stamp and names those that show this one. It
	// reads nothing else, so it is over in a twentieth of the time of a Snapshot, and
	// knows numbers alone: who is told by one pins it and looks again. An error means
	// no view at all, ErrUnsupported that there are no stamps on this system.
	Bearers(ctx context.Context, stamp uint64) (Bearers, error)
	// Children returns the pids of the living and dead-but-unreaped children of
	// every thread of pid, sorted. ErrUnsupported means that only Snapshot can
	// tell; ErrGone that pid has been reaped; ErrUnverifiable that it could not look.
	Children(pid int) ([]int, error)
	// Open pins whatever process has the number now. It errors with ErrGone
	// (also for a number that is a thread of another process) or
	// ErrUnverifiable. A zombie can still be opened (its Ref can still be taken,
	// its Verify says Gone). The caller decides by evidence whether it is ours.
	Open(pid int) (Handle, error)
	// Verify looks at a recorded process. The Handle is not nil exactly when
	// the verdict is Owned; the caller closes it.
	Verify(ref Ref) (Handle, Finding)
	// Wait blocks until at least one of the processes has exited (zombies
	// have), the deadline has passed (zero: none), or ctx is done. It is woken
	// by the kernel (poll on pidfds, kqueue NOTE_EXIT) wherever there is one;
	// for handles without a pin on Linux it looks again every 20 ms. It returns nil
	// for an exit and for the deadline (the caller looks which), ctx.Err() when ctx
	// is done, and another error when it could not wait at all.
	Wait(ctx context.Context, hs []Handle, deadline time.Time) error
	// Now is the host's clock, so that a simulated host can have its own.
	Now() time.Time
	// Sockets lists the TCP sockets of the network namespace that pid is in
	// (0: the caller's).
	Sockets(ctx context.Context, pid int) ([]Socket, error)
	// Holders reports which processes have the sockets with these inodes open.
	// among limits the search (nil: every process). Unreadable names the
	// processes whose open files could not be read.
	Holders(ctx context.Context, inodes []uint64, among []int) (Holders, error)
	// Cgroups is the door to the host's cgroups.
	Cgroups() Cgroups
}

// Handle is a process that is pinned: verify, read, signal and wait go through
// the pin, so the number cannot be reused in between. Where the system has no
// pin the identity is checked right before each signal (Finding.Unpinned).
type Handle interface {
	// Ref is what to write down about the process.
	Ref() Ref
	// Verify looks again, through the pin. It is Owned while the process lives
	// (a zombie leader with a living thread lives).
	Verify() Finding
	// Read reads the process's row again and checks afterwards, under the pin,
	// that it is still that process's row. ErrGone when it has been reaped.
	Read(want Field) (Process, error)
	// Signal verifies, then signals through the pin. ErrGone, ErrReused,
	// ErrUnverifiable, or ErrNotPermitted; nil means that the kernel took it.
	Signal(sig syscall.Signal) error
	// Close gives the pin back. The Handle must not be used afterwards.
	Close() error
}

// Facts describes a host and how much of it the caller may see.
type Facts struct {
	OS         string // GOOS
	Machine    string
	Host       string
	Boot       string // "" when it could not be read
	PIDNS      string
	TimeNS     string
	InitPIDNS  bool     // the pid namespace is the initial one
	UID        int      // effective uid of the caller
	Pidfd      bool     // a process can be pinned: pidfd_open works here (on Windows: a process handle)
	Pidfs      bool     // and its inode is an identity (Linux ≥ 6.9)
	HidePID    bool     // procfs hides other users' processes (hidepid=)
	Procfs     bool     // a procfs is mounted on /proc and shows ourselves
	Subreaper  bool     // PR_SET_CHILD_SUBREAPER exists
	Incomplete []string // what could not be read, in words
}

// Field selects what Snapshot and Read fetch beyond what one stat read gives.
type Field uint

// What can be asked for. Fields not asked for are left at their zero value.
const (
	WantArgs    Field = 1 << iota // Args
	WantUser                      // UID
	WantEnviron                   // Environ
	WantPidfs                     // PIDFS
	WantSignals                   // SigIgn
	WantCwd                       // Cwd
	WantWchan                     // Wchan
	WantStarted                   // Started
	WantDisk                      // DiskRead
	WantStamp                     // Stamp
)

// State of a process as the kernel shows it: 'R', 'S', 'D', 'Z', 'T', …
type State byte

// Process is one row of the process table.
type Process struct {
	PID, PPID, PGID, SID int
	TTY                  int    // device number, 0: none
	TPGID                int    // the group that its terminal has in the foreground; below 1: none, or not known
	Comm                 string // the kernel's short name; never identity
	State                State  // 'Z' alone does not prove death: see Threads and Handle.Verify
	Threads              int
	Start                Token
	RSS                  int64 // bytes resident, -1 when unknown
	Kernel               bool  // a kernel thread
	PIDFS                *uint64
	UID                  int // -1 when unknown
	Args                 []string
	Environ              []string
	SigIgn               uint64
	Cwd                  string
	Wchan                string    // where in the kernel it sleeps, "" when that is not shown
	Started              time.Time // by the wall clock, for people only; zero when unknown
	DiskRead             int64     // bytes that it had read from disk
	// Stamp is a number that descendants inherit and keep (child.Stamp): on Linux
	// the limit of file locks, which no kernel has used since 2.4.25 (getrlimit(2))
	// and anybody may read (proc_pid_limits(5)). 0: none.
	Stamp uint64
	// Missing are the fields that were asked for and could not be read.
	Missing Field
}

// Table is one pass over the process table.
type Table struct {
	Procs      []Process
	Unreadable []Unreadable // rows that exist and could not be read
	SawSelf    bool         // a listing without our own pid is no listing
	Hidden     bool         // other users' rows are hidden (hidepid): the list is not the whole host
	Passing    []Process    // with WantStamp: rows that showed a Stamp and ended while they were read
}

// Unreadable is a row of the process table that could not be read.
type Unreadable struct {
	PID int
	Err error
}

// Bearers are the processes that showed a stamp when they were asked.
type Bearers struct {
	PIDs   []int
	Unread []int // that were there and did not answer: none, or about to end, or not to be read
}

// Socket is a TCP socket.
type Socket struct {
	Inode  uint64 // 0 when the system does not name it
	Local  netip.AddrPort
	Remote netip.AddrPort
	Listen bool
	UID    int // owner, -1 when unknown
	PID    int // holder where the system's listing names it, else 0
}

// Holders says who has sockets open.
type Holders struct {
	ByInode    map[uint64][]int
	Unreadable []int // pids whose open files could not be read
}
