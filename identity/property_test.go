package identity

import (
	"errors"
	"strconv"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// errnos are what a kernel may answer.
var errnos = []error{
	nil, nil, nil, nil, syscall.ESRCH, syscall.ENOENT, syscall.EINVAL, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
	syscall.ENOSYS, syscall.EPERM, syscall.EACCES, syscall.EIO, errMalformed, ErrGone, ErrUnverifiable,
}

// anyKernel draws a kernel: any answer to any question, in any order.
func anyKernel(t *rapid.T) *fakeKernel {
	errno := rapid.SampledFrom(errnos)
	row := rapid.Custom(func(t *rapid.T) rowAnswer {
		return rowAnswer{p: Process{
			PID: ourPID, PPID: rapid.IntRange(0, 3).Draw(t, "ppid"),
			State:   State(rapid.SampledFrom([]byte("RSDZTX")).Draw(t, "state")),
			Threads: rapid.IntRange(0, 3).Draw(t, "threads"), Start: anyToken(t),
		}, err: errno.Draw(t, "row error")}
	})
	k := &fakeKernel{
		pins: rapid.SliceOfN(errno, 1, 4).Draw(t, "pins"),
		life: rapid.SliceOfN(rapid.SampledFrom([]life{living, living, zombie, reaped}), 1, 6).Draw(t, "life"),
		rows: rapid.SliceOfN(row, 1, 6).Draw(t, "rows"), leader: rapid.IntRange(0, 1).Draw(t, "leader") * ourPID,
		tgidEr: errno.Draw(t, "tgid error"), idErr: errno.Draw(t, "id error"), sendEr: errno.Draw(t, "send error"),
		lifeEr: errno.Draw(t, "poll error"),
	}
	if rapid.Bool().Draw(t, "pidfs") {
		k.inode = ptr(rapid.Uint64Range(98, 100).Draw(t, "inode"))
	}
	return k
}

func anyToken(t *rapid.T) Token {
	return Token(rapid.SampledFrom([]string{"", "linux:776", "linux:777", "linux:778"}).Draw(t, "start"))
}

// anyRef draws a record that may or may not be of the process that lives.
func anyRef(t *rapid.T) Ref {
	r := ourRef()
	r.Start = anyToken(t)
	r.PIDFS = rapid.SampledFrom([]*uint64{nil, ptr(uint64(98)), ptr(uint64(99))}).Draw(t, "pidfs")
	r.Boot = rapid.SampledFrom([]string{thisBoot, thisBoot, lastBoot, ""}).Draw(t, "boot")
	r.PIDNS = rapid.SampledFrom([]string{r.PIDNS, r.PIDNS, "4026532200:5", ""}).Draw(t, "pidns")
	r.TimeNS = rapid.SampledFrom([]string{r.TimeNS, r.TimeNS, "4026532300:9", ""}).Draw(t, "timens")
	r.Machine = rapid.SampledFrom([]string{r.Machine, "m2", ""}).Draw(t, "machine")
	if rapid.IntRange(0, 9).Draw(t, "wild") == 0 {
		r.PID = rapid.Int().Draw(t, "pid")
		r.Start = Token(rapid.String().Draw(t, "wild start"))
	}
	return r
}

// TestOnlyTheTokenPermits: whatever a record holds and a kernel answers, Owned
// means that boot, namespace and the strongest token both sides have are equal,
// and nothing else ends in a signal.
func TestOnlyTheTokenPermits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ref, k := anyRef(t), anyKernel(t)
		rows := append([]rowAnswer(nil), k.rows...)
		inode := k.inode
		h, f := k.verifier(ourFacts()).verify(ref)
		if (h != nil) != (f.Verdict == Owned) || f.Verdict != Owned && f.Reason == "" {
			t.Fatalf("handle %v, %+v", h, f)
		}
		if h == nil {
			if k.pinned != k.unpinned {
				t.Fatalf("%d pinned, %d given back: %+v", k.pinned, k.unpinned, f)
			}
			if len(k.sent)+len(k.killed) > 0 {
				t.Fatalf("signalled for %+v", f)
			}
			return
		}
		checkOwned(t, ref, f, rows, inode)
		signalOnce(t, k, h, f)
	})
}

func checkOwned(t *rapid.T, ref Ref, f Finding, rows []rowAnswer, inode *uint64) {
	if ref.Boot != thisBoot || ref.PID < 1 || ref.PID > 1<<22 || !sameNS(ref.PIDNS, ourFacts().PIDNS) {
		t.Fatalf("owned: %+v", ref)
	}
	if !f.Unpinned && ref.PIDFS != nil && inode != nil {
		if *ref.PIDFS != *inode {
			t.Fatalf("owned, and the inodes are %d and %d", *ref.PIDFS, *inode)
		}
		return
	}
	for _, r := range rows {
		if r.err == nil && r.p.Start == ref.Start && ref.Start != "" {
			return
		}
	}
	t.Fatalf("owned by no token: %+v %+v", ref, f)
}

// signalOnce: through a handle at most one signal goes out, and by the number
// only where there is no pin.
func signalOnce(t *rapid.T, k *fakeKernel, h Handle, f Finding) {
	before := len(k.killed) + len(k.sent)
	err := h.Signal(syscall.SIGKILL)
	if n := len(k.killed) + len(k.sent) - before; n > 1 || n == 0 && err == nil {
		t.Fatalf("%d signals, %v", n, err)
	}
	if len(k.killed) > 0 && !f.Unpinned {
		t.Fatal("signalled by the number although there was a pin")
	}
	if errors.Is(err, ErrReused) && !f.Unpinned {
		t.Fatalf("a pin changed hands: %v", err)
	}
	_ = h.Close()
	if k.pinned != k.unpinned {
		t.Fatalf("%d pinned, %d given back", k.pinned, k.unpinned)
	}
}

// TestRefSurvivesItsFile: what is written down reads back equal.
func TestRefSurvivesItsFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := ourFacts().newRef(rapid.IntRange(1, 1<<22).Draw(t, "pid"), time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "at"), 0))
		r.Start = Token("linux:" + strconv.FormatUint(rapid.Uint64().Draw(t, "start"), 10))
		r.PIDFS = ptr(rapid.Uint64().Draw(t, "pidfs"))
		b, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		got := ParseRef(b)
		if got.bad != "" || got.PID != r.PID || got.Start != r.Start || *got.PIDFS != *r.PIDFS || !got.RecordedAt.Equal(r.RecordedAt) {
			t.Fatalf("%s became %+v", b, got)
		}
	})
}
