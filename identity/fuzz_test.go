package identity

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func FuzzStat(f *testing.F) {
	for _, comm := range comms {
		f.Add([]byte(statText(comm)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseStat(text)
		if err != nil {
			return
		}
		if s.pid < 1 || s.ppid < 0 || s.threads < 0 || bytes.Count(text, s.comm) == 0 {
			t.Errorf("%q: %+v", text, s)
		}
		// A process that names itself cannot change what the rest says.
		again, err := parseStat(bytes.Replace(text, append([]byte("("), s.comm...), []byte("() Z 1 1"), 1))
		if err == nil && (again.start != s.start || again.ppid != s.ppid || again.state != s.state) {
			t.Errorf("%q: %+v, renamed %+v", text, s, again)
		}
	})
}

func FuzzStatus(f *testing.F) {
	f.Add([]byte("Name:\tx\nTgid:\t40\nUid:\t1\t2\t3\t4\nNSpid:\t1\t2\nGroups:\t1 2\nSigIgn:\tff\n"))
	f.Add([]byte("Tgid:40\nUid:0"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := parseStatus(text); err == nil && (s.tgid < 1 || s.uid < 0) {
			t.Errorf("%q: %+v", text, s)
		}
	})
}

func FuzzCmdline(f *testing.F) {
	f.Add([]byte("sleep\x00600\x00"))
	f.Add([]byte("nginx: master\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		args := splitNul(text)
		if joined := strings.Join(args, "\x00"); joined != string(bytes.TrimSuffix(text, []byte{0})) {
			t.Errorf("%q: %q", text, args)
		}
	})
}

func FuzzCgroup(f *testing.F) {
	for _, text := range []string{"0::/a/b\n", "1:cpu:/\n0::/\n", "0::/gone (deleted)\n", ""} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, ok := unifiedCgroup(text); !bytes.Contains(text, []byte(got)) || !ok && got != "" {
			t.Errorf("%q, %t", got, ok)
		}
		for _, m := range parseCgroupMounts(text) {
			m.dirOf("/a/b")
		}
	})
}

func FuzzStamp(f *testing.F) {
	f.Add([]byte("Max file locks            unlimited            7                    locks\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if n, ok := parseStamp(text); n != 0 && (!ok || !bytes.Contains(text, []byte("Max file locks "))) {
			t.Errorf("%q: %d, %v", text, n, ok)
		}
	})
}

func FuzzChildren(f *testing.F) {
	f.Add([]byte("12 345 \n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		pids, err := parsePids(text, nil)
		for _, p := range pids {
			if p < 1 || p > 1<<31-1 || err == nil && len(pids) > len(text) {
				t.Errorf("%q: %v", text, pids)
			}
		}
	})
}

func FuzzDirents(f *testing.F) {
	f.Add(append(dirent("1"), dirent("4321")...))
	f.Add(dirent("self")[:20])
	f.Fuzz(func(t *testing.T, buf []byte) {
		_ = eachDirent(buf, func(n int) {
			if n < 1 || n > 1<<31-1 {
				t.Errorf("%x: %d", buf, n)
			}
		})
	})
}

func FuzzTCP(f *testing.F) {
	f.Add([]byte(tcpHeading + "0: 0100007F:1F90 00000000:0000 0A 0:0 0:0 0 1000 0 12345 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		socks, err := parseTCP(text)
		for _, s := range socks {
			if err == nil && (!s.Local.IsValid() || !s.Remote.IsValid()) {
				t.Errorf("%q: %+v", text, s)
			}
		}
	})
}

func FuzzKinfo(f *testing.F) {
	f.Add(sample(f, darwinSample()))
	f.Add(sample(f, freebsdSample()))
	f.Add(sample(f, openbsdSample()))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, k := range []kinfo{darwinKinfo, freebsdKinfo, openbsdKinfo} {
			p, _, err := k.parse(b, 4096)
			if err == nil && (len(b) != k.size || p.PID < 0 || p.PPID < 0 || len(p.Comm) > k.commLen) {
				t.Errorf("%s: %+v", k.source, p)
			}
			_ = k.parseAll(b, 4096, func(Process, int64) {})
		}
	})
}

func FuzzProcargs2(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00/bin/sh\x00\x00sh\x00-c\x00HOME=/\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		args, environ, err := parseProcargs2(b)
		if err == nil && len(args)+len(environ) > len(b) {
			t.Errorf("%q: %q %q", b, args, environ)
		}
		_, _ = parseTimeval(b)
	})
}

func FuzzPS(f *testing.F) {
	f.Add([]byte("    1     0     1     0 Is   /sbin/init\n 4321     1  4321  1000 Z    \n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, _ := parsePS(text)
		for _, p := range rows {
			if p.PID < 1 || p.PPID < 0 || p.UID < 0 || p.Start != "" {
				t.Errorf("%q: %+v", text, p)
			}
		}
	})
}

// FuzzRef: no stored text makes a stranger ours, and none is lost when its file
// is written again.
func FuzzRef(f *testing.F) {
	f.Add([]byte(goodRef))
	for _, text := range hostile {
		if len(text) < 1<<12 {
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := ParseRef(text)
		stranger := ourKernel()
		stranger.inode, stranger.rows[0].p.Start = ptr(uint64(1)<<63), "linux:18446744073709551615"
		h, found := stranger.verifier(ourFacts()).verify(r)
		sameOne := r.PIDFS != nil && *r.PIDFS == 1<<63 || r.PIDFS == nil && r.Start == "linux:18446744073709551615"
		if h != nil && !sameOne || len(stranger.sent)+len(stranger.killed) > 0 {
			t.Errorf("%q: %+v", text, found)
		}
		if found.Verdict != Owned && found.Reason == "" {
			t.Errorf("%q: %s without a reason", text, found.Verdict)
		}
		if !json.Valid(text) {
			return
		}
		written, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if again := ParseRef(written); again.PID != r.PID || again.Start != r.Start || again.Boot != r.Boot || (again.bad == "") != (r.bad == "") {
			t.Errorf("%q became %q", text, written)
		}
	})
}
