package identity

import (
	"io/fs"
	"math"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fakeKernel answers as a test tells it to, and counts what it was asked for.
type fakeKernel struct {
	pins   []error // answers of pin in turn; the last one stays
	inode  *uint64
	idErr  error
	life   []life // answers of ended in turn; the last one stays
	lifeEr error
	rows   []rowAnswer // answers of row in turn; the last one stays
	leader int         // answer of tgid
	tgidEr error
	sendEr error

	pinned, unpinned int
	sent, killed     []syscall.Signal
}

type rowAnswer struct {
	p   Process
	err error
}

func next[T any](answers *[]T) (out T) {
	if len(*answers) > 0 {
		out = (*answers)[0]
	}
	if len(*answers) > 1 {
		*answers = (*answers)[1:]
	}
	return out
}

func (k *fakeKernel) pin(int) (int, error) {
	if err := next(&k.pins); err != nil {
		return -1, err
	}
	k.pinned++
	return 100 + k.pinned, nil
}
func (k *fakeKernel) unpin(int)               { k.unpinned++ }
func (k *fakeKernel) id(int) (*uint64, error) { return k.inode, k.idErr }
func (k *fakeKernel) ended(int) (life, error) { return next(&k.life), k.lifeEr }
func (k *fakeKernel) tgid(int) (int, error)   { return k.leader, k.tgidEr }
func (k *fakeKernel) pinnedUID(int, int) int  { return 1000 }
func (k *fakeKernel) row(int, Field) (Process, error) {
	a := next(&k.rows)
	return a.p, a.err
}
func (k *fakeKernel) leaderRow(pid int, want Field) (Process, error) { return k.row(pid, want) }
func (k *fakeKernel) signal(_ int, sig syscall.Signal) error {
	k.sent = append(k.sent, sig)
	return k.sendEr
}
func (k *fakeKernel) kill(_ int, sig syscall.Signal) error {
	k.killed = append(k.killed, sig)
	return k.sendEr
}

func (k *fakeKernel) verifier(f Facts) *verifier {
	return &verifier{sys: k, facts: f, bare: bareWay{sys: k, facts: f, row: "8"}}
}

func ptr[T any](v T) *T { return &v }

const (
	ourPID   = 4321
	ourStart = Token("linux:777")
	ourInode = uint64(99)
	thisBoot = "11111111-2222-4333-8444-555555555555"
	lastBoot = "00000000-2222-4333-8444-555555555555"
)

func ourFacts() Facts {
	return Facts{
		OS: "linux", Machine: "m1", Host: "box", Boot: thisBoot, PIDNS: initPIDNS + ":1", TimeNS: initTimeNS + ":2",
		InitPIDNS: true, Procfs: true, Pidfd: true, Pidfs: true,
	}
}

func ourRef() Ref {
	f := ourFacts()
	r := f.newRef(ourPID, time.Unix(1_700_000_000, 0))
	r.Start, r.PIDFS, r.UID = ourStart, ptr(ourInode), ptr(1000)
	return r
}

// ourKernel is one on which the recorded process lives.
func ourKernel() *fakeKernel {
	return &fakeKernel{inode: ptr(ourInode), rows: []rowAnswer{{p: ourRow('S', 1)}}}
}

func ourRow(state State, threads int) Process {
	return Process{PID: ourPID, PPID: 17, State: state, Threads: threads, Start: ourStart}
}

func enoent() error { return &fs.PathError{Op: "open", Path: "/proc/4321/stat", Err: syscall.ENOENT} }

// scene is one case of the table: what is recorded, what the host is, what its
// kernel answers.
type scene struct {
	ref    Ref
	facts  Facts
	kernel *fakeKernel
}

// TestVerdictTable is the verdict table, row by row.
func TestVerdictTable(t *testing.T) {
	noInode := func(s *scene) { s.ref.PIDFS = nil }
	for _, c := range []struct {
		name string
		set  func(*scene)
		want Finding // Reason: a part of it
	}{
		{"the recorded process lives", func(s *scene) {}, Finding{Verdict: Owned, Row: "11"}},

		{"pid 0", func(s *scene) { s.ref.PID = 0 }, Finding{Verdict: Unverifiable, Row: "1", Reason: "not a process"}},
		{"pid of our own group", func(s *scene) { s.ref.PID = -1 }, Finding{Verdict: Unverifiable, Row: "1"}},
		{"pid that 32 bits would cut to ours", func(s *scene) { s.ref.PID = beyond32Bits() }, Finding{Verdict: Unverifiable, Row: "1", Reason: "larger"}},
		{"pid above PID_MAX_LIMIT", func(s *scene) { s.ref.PID = 1<<22 + 1 }, Finding{Verdict: Unverifiable, Row: "1", Reason: "larger"}},
		{"token of another system", func(s *scene) { s.ref.Start = "darwin:777" }, Finding{Verdict: Unverifiable, Row: "1", Reason: "not of linux"}},
		{"token without a source", func(s *scene) { s.ref.Start = "777" }, Finding{Verdict: Unverifiable, Row: "1", Reason: "not of linux"}},
		{"token in another spelling", func(s *scene) { s.ref.Start = "linux:0777" }, Finding{Verdict: Unverifiable, Row: "1", Reason: "malformed"}},
		{"token that is no number", func(s *scene) { s.ref.Start = "linux:7.77e2" }, Finding{Verdict: Unverifiable, Row: "1", Reason: "malformed"}},
		{"token past 64 bits", func(s *scene) { s.ref.Start = "linux:99999999999999999999" }, Finding{Verdict: Unverifiable, Row: "1", Reason: "malformed"}},
		{"neither inode nor token", func(s *scene) { s.ref.PIDFS, s.ref.Start = nil, "" }, Finding{Verdict: Unverifiable, Row: "1", Reason: "neither"}},
		{"megabytes of text", func(s *scene) { s.ref.Host = strings.Repeat("x", 10<<20) }, Finding{Verdict: Unverifiable, Row: "1", Reason: "10485760 bytes"}},

		{"a torn boot id", func(s *scene) { s.ref.Boot = thisBoot[:35] }, Finding{Verdict: Unverifiable, Row: "1", Reason: "boot id"}},
		{"a garbled boot id", func(s *scene) { s.ref.Boot = thisBoot[:35] + "x" }, Finding{Verdict: Unverifiable, Row: "1", Reason: "boot id"}},

		{"our boot id cannot be read", func(s *scene) { s.facts.Boot = "" }, Finding{Verdict: Unverifiable, Row: "2"}},
		{"another boot of this machine", func(s *scene) { s.ref.Boot = lastBoot }, Finding{Verdict: Gone, Row: "3", Reason: "last boot"}},
		{"another boot, another machine", func(s *scene) { s.ref.Boot, s.ref.Machine = lastBoot, "m2" }, Finding{Verdict: Unverifiable, Row: "3", Reason: "--forget"}},
		{"another boot, another host name", func(s *scene) { s.ref.Boot, s.ref.Host = lastBoot, "other" }, Finding{Verdict: Unverifiable, Row: "3", Reason: `"other"`}},
		{"another boot, no machine ids", func(s *scene) { s.ref.Boot, s.ref.Machine, s.facts.Machine = lastBoot, "", "" }, Finding{Verdict: Unverifiable, Row: "3"}},
		{"another boot, no host names", func(s *scene) { s.ref.Boot, s.ref.Host, s.facts.Host = lastBoot, "", "" }, Finding{Verdict: Unverifiable, Row: "3"}},
		{"another boot, recorded in a container", func(s *scene) { s.ref.Boot, s.ref.PIDNS = lastBoot, "4026532200:5" }, Finding{Verdict: Unverifiable, Row: "3"}},
		{"another boot, seen from a container", func(s *scene) { s.ref.Boot, s.facts.PIDNS, s.facts.InitPIDNS = lastBoot, "4026532200:5", false }, Finding{Verdict: Unverifiable, Row: "3"}},
		{"this boot, another machine id", func(s *scene) { s.ref.Machine = "m2" }, Finding{Verdict: Owned, Row: "11"}},
		{"this boot, no machine id", func(s *scene) { s.ref.Machine = "" }, Finding{Verdict: Owned, Row: "11"}},

		{"another pid namespace", func(s *scene) { s.ref.PIDNS = "4026532200:5" }, Finding{Verdict: Unverifiable, Row: "4"}},
		{"a recycled namespace inode", func(s *scene) { s.ref.PIDNS, s.facts.PIDNS = "4026532200:5", "4026532200:6" }, Finding{Verdict: Unverifiable, Row: "4"}},
		{"a namespace without its unique id", func(s *scene) { s.ref.PIDNS, s.facts.PIDNS = "4026532200", "4026532200:6" }, Finding{Verdict: Unverifiable, Row: "4"}},
		{"the initial namespace without its unique id", func(s *scene) { s.ref.PIDNS = initPIDNS }, Finding{Verdict: Owned, Row: "11"}},
		{"no namespace recorded", func(s *scene) { s.ref.PIDNS = "" }, Finding{Verdict: Unverifiable, Row: "4", Reason: "not recorded"}},

		{"ESRCH", func(s *scene) { s.kernel.pins = []error{syscall.ESRCH} }, Finding{Verdict: Gone, Row: "5"}},

		{"ENOENT: a thread", func(s *scene) { s.kernel.pins, s.kernel.leader = []error{syscall.ENOENT}, 40 }, Finding{Verdict: Gone, Row: "6", Reason: "thread of process 40"}},
		{"EINVAL: a thread", func(s *scene) { s.kernel.pins, s.kernel.leader = []error{syscall.EINVAL}, 40 }, Finding{Verdict: Gone, Row: "6", Reason: "thread of process 40"}},
		{"ENOENT: dead and pinned", func(s *scene) { s.kernel.pins, s.kernel.tgidEr = []error{syscall.ENOENT}, enoent() }, Finding{Verdict: Gone, Row: "6", Reason: "pinned"}},
		{"ENOENT, then its own leader and pinned", func(s *scene) { s.kernel.pins, s.kernel.leader = []error{syscall.ENOENT, nil}, ourPID }, Finding{Verdict: Owned, Row: "11"}},
		{"ENOENT, then ESRCH", func(s *scene) { s.kernel.pins, s.kernel.leader = []error{syscall.ENOENT, syscall.ESRCH}, ourPID }, Finding{Verdict: Gone, Row: "5"}},
		{"ENOENT twice, its own leader", func(s *scene) { s.kernel.pins, s.kernel.leader = []error{syscall.ENOENT}, ourPID }, Finding{Verdict: Unverifiable, Row: "6", Reason: "leads a process"}},
		{"ENOENT, Tgid unreadable", func(s *scene) { s.kernel.pins, s.kernel.tgidEr = []error{syscall.ENOENT}, syscall.EACCES }, Finding{Verdict: Unverifiable, Row: "6"}},

		{"EMFILE", func(s *scene) { s.kernel.pins = []error{syscall.EMFILE} }, Finding{Verdict: Unverifiable, Row: "7"}},
		{"ENFILE", func(s *scene) { s.kernel.pins = []error{syscall.ENFILE} }, Finding{Verdict: Unverifiable, Row: "7"}},
		{"ENOMEM", func(s *scene) { s.kernel.pins = []error{syscall.ENOMEM} }, Finding{Verdict: Unverifiable, Row: "7"}},
		{"an errno of tomorrow", func(s *scene) { s.kernel.pins = []error{syscall.Errno(512)} }, Finding{Verdict: Unverifiable, Row: "7"}},
		{"EMFILE at the inode", func(s *scene) { s.kernel.idErr = syscall.EMFILE }, Finding{Verdict: Unverifiable, Row: "7"}},
		{"EMFILE at the row", func(s *scene) { noInode(s); s.kernel.rows = []rowAnswer{{err: syscall.EMFILE}} }, Finding{Verdict: Unverifiable, Row: "7"}},
		{"poll fails", func(s *scene) { s.kernel.lifeEr = syscall.ENOMEM }, Finding{Verdict: Unverifiable, Row: "7"}},

		{"ENOSYS: token equal", func(s *scene) { s.kernel.pins = []error{syscall.ENOSYS} }, Finding{Verdict: Owned, Row: "8", Unpinned: true}},
		{"EPERM: token equal", func(s *scene) { s.kernel.pins = []error{syscall.EPERM} }, Finding{Verdict: Owned, Row: "8", Unpinned: true}},
		{"unpinned: token differs", func(s *scene) { s.kernel.pins, s.ref.Start = []error{syscall.ENOSYS}, "linux:778" }, Finding{Verdict: Foreign, Row: "8", Unpinned: true}},
		{"unpinned: nobody, or a thread", func(s *scene) { s.kernel.pins, s.kernel.rows = []error{syscall.ENOSYS}, []rowAnswer{{err: ErrGone}} }, Finding{Verdict: Gone, Row: "8", Unpinned: true}},
		{"unpinned: hidden", func(s *scene) {
			s.kernel.pins, s.kernel.rows = []error{syscall.ENOSYS}, []rowAnswer{{err: ErrUnverifiable}}
		}, Finding{Verdict: Unverifiable, Row: "8", Unpinned: true}},
		{"unpinned: recorded by inode alone", func(s *scene) { s.kernel.pins, s.ref.Start = []error{syscall.ENOSYS}, "" }, Finding{Verdict: Unverifiable, Row: "8", Unpinned: true}},
		{"unpinned: zombie", func(s *scene) {
			s.kernel.pins, s.kernel.rows = []error{syscall.ENOSYS}, []rowAnswer{{p: ourRow('Z', 1)}}
		}, Finding{Verdict: Gone, Row: "8", Unpinned: true, Zombie: true, ZombieOf: 17}},
		{"unpinned: dead leader, living thread", func(s *scene) {
			s.kernel.pins, s.kernel.rows = []error{syscall.ENOSYS}, []rowAnswer{{p: ourRow('Z', 2)}}
		}, Finding{Verdict: Owned, Row: "8", Unpinned: true}},
		{"unpinned: other time namespace", func(s *scene) { s.kernel.pins, s.ref.TimeNS = []error{syscall.ENOSYS}, "4026532300:9" }, Finding{Verdict: Unverifiable, Row: "10a", Unpinned: true}},
		{"unpinned: no start shown", func(s *scene) {
			s.kernel.pins, s.kernel.rows = []error{syscall.ENOSYS}, []rowAnswer{{p: Process{PID: ourPID}}}
		}, Finding{Verdict: Unverifiable, Row: "8", Unpinned: true}},

		{"inode differs, token equal", func(s *scene) { s.kernel.inode = ptr(ourInode + 1) }, Finding{Verdict: Foreign, Row: "9"}},
		{"inode equal, token differs", func(s *scene) { s.ref.Start = "linux:1" }, Finding{Verdict: Owned, Row: "11"}},
		{"inode equal, row hidden", func(s *scene) { s.kernel.rows = []rowAnswer{{err: enoent()}} }, Finding{Verdict: Owned, Row: "11"}},
		{"inode equal, other time namespace", func(s *scene) { s.ref.TimeNS = "4026532300:9" }, Finding{Verdict: Owned, Row: "11"}},

		{"old kernel: token equal", func(s *scene) { s.kernel.inode = nil }, Finding{Verdict: Owned, Row: "11"}},
		{"no inode recorded: token equal", noInode, Finding{Verdict: Owned, Row: "11"}},
		{"no inode recorded: token differs", func(s *scene) { noInode(s); s.ref.Start = "linux:778" }, Finding{Verdict: Foreign, Row: "10"}},
		{"reaped while the row was read", func(s *scene) { noInode(s); s.ref.Start = "linux:778"; s.kernel.life = []life{reaped} }, Finding{Verdict: Gone, Row: "12"}},

		{"hidden: ENOENT", func(s *scene) { noInode(s); s.kernel.rows = []rowAnswer{{err: enoent()}} }, Finding{Verdict: Unverifiable, Row: "10a", Reason: "hidepid"}},
		{"hidden: EPERM", func(s *scene) { noInode(s); s.kernel.rows = []rowAnswer{{err: syscall.EPERM}} }, Finding{Verdict: Unverifiable, Row: "10a", Reason: "hidepid"}},
		{"hidden, then reaped", func(s *scene) {
			noInode(s)
			s.kernel.rows = []rowAnswer{{err: enoent()}}
			s.kernel.life = []life{reaped}
		}, Finding{Verdict: Gone, Row: "12"}},
		{"torn once", func(s *scene) { noInode(s); s.kernel.rows = []rowAnswer{{err: errMalformed}, {p: ourRow('S', 1)}} }, Finding{Verdict: Owned, Row: "11"}},
		{"torn twice", func(s *scene) { noInode(s); s.kernel.rows = []rowAnswer{{err: errMalformed}} }, Finding{Verdict: Unverifiable, Row: "10a"}},
		{"other time namespace", func(s *scene) { noInode(s); s.ref.TimeNS = "4026532300:9" }, Finding{Verdict: Unverifiable, Row: "10a", Reason: "time namespace"}},
		{"inode alone, on an old kernel", func(s *scene) { s.ref.Start, s.kernel.inode = "", nil }, Finding{Verdict: Unverifiable, Row: "10a", Reason: "inode alone"}},

		{"dead leader, living thread", func(s *scene) { s.kernel.rows = []rowAnswer{{p: ourRow('Z', 2)}} }, Finding{Verdict: Owned, Row: "11"}},
		{"zombie", func(s *scene) { s.kernel.life = []life{zombie} }, Finding{Verdict: Gone, Row: "12", Zombie: true, ZombieOf: 17, Reason: "has not reaped"}},
		{"zombie by token", func(s *scene) { noInode(s); s.kernel.life = []life{zombie} }, Finding{Verdict: Gone, Row: "12", Zombie: true, ZombieOf: 17}},
		{"zombie whose row is hidden", func(s *scene) { s.kernel.life, s.kernel.rows = []life{zombie}, []rowAnswer{{err: enoent()}} }, Finding{Verdict: Gone, Row: "12", Zombie: true}},
		{"zombie reaped while it was read", func(s *scene) { s.kernel.life = []life{zombie, reaped} }, Finding{Verdict: Gone, Row: "12", Zombie: true}},
		{"reaped", func(s *scene) { s.kernel.life = []life{reaped} }, Finding{Verdict: Gone, Row: "12"}},

		{"legacy: absent", func(s *scene) { s.ref = legacyRef(); s.kernel.pins = []error{syscall.ESRCH} }, Finding{Verdict: Gone, Row: "5"}},
		{"legacy: token differs", func(s *scene) { s.ref = legacyRef(); s.ref.Start = "linux:1" }, Finding{Verdict: Foreign, Row: "10"}},
		{"legacy: token equal", func(s *scene) { s.ref = legacyRef() }, Finding{Verdict: Unverifiable, Row: "legacy"}},
		{"legacy: no token", func(s *scene) { s.ref = legacyRef(); s.ref.Start = "" }, Finding{Verdict: Unverifiable, Row: "legacy"}},
		{"legacy: zombie", func(s *scene) { s.ref = legacyRef(); s.kernel.life = []life{zombie} }, Finding{Verdict: Gone, Row: "12", Zombie: true, ZombieOf: 17}},
		{"legacy: another machine", func(s *scene) { s.ref = legacyRef(); s.ref.Machine = "m2"; s.kernel.pins = []error{syscall.ESRCH} }, Finding{Verdict: Unverifiable, Row: "legacy", Reason: "another machine"}},
		{"legacy: another pid namespace", func(s *scene) {
			s.ref = legacyRef()
			s.ref.PIDNS = "4026532200"
			s.kernel.pins = []error{syscall.ESRCH}
		}, Finding{Verdict: Unverifiable, Row: "4"}},
		{"legacy: seen from a time namespace", func(s *scene) { s.ref = legacyRef(); s.facts.TimeNS = "4026532300:9"; s.ref.Start = "linux:1" }, Finding{Verdict: Unverifiable, Row: "10a"}},
		{"legacy, unpinned: token equal", func(s *scene) { s.ref = legacyRef(); s.kernel.pins = []error{syscall.ENOSYS} }, Finding{Verdict: Unverifiable, Row: "legacy"}},
		{"legacy, unpinned: no token", func(s *scene) { s.ref = legacyRef(); s.ref.Start = ""; s.kernel.pins = []error{syscall.ENOSYS} }, Finding{Verdict: Unverifiable, Row: "legacy"}},

		{"boot time moved: absent", func(s *scene) { movedBoot(s); s.kernel.pins = []error{syscall.ESRCH} }, Finding{Verdict: Gone, Row: "5"}},
		{"boot time moved: token equal", movedBoot, Finding{Verdict: Unverifiable, Row: "3", Reason: "clock was set"}},
		{"boot time moved: token differs", func(s *scene) { movedBoot(s); noInode(s); s.ref.Start = "openbsd:1" }, Finding{Verdict: Unverifiable, Row: "3"}},
		{"boot time moved, another machine", func(s *scene) { movedBoot(s); s.ref.Machine = "m2" }, Finding{Verdict: Unverifiable, Row: "3", Reason: "another boot"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &scene{ourRef(), ourFacts(), ourKernel()}
			c.set(s)
			h, got := s.kernel.verifier(s.facts).verify(s.ref)
			if !strings.Contains(got.Reason, c.want.Reason) || (got.Reason == "") != (got.Verdict == Owned) {
				t.Errorf("reason %q, want %q in it", got.Reason, c.want.Reason)
			}
			if got.Reason = c.want.Reason; got != c.want {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
			if len(got.Reason) > 500 {
				t.Errorf("a reason of %d bytes", len(got.Reason))
			}
			checkHandle(t, s.kernel, h, got)
		})
	}
}

// checkHandle: there is a handle exactly for Owned, no pin leaks, and looking
// has signalled nobody.
func checkHandle(t *testing.T, k *fakeKernel, h Handle, f Finding) {
	t.Helper()
	if (h != nil) != (f.Verdict == Owned) {
		t.Fatalf("verdict %s with handle %v", f.Verdict, h)
	}
	if h != nil {
		_ = h.Close()
		_ = h.Close()
	}
	if k.pinned != k.unpinned {
		t.Errorf("%d pinned, %d given back", k.pinned, k.unpinned)
	}
	if len(k.sent)+len(k.killed) != 0 {
		t.Errorf("a look signalled: %v %v", k.sent, k.killed)
	}
}

func legacyRef() Ref { return Ref{PID: ourPID, Start: ourStart} }

func movedBoot(s *scene) {
	s.facts.OS, s.facts.PIDNS, s.facts.TimeNS = "openbsd", "", ""
	s.ref.PIDNS, s.ref.TimeNS, s.ref.Start = "", "", "openbsd:777"
	s.kernel.rows[0].p.Start = "openbsd:777"
	s.facts.Boot, s.ref.Boot = weakBoot+"1700000000000000", weakBoot+"1700000001000000"
}

// beyond32Bits is a number that 32 bits would cut to ourPID. Where an int has
// no more than that there is none, and the largest int stands in for it.
func beyond32Bits() int {
	n := int64(1) << 32
	n += ourPID
	if int64(int(n)) != n {
		return math.MaxInt
	}
	return int(n)
}
