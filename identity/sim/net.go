//go:build unix

package sim

import (
	"context"
	"net/netip"
	"slices"

	"hob/identity"
)

// socket is an open file that is a TCP listener. Fork hands it on, so several
// processes may hold one.
type socket struct {
	inode uint64
	port  int
	uid   int
}

// Listen has the process listen on a port.
func (p *Process) Listen(port int) {
	p.w.socket++
	p.sockets = append(p.sockets, socket{inode: p.w.socket, port: port, uid: p.uid})
}

// CloseSockets closes all that the process has open.
func (p *Process) CloseSockets() { p.sockets = nil }

// Sockets lists every listener once, whoever holds it: /proc/net/tcp needs no privilege.
func (h host) Sockets(ctx context.Context, _ int) ([]identity.Socket, error) {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.point("Sockets")
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := w.look("list sockets"); err != nil {
		return nil, err
	}
	var out []identity.Socket
	seen := map[uint64]bool{}
	for _, p := range w.all {
		for _, s := range p.sockets {
			if !seen[s.inode] {
				seen[s.inode] = true
				local := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(s.port))
				out = append(out, identity.Socket{Inode: s.inode, Local: local, Listen: true, UID: s.uid})
			}
		}
	}
	return out, nil
}

// Holders looks into the open files of processes, which needs their user.
func (h host) Holders(ctx context.Context, inodes []uint64, among []int) (identity.Holders, error) {
	w := h.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.point("Holders")
	out := identity.Holders{ByInode: map[uint64][]int{}}
	if err := ctx.Err(); err != nil {
		return out, err
	}
	if err := w.look("read open files"); err != nil {
		return out, err
	}
	for _, p := range w.all {
		if among != nil && !slices.Contains(among, p.pid) || w.unseen(p) {
			continue
		}
		if w.caller.uid != 0 && p.uid != w.caller.uid || p.hidden {
			out.Unreadable = append(out.Unreadable, p.pid)
			continue
		}
		for _, s := range p.sockets {
			if slices.Contains(inodes, s.inode) {
				out.ByInode[s.inode] = append(out.ByInode[s.inode], p.pid)
			}
		}
	}
	return out, nil
}
