package identity

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refuse installs a seccomp filter in every thread of this process that answers
// the system call with an errno, as container runtimes do.
func refuse(t tb, number uintptr, errno unix.Errno) {
	stmt := func(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }
	filter := []unix.SockFilter{
		stmt(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, 0), // seccomp_data.nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(number), Jt: 0, Jf: 1},
		stmt(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ERRNO|uint32(errno)),
		stmt(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ALLOW),
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatalf("no_new_privs: %v", err)
	}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		t.Fatalf("seccomp: %v", e)
	}
}

func init() {
	observers["thread-unpinned"] = func(o *observer) {
		refuse(o, unix.SYS_PIDFD_OPEN, unix.ENOSYS)
		o.look()
		if f := expect(o, o, "a thread's number", o.refs["thread"], Gone, "8"); !f.Unpinned {
			o.Errorf("not marked unpinned: %+v", f)
		}
		if h, err := o.Open(o.refs["thread"].PID); !errors.Is(err, ErrGone) || h != nil {
			o.Errorf("opened a thread: %v", err)
		}
	}
	observers["unpinned-owned"] = func(o *observer) {
		refuse(o, unix.SYS_PIDFD_OPEN, unix.ENOSYS)
		o.look()
		expect(o, o, "it", o.refs["it"], Owned, "8")
	}
	observers["seccomp ENOSYS"] = func(o *observer) { seccompUnpinned(o, unix.ENOSYS) }
	observers["seccomp EPERM"] = func(o *observer) { seccompUnpinned(o, unix.EPERM) }
	observers["seccomp send"] = seccompSend
	observers["descriptors"] = noDescriptors
}

// TestSeccomp: a sandbox without pidfd_open gets the unpinned way, said aloud; one
// without pidfd_send_signal gets no signal at all.
func TestSeccomp(t *testing.T) {
	host := localHost(t)
	stranger := start(t, exec.Command("sleep", "600"))
	ref := refOf(t, host, stranger.pid)
	for _, name := range []string{"seccomp ENOSYS", "seccomp EPERM", "seccomp send"} {
		t.Run(name, func(t *testing.T) {
			observe(t, name, map[string]Ref{"stranger": ref}, nil)
			if !lives(stranger.pid) {
				t.Error("the stranger is dead")
			}
		})
	}
}

func seccompUnpinned(o *observer, errno unix.Errno) {
	cmd := exec.Command("sleep", "600")
	o.must("start", cmd.Start())
	refuse(o, unix.SYS_PIDFD_OPEN, errno)
	o.look()
	if f := o.Facts(); f.Pidfd || f.Pidfs || len(f.Incomplete) == 0 {
		o.Errorf("facts %+v", f)
	}
	other := byToken(o.refs["stranger"])
	other.Start = startToken("linux", tokenNumber(other.Start)+1)
	expect(o, o, "another token", other, Foreign, "8")
	inodeOnly := o.refs["stranger"]
	inodeOnly.Start = ""
	expect(o, o, "inode alone", inodeOnly, Unverifiable, "8")

	h, err := o.Open(cmd.Process.Pid)
	o.must("open", err)
	if h.Ref().PIDFS != nil || h.Ref().UID == nil || *h.Ref().UID != os.Getuid() {
		o.Errorf("ref %+v", h.Ref())
	}
	if f := expect(o, o, "our own", h.Ref(), Owned, "8"); !f.Unpinned {
		o.Errorf("not marked unpinned: %+v", f)
	}
	eventually(o, "its row has its arguments", func() bool { // they come late in an exec
		row, err := h.Read(WantArgs)
		return err == nil && row.PPID == os.Getpid() && len(row.Args) == 2
	})
	o.must("wait with a deadline", o.Wait(bg, []Handle{h}, time.Now().Add(5*time.Millisecond)))
	o.must("signal", h.Signal(syscall.SIGTERM))
	soon, cancel := context.WithTimeout(bg, patience)
	defer cancel()
	o.must("wait", o.Wait(soon, []Handle{h}, time.Time{}))
	if f := h.Verify(); f.Verdict != Gone || !f.Zombie || f.ZombieOf != os.Getpid() {
		o.Errorf("zombie: %+v", f)
	}
	if err := h.Signal(syscall.SIGTERM); !errors.Is(err, ErrGone) {
		o.Errorf("signal to a zombie: %v", err)
	}
	_ = cmd.Wait()
	expect(o, o, "reaped", h.Ref(), Gone, "8")
}

// seccompSend: the pin can be had and the signal through it cannot. By number it
// would go; it must not.
func seccompSend(o *observer) {
	cmd := exec.Command("sleep", "600")
	o.must("start", cmd.Start())
	h, err := o.Open(cmd.Process.Pid)
	o.must("open", err)
	refuse(o, unix.SYS_PIDFD_SEND_SIGNAL, unix.EPERM)
	if err := h.Signal(syscall.SIGKILL); !errors.Is(err, ErrNotPermitted) {
		o.Errorf("signal: %v", err)
	}
	if f := h.Verify(); f.Verdict != Owned {
		o.Errorf("it was ended all the same: %+v", f)
	}
	o.must("end it", unix.Kill(cmd.Process.Pid, unix.SIGKILL))
	_ = cmd.Wait()
}

// TestNoDescriptors: EMFILE is never "gone".
func TestNoDescriptors(t *testing.T) {
	s := start(t, exec.Command("sleep", "600"))
	observe(t, "descriptors", map[string]Ref{"it": refOf(t, localHost(t), s.pid)}, nil)
}

func noDescriptors(o *observer) {
	var held []int
	lim := unix.Rlimit{Cur: 64, Max: 64}
	o.must("setrlimit", unix.Setrlimit(unix.RLIMIT_NOFILE, &lim))
	for {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EMFILE) {
			break
		}
		o.must("open", err)
		held = append(held, fd)
	}
	freeOne := func() {
		o.must("close", unix.Close(held[0]))
		held = held[1:]
	}
	expect(o, o, "none left", o.refs["it"], Unverifiable, "7")
	if h, err := o.Open(o.refs["it"].PID); !errors.Is(err, ErrUnverifiable) || h != nil {
		o.Errorf("open: %v", err)
	}
	if _, err := o.Snapshot(bg, 0); !errors.Is(err, ErrUnverifiable) {
		o.Errorf("snapshot: %v", err)
	}
	if _, err := o.Children(os.Getppid()); !errors.Is(err, ErrUnverifiable) {
		o.Errorf("children: %v", err)
	}
	freeOne()
	expect(o, o, "one left, by inode", o.refs["it"], Owned, "11")
	expect(o, o, "one left, by token", byToken(o.refs["it"]), Unverifiable, "7")
	if _, err := o.Snapshot(bg, 0); !errors.Is(err, ErrUnverifiable) {
		o.Errorf("a snapshot of which no row can be read: %v", err)
	}
	freeOne()
	expect(o, o, "two left, by token", byToken(o.refs["it"]), Owned, "11")
}

// TestOnlyPidfsIdentifies: before Linux 6.9 all pidfds are one anonymous inode. An
// eventfd is of the same kind still.
func TestOnlyPidfsIdentifies(t *testing.T) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if id, err := (linuxKernel{}).id(fd); id != nil || err != nil {
		t.Errorf("an anonymous inode is taken for an identity: %v, %v", *id, err)
	}
}
