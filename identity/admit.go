package identity

import (
	"fmt"
	"strconv"
	"strings"
)

// Inodes that the kernel gives to the initial namespaces (PROC_*_INIT_INO in
// include/linux/proc_ns.h). They are never recycled.
const (
	initPIDNS  = "4026531836"
	initTimeNS = "4026531834"
	initUserNS = "4026531837"
)

// maxText bounds each text of a Ref: host names end at 64 bytes on Linux and
// 255 in DNS, ids and tokens are shorter.
const maxText = 256

// admit decides rows 1 to 4 of the verdict table: what can be said about a Ref
// before any process is looked at. decided is false when a look is needed.
func admit(r Ref, f Facts) (finding Finding, decided bool) {
	if why := malformed(r, f.OS); why != "" {
		return unverifiable("1", "%s", why), true
	}
	if r.legacy() {
		return admitLegacy(r, f)
	}
	if r.PIDFS == nil && r.Start == "" {
		return unverifiable("1", "the record has neither a pidfd inode nor a start token"), true
	}
	if f.Boot == "" {
		return unverifiable("2", "this host's boot id cannot be read"), true
	}
	if r.Boot != f.Boot && !r.movedBoot(f) {
		return otherBoot(r, f), true
	}
	return admitNamespace(r, f)
}

// movedBoot reports whether the boot ids of record and host differ only by what
// a step of the clock does to them too.
func (r Ref) movedBoot(f Facts) bool {
	return r.weakBoot() && strings.HasPrefix(f.Boot, weakBoot) && r.Boot != f.Boot &&
		r.Machine != "" && r.Machine == f.Machine && r.Host != "" && r.Host == f.Host
}

// settle weakens what a look has found where the record cannot prove it: that
// nobody has the number is proof of Gone, but what a living process is stays open.
func settle(r Ref, f Facts, h Handle, found Finding) (Handle, Finding) {
	var doubt Finding
	switch {
	case found.Verdict == Owned && r.legacy():
		doubt = unverifiable("legacy", "pid %d lives, but a record without a boot id cannot prove that it is the recorded process", r.PID)
	case found.Verdict != Gone && r.movedBoot(f):
		doubt = unverifiable("3", "the host was booted again or its clock was set since pid %d was recorded, and this system's boot id does not tell which", r.PID)
	default:
		return h, found
	}
	if h != nil {
		_ = h.Close()
	}
	return nil, doubt
}

// otherBoot is row 3. A reboot of the same machine ended the process; but a
// state folder may be shared by several hosts (NFS, images that carry one
// machine id), and a container's boot id is its host's.
func otherBoot(r Ref, f Facts) Finding {
	same := r.Machine != "" && r.Machine == f.Machine && r.Host != "" && r.Host == f.Host
	if same && initialNS(r.PIDNS, f.OS) && f.InitPIDNS {
		return gone("3", "recorded before this host's last boot")
	}
	return unverifiable("3", "recorded on %s in another boot; if it was lost for good, `hob rm --forget` drops the record", hostName(r))
}

// admitNamespace is row 4: the number counts in the namespace that it was taken in.
func admitNamespace(r Ref, f Facts) (Finding, bool) {
	if sameNS(r.PIDNS, f.PIDNS) {
		return Finding{}, false
	}
	return unverifiable("4", "recorded in pid namespace %s, seen from %s", nsName(r.PIDNS), nsName(f.PIDNS)), true
}

// admitLegacy lets a record without a boot id through to a look, unless what
// it does hold says that it comes from elsewhere.
func admitLegacy(r Ref, f Facts) (Finding, bool) {
	if r.Machine != "" && f.Machine != "" && r.Machine != f.Machine {
		return unverifiable("legacy", "recorded without a boot id on another machine (%s)", hostName(r)), true
	}
	if r.PIDNS != "" {
		return admitNamespace(r, f)
	}
	return Finding{}, false
}

// legacy reports whether the record is of the kind that other tools and older
// hobs wrote: without a boot id nothing in it can prove that a living process is
// the recorded one, since ticks repeat from boot to boot and on cloned machines.
func (r Ref) legacy() bool { return r.Boot == "" }

// malformed is row 1: it says in words why a Ref cannot be what hob wrote, or
// "". A pid above 32 bits would be cut by the kernel to somebody else's number.
func malformed(r Ref, goos string) string {
	switch {
	case r.bad != "":
		return r.bad
	case r.PID < 1:
		return fmt.Sprintf("pid %d is not a process", r.PID)
	case r.PID > maxPID(goos):
		return fmt.Sprintf("pid %d is larger than any pid", r.PID)
	}
	for _, t := range []string{r.Machine, r.Host, r.Boot, r.PIDNS, r.TimeNS, string(r.Start)} {
		if len(t) > maxText {
			return fmt.Sprintf("a text of %d bytes is not one that hob writes", len(t))
		}
	}
	if !bootForm(r.Boot, goos) {
		return fmt.Sprintf("boot id %q is malformed", clip(r.Boot))
	}
	return malformedToken(r.Start, goos)
}

// bootForm checks the form of a recorded boot id where it is known: a torn one
// differs from every boot's, and would read as "gone". Both Linux and macOS have
// UUIDs.
func bootForm(boot, goos string) bool {
	if boot == "" || goos != "linux" && (goos != "darwin" || strings.HasPrefix(boot, weakBoot)) {
		return true
	}
	for i := range len(boot) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (boot[i] == '-') || !dash && !strings.ContainsRune("0123456789abcdefABCDEF", rune(boot[i])) {
			return false
		}
	}
	return len(boot) == 36
}

// malformedToken checks that a start token, if there is one, is of this system
// and in the one spelling that hob writes.
func malformedToken(t Token, goos string) string {
	if t == "" {
		return ""
	}
	source, number, _ := strings.Cut(string(t), ":")
	if source != goos {
		return fmt.Sprintf("start token %q is not of %s", clip(string(t)), goos)
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || strconv.FormatUint(n, 10) != number {
		return fmt.Sprintf("start token %q is malformed", clip(string(t)))
	}
	return ""
}

// maxPID is the largest number that a system gives to a process:
// PID_MAX_LIMIT on 64-bit Linux; elsewhere what a pid_t holds.
func maxPID(goos string) int {
	if goos == "linux" {
		return 1 << 22
	}
	return 1<<31 - 1
}

// sameNS compares two namespaces. An inode alone is recycled once its namespace
// has ended, so where one side has the unique part, both must; the initial
// namespace never ends.
func sameNS(a, b string) bool {
	if a == b {
		return true
	}
	ai, _, _ := strings.Cut(a, ":")
	bi, _, _ := strings.Cut(b, ":")
	return ai == bi && (ai == initPIDNS || ai == initTimeNS)
}

// initialNS reports whether a recorded pid namespace is the initial one. Systems
// other than Linux have only that one.
func initialNS(ns, goos string) bool {
	if goos != "linux" {
		return ns == ""
	}
	inode, _, _ := strings.Cut(ns, ":")
	return inode == initPIDNS
}

func nsName(ns string) string {
	if ns == "" {
		return "(not recorded)"
	}
	return clip(ns)
}

func hostName(r Ref) string {
	if r.Host == "" {
		return "an unnamed host"
	}
	return "host " + strconv.Quote(clip(r.Host))
}

// clip shortens text that came from a record before it enters a message.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

func owned(row string) Finding { return Finding{Verdict: Owned, Row: row} }

func gone(row, format string, args ...any) Finding {
	return Finding{Verdict: Gone, Row: row, Reason: fmt.Sprintf(format, args...)}
}

func foreign(row, format string, args ...any) Finding {
	return Finding{Verdict: Foreign, Row: row, Reason: fmt.Sprintf(format, args...)}
}

func unverifiable(row, format string, args ...any) Finding {
	return Finding{Verdict: Unverifiable, Row: row, Reason: fmt.Sprintf(format, args...)}
}

// Err is the finding as an error: nil for Owned, else one that wraps ErrGone,
// ErrReused or ErrUnverifiable.
func (f Finding) Err() error {
	switch f.Verdict {
	case Owned:
		return nil
	case Gone:
		return fmt.Errorf("%w: %s", ErrGone, f.Reason)
	case Foreign:
		return fmt.Errorf("%w: %s", ErrReused, f.Reason)
	}
	return fmt.Errorf("%w: %s", ErrUnverifiable, f.Reason)
}
