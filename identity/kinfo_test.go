package identity

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"
)

// The rows below are written field by field in the order of the systems'
// headers, so that the offsets of the parser are held against the headers and
// not against themselves. They were not recorded on those systems.

// darwinRow is struct kinfo_proc of xnu's <sys/sysctl.h>, 64 bits.
type darwinRow struct {
	StartSec             int64
	StartUsec, _         int32
	Vmspace, Sigacts     uint64
	Flag                 uint32
	Stat                 int8
	_                    [3]byte
	PID, OPPID, DupFD, _ int32
	UserStack, ExitThr   uint64
	Debugger, Sigwait    int32
	EstCPU               uint32
	CPTicks              int32
	PctCPU, _            uint32
	Wchan, Wmesg         uint64
	SwTime, SlpTime      uint32
	RealTimer            [32]byte
	RTime                [16]byte
	UTicks, STicks, ITix uint64
	TraceFlag, _         int32
	Tracep               uint64
	SigList, _           int32
	Textvp               uint64
	HoldCnt              int32
	SigMask              uint32
	SigIgnore, SigCatch  uint32
	Priority, UsrPri     uint8
	Nice                 int8
	Comm                 [17]byte
	_                    [4]byte
	Pgrp, Addr           uint64
	XStat, AcFlag        uint16
	_                    [4]byte
	Ru                   uint64

	Paddr, Sess      uint64
	PcLock           [72]byte
	PcUcred          uint64
	RUID, SVUID      uint32
	RGID, SVGID      uint32
	RefCnt, _        int32
	UcRef            int32
	UID              uint32
	NGroups, _       int16
	Groups           [16]uint32
	Vm               [64]byte
	_                [4]byte
	PPID, PGID       int32
	Jobc, _          int16
	TDev             uint32
	TPGID, _         int32
	TSess            uint64
	EWmesg           [8]byte
	XSize            int32
	XRSS, XCc, XSwrs int16
	_                [2]byte
	EFlag            int32
	Login            [12]byte
	Spare            [4]int32
	_                [4]byte
}

// freebsdRow is struct kinfo_proc of FreeBSD's <sys/user.h>, 64 bits.
type freebsdRow struct {
	StructSize, Layout                          int32
	Args, Paddr, Addr, Tracep, Textvp, FD, Vm   uint64
	Wchan                                       uint64
	PID, PPID, PGID, TPGID, SID, TSID           int32
	Jobc, Spare1                                int16
	TDev11                                      uint32
	SigList, SigMask, SigIgnore, SigCatch       [2]uint64
	UID, RUID, SVUID, RGID, SVGID               uint32
	NGroups, Spare2                             int16
	Groups                                      [16]uint32
	Size                                        uint64
	RSS, SwRSS, TSize, DSize, SSize             int64
	XStat, AcFlag                               uint16
	PctCPU, EstCPU, SlpTime, SwTime, Cow        uint32
	Runtime                                     uint64
	StartSec, StartUsec, ChildSec, ChildUsec    int64
	Flag, KiFlag                                int64
	TraceFlag                                   int32
	Stat, Nice, Lock, RQIndex                   int8
	OnCPUOld, LastCPUOld                        uint8
	TDName                                      [17]byte
	Wmesg                                       [9]byte
	Login                                       [18]byte
	LockName                                    [9]byte
	Comm                                        [20]byte
	Emul                                        [17]byte
	LoginClass                                  [18]byte
	MoreTDName                                  [4]byte
	SpareStrings                                [46]byte
	SpareInts                                   [2]int32
	TDev                                        uint64
	OnCPU, LastCPU, Tracer, Flag2, Fib, CR, JID int32
	NumThreads                                  int32
	Rest                                        [1088 - 600]byte
}

// openbsdRow is struct kinfo_proc of OpenBSD's <sys/sysctl.h>.
type openbsdRow struct {
	Ptrs                                [12]uint64
	EFlag, ExitSig, Flag                int32
	PID, PPID, SID, PGID, TPGID         int32
	UID, RUID, GID, RGID                uint32
	Groups                              [16]uint32
	NGroups, Jobc                       int16
	TDev                                uint32
	EstCPU, RTimeSec, RTimeUsec         uint32
	CPTicks                             int32
	PctCPU, SwTime, SlpTime             uint32
	SchedFlags                          int32
	UTicks, STicks, ITicks, Tracep      uint64
	TraceFlag, HoldCnt, SigList         int32
	SigMask, SigIgnore, SigCatch        uint32
	Stat                                int8
	Priority, UsrPri, Nice              uint8
	XStat, AcFlag                       uint16
	Comm                                [24]byte
	Wmesg                               [8]byte
	Wchan                               uint64
	Login                               [32]byte
	RSS, TSize, DSize, SSize            int32
	UValid                              int64
	StartSec                            uint64
	StartUsec                           uint32
	UTimeSec, UTimeUsec, STimeSec, STus uint32
	_                                   [4]byte
	RUsage                              [14]uint64
	CTimeSec, CTimeUsec                 uint32
	PSFlags                             uint32
	Spare                               int32
	Rest                                [616 - 568]byte
}

func sample(t testing.TB, row any) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := binary.Write(&b, binary.NativeEndian, row); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func name17(s string) (out [17]byte) { copy(out[:], s); return }
func name20(s string) (out [20]byte) { copy(out[:], s); return }
func name24(s string) (out [24]byte) { copy(out[:], s); return }

func darwinSample() darwinRow {
	return darwinRow{
		StartSec: 1_700_000_000, StartUsec: 123456, Flag: 0x4004, Stat: 3, PID: 501, SigIgnore: 1 << 12,
		Comm: name17("python3.12"), RUID: 502, UID: 503, PPID: 1, PGID: 499, TDev: 0x10000002, TPGID: 498, Textvp: 1 << 60,
	}
}

func freebsdSample() freebsdRow {
	return freebsdRow{
		StructSize: 1088, PID: 1201, PPID: 1200, PGID: 1201, TPGID: 7, SID: 1199, SigIgnore: [2]uint64{1 << 0, 0},
		UID: 1002, RUID: 1001, RSS: 512, StartSec: 1_700_000_000, StartUsec: 42, ChildSec: 9, Flag: 0x10000002,
		Stat: 2, Comm: name20("llama-server"), TDev: 0x8e, NumThreads: 17,
	}
}

func openbsdSample() openbsdRow {
	return openbsdRow{
		PID: 33001, PPID: 33000, SID: 32999, PGID: 33001, TPGID: 5, UID: 1002, RUID: 1001, TDev: 1<<32 - 1,
		SigIgnore: 1 << 19, Stat: 3, Comm: name24("ollama"), RSS: 100, UValid: 1,
		StartSec: 1_700_000_000, StartUsec: 7, PSFlags: 0x100,
	}
}

func TestKinfo(t *testing.T) {
	zombieD, zombieF, deadO := darwinSample(), freebsdSample(), openbsdSample()
	zombieD.Stat, zombieF.Stat, deadO.Stat = 5, 5, 6
	deadO.UValid, deadO.StartSec = 0, 0
	kernel := freebsdSample()
	kernel.Flag = 0x4
	const at = 1_700_000_000_000_000
	for _, c := range []struct {
		name   string
		layout kinfo
		row    any
		start  int64
		want   Process
	}{
		{"darwin", darwinKinfo, darwinSample(), at + 123456, Process{
			PID: 501, PPID: 1, PGID: 499, UID: 502, TTY: 0x10000002, TPGID: 498, Comm: "python3.12", State: 'S', SigIgn: 1 << 12, RSS: -1}},
		{"darwin zombie", darwinKinfo, zombieD, at + 123456, Process{
			PID: 501, PPID: 1, PGID: 499, UID: 502, TTY: 0x10000002, TPGID: 498, Comm: "python3.12", State: 'Z', SigIgn: 1 << 12, RSS: -1}},
		{"freebsd", freebsdKinfo, freebsdSample(), at + 42, Process{
			PID: 1201, PPID: 1200, PGID: 1201, SID: 1199, UID: 1001, TTY: 0x8e, TPGID: 7, Comm: "llama-server", State: 'R', Threads: 17, SigIgn: 1, RSS: 512 * 4096}},
		{"freebsd zombie", freebsdKinfo, zombieF, at + 42, Process{
			PID: 1201, PPID: 1200, PGID: 1201, SID: 1199, UID: 1001, TTY: 0x8e, TPGID: 7, Comm: "llama-server", State: 'Z', Threads: 17, SigIgn: 1, RSS: 512 * 4096}},
		{"freebsd kernel process", freebsdKinfo, kernel, at + 42, Process{
			PID: 1201, PPID: 1200, PGID: 1201, SID: 1199, UID: 1001, TTY: 0x8e, TPGID: 7, Comm: "llama-server", State: 'R', Threads: 17, SigIgn: 1, RSS: 512 * 4096, Kernel: true}},
		{"openbsd", openbsdKinfo, openbsdSample(), at + 7, Process{
			PID: 33001, PPID: 33000, PGID: 33001, SID: 32999, UID: 1001, TPGID: 5, Comm: "ollama", State: 'S', SigIgn: 1 << 19, RSS: 100 * 4096}},
		{"openbsd corpse", openbsdKinfo, deadO, 0, Process{
			PID: 33001, PPID: 33000, PGID: 33001, SID: 32999, UID: 1001, TPGID: 5, Comm: "ollama", State: 'Z', SigIgn: 1 << 19, RSS: 100 * 4096}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, start, err := c.layout.parse(sample(t, c.row), 4096)
			if err != nil || start != c.start || !reflect.DeepEqual(p, c.want) {
				t.Errorf("got %+v, start %d, %v\nwant %+v, start %d", p, start, err, c.want, c.start)
			}
		})
	}
}

func TestKinfoRefusesOtherSizes(t *testing.T) {
	row := sample(t, freebsdSample())
	for _, b := range [][]byte{nil, row[:len(row)-1], append(slices.Clone(row), 0)} {
		if _, _, err := freebsdKinfo.parse(b, 4096); !errors.Is(err, errMalformed) {
			t.Errorf("%d bytes: %v", len(b), err)
		}
		if err := freebsdKinfo.parseAll(b, 4096, func(Process, int64) {}); len(b) != 0 && !errors.Is(err, errMalformed) {
			t.Errorf("a table of %d bytes: %v", len(b), err)
		}
	}
	n := 0
	if err := freebsdKinfo.parseAll(append(slices.Clone(row), row...), 4096, func(Process, int64) { n++ }); err != nil || n != 2 {
		t.Errorf("two rows: %d, %v", n, err)
	}
}

func TestProcargs2(t *testing.T) {
	count := func(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }
	good := append(count(3), "/bin/sh\x00\x00\x00\x00sh\x00-c\x00\x00HOME=/root\x00HOB_RUN=x\x00\x00ptr_munge=1\x00"...)
	args, env, err := parseProcargs2(good)
	if err != nil || !slices.Equal(args, []string{"sh", "-c", ""}) || !slices.Equal(env, []string{"HOME=/root", "HOB_RUN=x"}) {
		t.Errorf("%q %q %v", args, env, err)
	}
	for _, bad := range [][]byte{nil, count(1), append(count(2), "/bin/sh\x00sh\x00"...), append(count(1<<31), "/x\x00"...)} {
		if _, _, err := parseProcargs2(bad); !errors.Is(err, errMalformed) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestTimeval(t *testing.T) {
	b := binary.NativeEndian.AppendUint64(nil, 1_700_000_000)
	b = binary.NativeEndian.AppendUint64(b, 999_999)
	if got, err := parseTimeval(b); err != nil || got != time.Unix(1_700_000_000, 999_999_000).UnixMicro() {
		t.Errorf("%d, %v", got, err)
	}
	b[8], b[9], b[10] = 0xff, 0xff, 0xff
	for _, bad := range [][]byte{nil, b[:15], b} {
		if _, err := parseTimeval(bad); !errors.Is(err, errMalformed) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}

func TestPS(t *testing.T) {
	rows, err := parsePS([]byte("    1     0     1     0 Is   /sbin/init\n 4321     1  4321  1000 Z    \n99 1 99 0 S (x) y  z\n"))
	want := []Process{
		{PID: 1, PGID: 1, State: 'I', RSS: -1, Args: []string{"/sbin/init"}},
		{PID: 4321, PPID: 1, PGID: 4321, UID: 1000, State: 'Z', RSS: -1},
		{PID: 99, PPID: 1, PGID: 99, State: 'S', RSS: -1, Args: []string{"(x) y  z"}},
	}
	if err != nil || !reflect.DeepEqual(rows, want) {
		t.Errorf("%+v, %v", rows, err)
	}
	for _, bad := range []string{"\n", "ps: cannot open\n", "1 2 3\n", "-4 1 1 0 S x\n", "0 0 0 0 S x\n", "1 1 1 0\n"} {
		if _, err := parsePS([]byte(bad)); !errors.Is(err, errMalformed) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
