package identity

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestSignalTable is what becomes of a signal (rows 13 and 14 among it), by pin
// and without.
func TestSignalTable(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*fakeKernel)
		want error
		sent int
	}{
		{"taken", func(*fakeKernel) {}, nil, 1},
		{"13: not permitted", func(k *fakeKernel) { k.sendEr = syscall.EPERM }, ErrNotPermitted, 1},
		{"ended meanwhile", func(k *fakeKernel) { k.sendEr = syscall.ESRCH }, ErrGone, 1},
		{"no such signal", func(k *fakeKernel) { k.sendEr = syscall.EINVAL }, syscall.EINVAL, 1},
		{"zombie", func(k *fakeKernel) { k.life, k.rows = []life{zombie}, []rowAnswer{{p: ourRow('Z', 1)}} }, ErrGone, 0},
		{"reaped", func(k *fakeKernel) { k.life, k.rows = []life{reaped}, []rowAnswer{{err: ErrGone}} }, ErrGone, 0},
		{"cannot look", func(k *fakeKernel) { k.lifeEr, k.rows = syscall.ENOMEM, []rowAnswer{{err: ErrUnverifiable}} }, ErrUnverifiable, 0},
	} {
		for _, way := range []string{"pinned", "unpinned"} {
			t.Run(c.name+" "+way, func(t *testing.T) {
				k := ourKernel()
				if way == "unpinned" {
					k.pins = []error{syscall.ENOSYS}
				}
				h, f := k.verifier(ourFacts()).verify(ourRef())
				if f.Verdict != Owned {
					t.Fatal(f)
				}
				defer h.Close()
				c.set(k)
				if err := h.Signal(syscall.SIGTERM); !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				byPin, byNumber := len(k.sent), len(k.killed)
				if way == "unpinned" {
					byPin, byNumber = byNumber, byPin
				}
				if byPin != c.sent || byNumber != 0 {
					t.Errorf("sent %v by pin and %v by number", k.sent, k.killed)
				}
			})
		}
	}
}

// TestUnpinnedSignalSaysWhenTheNumberChangedHands: it cannot be prevented
// without a pin, so it must at least be said.
func TestUnpinnedSignalSaysWhenTheNumberChangedHands(t *testing.T) {
	k := ourKernel()
	k.pins = []error{syscall.ENOSYS}
	h, _ := k.verifier(ourFacts()).verify(ourRef())
	other := ourRow('S', 1)
	other.Start = "linux:779"
	k.rows = []rowAnswer{{p: ourRow('S', 1)}, {p: other}}
	if err := h.Signal(syscall.SIGTERM); !errors.Is(err, ErrReused) {
		t.Errorf("got %v", err)
	}
	if err := h.Signal(syscall.SIGKILL); !errors.Is(err, ErrReused) || len(k.killed) != 1 {
		t.Errorf("the next signal: %v, %v", err, k.killed)
	}
}

// TestClosedHandle: a closed descriptor's number may be another pidfd already.
func TestClosedHandle(t *testing.T) {
	k := ourKernel()
	h, _ := k.verifier(ourFacts()).verify(ourRef())
	_ = h.Close()
	_, readErr := h.Read(0)
	for what, err := range map[string]error{
		"signal": h.Signal(syscall.SIGTERM), "verify": h.Verify().Err(), "read": readErr,
	} {
		if !errors.Is(err, ErrUnverifiable) {
			t.Errorf("%s through a closed handle: %v", what, err)
		}
	}
	if len(k.sent) != 0 {
		t.Errorf("sent %v", k.sent)
	}
}

func TestOpenTable(t *testing.T) {
	for _, c := range []struct {
		name string
		pid  int
		set  func(*fakeKernel)
		want error
	}{
		{"lives", ourPID, func(*fakeKernel) {}, nil},
		{"zombie", ourPID, func(k *fakeKernel) { k.life = []life{zombie} }, nil},
		{"row hidden, inode shown", ourPID, func(k *fakeKernel) { k.rows = []rowAnswer{{err: enoent()}} }, nil},
		{"neither shown", ourPID, func(k *fakeKernel) { k.inode, k.rows = nil, []rowAnswer{{err: enoent()}} }, ErrUnverifiable},
		{"reaped meanwhile", ourPID, func(k *fakeKernel) { k.life = []life{reaped} }, ErrGone},
		{"absent", ourPID, func(k *fakeKernel) { k.pins = []error{syscall.ESRCH} }, ErrGone},
		{"a thread", ourPID, func(k *fakeKernel) { k.pins, k.leader = []error{syscall.ENOENT}, 7 }, ErrGone},
		{"no descriptors", ourPID, func(k *fakeKernel) { k.pins = []error{syscall.EMFILE} }, ErrUnverifiable},
		{"no inode for want of memory", ourPID, func(k *fakeKernel) { k.idErr = syscall.ENOMEM }, ErrUnverifiable},
		{"poll fails", ourPID, func(k *fakeKernel) { k.lifeEr = syscall.ENOMEM }, ErrUnverifiable},
		{"no pins here", ourPID, func(k *fakeKernel) { k.pins = []error{syscall.ENOSYS} }, nil},
		{"no pins, no start", ourPID, func(k *fakeKernel) { k.pins, k.rows = []error{syscall.ENOSYS}, []rowAnswer{{}} }, ErrUnverifiable},
		{"no pins, absent", ourPID, func(k *fakeKernel) { k.pins, k.rows = []error{syscall.ENOSYS}, []rowAnswer{{err: ErrGone}} }, ErrGone},
		{"everybody", -1, func(*fakeKernel) {}, ErrUnverifiable},
		{"our group", 0, func(*fakeKernel) {}, ErrUnverifiable},
		{"cut to 32 bits", beyond32Bits(), func(*fakeKernel) {}, ErrUnverifiable},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := ourKernel()
			c.set(k)
			h, err := k.verifier(ourFacts()).open(c.pid, time.Now())
			if (c.want == nil) != (err == nil) || c.want != nil && !errors.Is(err, c.want) || (h != nil) != (err == nil) {
				t.Fatalf("got %v, %v, want %v", h, err, c.want)
			}
			if h != nil {
				_ = h.Close()
			}
			if k.pinned != k.unpinned {
				t.Errorf("%d pinned, %d given back", k.pinned, k.unpinned)
			}
		})
	}
}

func TestReadTable(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*fakeKernel)
		want error
	}{
		{"lives", func(*fakeKernel) {}, nil},
		{"zombie", func(k *fakeKernel) { k.life, k.rows = []life{zombie}, []rowAnswer{{p: ourRow('Z', 1)}} }, nil},
		{"reaped", func(k *fakeKernel) { k.life, k.rows = []life{reaped}, []rowAnswer{{err: ErrGone}} }, ErrGone},
		{"hidden", func(k *fakeKernel) {
			k.rows = []rowAnswer{{err: fmt.Errorf("%w: %w", ErrUnverifiable, os.ErrPermission)}}
		}, ErrUnverifiable},
		{"cannot look", func(k *fakeKernel) { k.lifeEr, k.rows = syscall.ENOMEM, []rowAnswer{{err: ErrUnverifiable}} }, ErrUnverifiable},
	} {
		for _, pins := range [][]error{nil, {syscall.ENOSYS}} {
			t.Run(fmt.Sprint(c.name, pins), func(t *testing.T) {
				k := ourKernel()
				k.pins = pins
				h, _ := k.verifier(ourFacts()).verify(ourRef())
				c.set(k)
				row, err := h.Read(0)
				if (c.want == nil) != (err == nil) || c.want != nil && !errors.Is(err, c.want) {
					t.Errorf("got %+v, %v, want %v", row, err, c.want)
				}
			})
		}
	}
}

// slowKernel holds a call under way until it is let go.
type slowKernel struct {
	*fakeKernel
	entered, goOn chan bool
}

func (k slowKernel) ended(fd int) (life, error) {
	k.entered <- true
	<-k.goOn
	return k.fakeKernel.ended(fd)
}

// TestCloseWaitsForCallsUnderWay: a descriptor that is closed under a call may be
// another pidfd when the call comes to signal.
func TestCloseWaitsForCallsUnderWay(t *testing.T) {
	k := slowKernel{ourKernel(), make(chan bool), make(chan bool)}
	k.pinned = 1
	h := newPinned(&verifier{sys: k, facts: ourFacts()}, 101, ourRef())
	signalled := make(chan error)
	go func() { signalled <- h.Signal(syscall.SIGTERM) }()
	<-k.entered
	_ = h.Close()
	if k.unpinned != 0 {
		t.Error("closed under a call")
	}
	k.goOn <- true
	if err := <-signalled; err != nil || len(k.sent) != 1 {
		t.Errorf("%v, %v", k.sent, err)
	}
	if k.unpinned != 1 {
		t.Errorf("closed %d times after it", k.unpinned)
	}
}
