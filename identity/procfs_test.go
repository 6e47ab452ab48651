package identity

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// statText is a real line with the name in field 2 replaced.
func statText(comm string) string {
	return "4321 (" + comm + ") S 17 4320 4319 34816 4320 4194304 100 0 0 0 5 7 0 0 20 0 3 0 777 8527872 412 18446744073709551615 1 1 0 0 0 0 0 0 4096 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
}

// comms are names that a process may give itself (PR_SET_NAME).
var comms = []string{
	"sleep", "", " ", ")", "(", "a b", "x) R 1 (y\n z", ") Z 1 1 1 0 -1", "\xff\xfe", "kworker/u8:2-events_unbound",
	"1 (x) S 1 1", "((((", "))))", "\n",
}

func TestParseStat(t *testing.T) {
	for _, comm := range comms {
		s, err := parseStat([]byte(statText(comm)))
		want := statLine{
			pid: 4321, ppid: 17, pgid: 4320, sid: 4319, tty: 34816, tpgid: 4320, threads: 3,
			comm: []byte(comm), state: 'S', flags: 4194304, start: 777, rss: 412,
		}
		if err != nil || !reflect.DeepEqual(s, want) {
			t.Errorf("%q: %+v, %v", comm, s, err)
		}
	}
}

func TestParseStatRefuses(t *testing.T) {
	good := statText("x")
	for what, text := range map[string]string{
		"empty": "", "no name": "4321", "no end of the name": "4321 (x S 17", "no start": "4321 x) S 17 4320",
		"negative pid": "-" + good, "no pid": good[4:], "cut in field 24": good[:strings.Index(good, "412")+2],
		"cut in field 22": good[:strings.Index(good, "777")+1], "letters": strings.Replace(good, "777", "7x7", 1),
		"negative start": strings.Replace(good, "777", "-777", 1), "start past 63 bits": strings.Replace(good, "777", "9999999999999999999", 1),
		"no space after the name": strings.Replace(good, ") S", ")S", 1), "negative parent": strings.Replace(good, "S 17", "S -17", 1),
		"state of two letters": strings.Replace(good, ") S", ") SS", 1),
	} {
		if s, err := parseStat([]byte(text)); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %+v, %v", what, s, err)
		}
	}
}

func TestResidentIsUnknownUntilTheKernelHasCounted(t *testing.T) {
	for _, c := range []struct {
		line statLine
		want int64
	}{
		{statLine{state: 'S', rss: 3}, 12288},
		{statLine{state: 'R'}, -1},
		{statLine{state: 'Z'}, 0},
		{statLine{state: 'S', flags: pfKthread}, 0},
	} {
		if got := c.line.resident(4096); got != c.want {
			t.Errorf("%+v: %d, want %d", c.line, got, c.want)
		}
	}
}

func TestParseStatus(t *testing.T) {
	text := "Name:\tx\\nTgid:\t1\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t40\nPid:\t41\nUid:\t1000\t0\t0\t0\nGid:\t1\t1\t1\t1\nGroups:\t4 24 1000 \nNSpid:\t41\t7\nSigIgn:\t0000000000000001\nCapEff:\t00000000000001ff\n"
	s, err := parseStatus([]byte(text))
	want := statusFile{tgid: 40, uid: 1000, nspid: 2, sigIgn: 1, capEff: 0x1ff, gids: []int{4, 24, 1000}}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"", "Tgid:\t1\n", "Uid:\t1\n", "Tgid:\t0\nUid:\t0\n", "Tgid:\tx\nUid:\t0\n", "Tgid:\t-1\nUid:\t0\n", "Tgid:\t1\nUid:\t99999999999\n"} {
		if s, err := parseStatus([]byte(bad)); !errors.Is(err, errMalformed) {
			t.Errorf("%q: %+v, %v", bad, s, err)
		}
	}
}

func TestParsePids(t *testing.T) {
	if got, err := parsePids([]byte("12 345 6 \n"), nil); err != nil || !slices.Equal(got, []int{12, 345, 6}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"0", "-1", "x", "4294967297", "1 2x"} {
		if got, err := parsePids([]byte(bad), nil); !errors.Is(err, errMalformed) {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

func TestArguments(t *testing.T) {
	for text, want := range map[string][]string{
		"":                             nil,
		"a\x00\x00b\x00":               {"a", "", "b"},
		"a\x00\x00":                    {"a", ""},
		"VLLM::Worker_TP0\x00\x00\x00": {"VLLM::Worker_TP0"},
		"a\x00b\x00\x00\x00\x00\x00":   {"a", "b"},
		"\x00\x00\x00":                 {""},
	} {
		if got := arguments([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSplitNul(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, "\x00": nil, "a\x00": {"a"}, "a": {"a"}, "a\x00\x00b\x00": {"a", "", "b"}, "nginx: master\x00\x00\x00": {"nginx: master", "", ""},
	} {
		if got := splitNul([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// dirent is a linux_dirent64.
func dirent(name string) []byte {
	length := (19 + len(name) + 1 + 7) &^ 7
	b := make([]byte, length)
	binary.NativeEndian.PutUint16(b[16:], uint16(length))
	copy(b[19:], name)
	return b
}

func TestEachDirent(t *testing.T) {
	var buf []byte
	for _, name := range []string{".", "..", "1", "sys", "4321", "0", "12x", "-5", "99999999999", strings.Repeat("7", 200)} {
		buf = append(buf, dirent(name)...)
	}
	var got []int
	if err := eachDirent(buf, func(n int) { got = append(got, n) }); err != nil || !slices.Equal(got, []int{1, 4321}) {
		t.Errorf("%v, %v", got, err)
	}
	zero := dirent("1")
	binary.NativeEndian.PutUint16(zero[16:], 0)
	long := dirent("1")
	binary.NativeEndian.PutUint16(long[16:], 999)
	for _, bad := range [][]byte{zero, long, buf[:10]} {
		if err := eachDirent(bad, func(int) {}); !errors.Is(err, errMalformed) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}

// word is an address as the kernel prints it, in this machine's byte order.
func word(ip string) string {
	var out strings.Builder
	b := netip.MustParseAddr(ip).AsSlice()
	for i := 0; i < len(b); i += 4 {
		fmt.Fprintf(&out, "%08X", binary.NativeEndian.Uint32(b[i:]))
	}
	return out.String()
}

const tcpHeading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

func TestParseTCP(t *testing.T) {
	text := tcpHeading +
		"   0: " + word("127.0.0.1") + ":1F90 " + word("0.0.0.0") + ":0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1 0000000000000000 100 0 0 10 0\n" +
		"   1: " + word("::ffff:127.0.0.1") + ":1F90 " + word("::ffff:127.0.0.1") + ":D431 01 00000000:00000000 00:00000000 00000000     0        0 18446744073709551615 1 0\n" +
		"   2: " + word("2001:db8::1") + ":0050 " + word("::") + ":0000 0A 00000000:00000000 00:00000000 00000000     0        0 7 1 0\n"
	got, err := parseTCP([]byte(text))
	want := []Socket{
		{Inode: 12345, Local: netip.MustParseAddrPort("127.0.0.1:8080"), Remote: netip.MustParseAddrPort("0.0.0.0:0"), Listen: true, UID: 1000},
		{Inode: 1<<64 - 1, Local: netip.MustParseAddrPort("127.0.0.1:8080"), Remote: netip.MustParseAddrPort("127.0.0.1:54321")},
		{Inode: 7, Local: netip.MustParseAddrPort("[2001:db8::1]:80"), Remote: netip.MustParseAddrPort("[::]:0"), Listen: true},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestParseTCPRefuses(t *testing.T) {
	good := "0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000 0 12345 1"
	for _, bad := range []string{
		"0: 0100007F:1F90", strings.Replace(good, "0100007F", "0100007", 1), strings.Replace(good, "0100007F", "0100007G", 1),
		strings.Replace(good, ":1F90", ":11F90", 1), strings.Replace(good, " 0A ", " AAA ", 1), strings.Replace(good, "12345", "-1", 1),
		strings.Replace(good, "1000", "-1", 1), strings.Replace(good, "0100007F:1F90", "0100007F1F90", 1),
	} {
		if got, err := parseTCP([]byte(tcpHeading + bad + "\n")); !errors.Is(err, errMalformed) {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
	}
	if got, err := parseTCP([]byte(tcpHeading)); err != nil || len(got) != 0 {
		t.Errorf("heading alone: %v, %v", got, err)
	}
}

func TestMountOptions(t *testing.T) {
	for text, want := range map[string]string{"rw": " 0", "rw,hidepid=2": "2 0", "rw,gid=24,hidepid=invisible": "invisible 24", "": " 0"} {
		mode, gid := mountOptions(text)
		if got := fmt.Sprint(mode, " ", gid); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestArenaTextsDoNotTouch(t *testing.T) {
	var a arena
	var texts []string
	for i := range 3000 {
		texts = append(texts, a.bytes(bytes.Repeat([]byte{byte('a' + i%26)}, i%70)))
	}
	for i, s := range texts {
		if s != strings.Repeat(string(rune('a'+i%26)), i%70) {
			t.Fatalf("text %d is %q", i, s)
		}
	}
}

func TestParseStamp(t *testing.T) {
	const limits = "Limit                     Soft Limit           Hard Limit           Units     \n" +
		"Max locked memory         8388608              8388609              bytes     \n" +
		"Max file locks            %s locks     \n" +
		"Max pending signals       96365                96366                signals   \n"
	for line, want := range map[string]uint64{
		"unlimited            unlimited           ": 0, "1073741825           1073741826          ": 1073741826,
		"0                    18446744073709551614": 18446744073709551614,
	} {
		if n, ok := parseStamp([]byte(fmt.Sprintf(limits, line))); n != want || !ok {
			t.Errorf("%q: got %d, %v", line, n, ok)
		}
	}
	for _, bad := range []string{"", "Max file locks", "Max file locks  5\n", "Max file locks 5 x locks\n", "Max pending signals 5 5 signals\n"} {
		if n, ok := parseStamp([]byte(bad)); ok {
			t.Errorf("%q: got %d", bad, n)
		}
	}
}

func TestParseDiskRead(t *testing.T) {
	const io = "rchar: 4292\nwchar: 0\nsyscr: 13\nsyscw: 0\nread_bytes: 12288\nwrite_bytes: 7\ncancelled_write_bytes: 0\n"
	if n, ok := parseDiskRead([]byte(io)); n != 12288 || !ok {
		t.Errorf("got %d, %v", n, ok)
	}
	for _, bad := range []string{"", "read_bytes:", "read_bytes: x\n", "read_bytes: \n", "cancelled_read_bytes: 3\n"} {
		if n, ok := parseDiskRead([]byte(bad)); ok {
			t.Errorf("%q: got %d", bad, n)
		}
	}
}
