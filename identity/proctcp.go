package identity

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strconv"
)

// tcpListen is TCP_LISTEN of include/net/tcp_states.h.
const tcpListen = 0x0A

// parseTCP parses /proc/net/tcp or tcp6. IPv4 addresses inside tcp6 are
// unmapped, so that both ends of one connection read alike.
func parseTCP(text []byte) ([]Socket, error) {
	var out []Socket
	_, text, _ = bytes.Cut(text, []byte("\n")) // the heading
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) == 0 {
			continue
		}
		s, ok := parseTCPLine(f)
		if !ok {
			return out, errMalformed
		}
		out = append(out, s)
	}
	return out, nil
}

// parseTCPLine takes the fields: sl, local, remote, state, queues, timer,
// retransmits, uid, timeout, inode.
func parseTCPLine(f [][]byte) (s Socket, ok bool) {
	if len(f) < 10 {
		return s, false
	}
	var okL, okR bool
	s.Local, okL = parseHexAddr(f[1])
	s.Remote, okR = parseHexAddr(f[2])
	state, errS := strconv.ParseUint(string(f[3]), 16, 8)
	uid, okU := decimal(f[7])
	inode, errI := strconv.ParseUint(string(f[9]), 10, 64)
	if !okL || !okR || !okU || errS != nil || errI != nil || uid < 0 || uid > 1<<32-1 {
		return s, false
	}
	s.Listen, s.UID, s.Inode = state == tcpListen, int(uid), inode
	return s, true
}

// parseHexAddr parses "0100007F:1F90". The kernel prints each 32-bit word of
// the address in its own byte order, and the port as a number.
func parseHexAddr(b []byte) (netip.AddrPort, bool) {
	host, port, ok := bytes.Cut(b, []byte(":"))
	if !ok || len(host) != 8 && len(host) != 32 {
		return netip.AddrPort{}, false
	}
	var a [16]byte
	n, err := hex.Decode(a[:], host)
	p, err2 := strconv.ParseUint(string(port), 16, 16)
	if err != nil || err2 != nil {
		return netip.AddrPort{}, false
	}
	for i := 0; i < n; i += 4 {
		binary.NativeEndian.PutUint32(a[i:], binary.BigEndian.Uint32(a[i:]))
	}
	addr, _ := netip.AddrFromSlice(a[:n])
	return netip.AddrPortFrom(addr.Unmap(), uint16(p)), true
}
