//go:build !linux && (unix || windows)

package identity

import (
	"context"
	"fmt"
	"net/netip"

	psnet "github.com/shirou/gopsutil/v4/net"
)

// tcpSockets lists TCP sockets with their holders. gopsutil knows each
// system's way; it serves for looking only.
func tcpSockets(ctx context.Context) ([]Socket, error) {
	conns, err := psnet.ConnectionsWithContext(ctx, "tcp")
	if err != nil {
		return nil, fmt.Errorf("list sockets: %w: %w", ErrUnverifiable, err)
	}
	out := make([]Socket, 0, len(conns))
	for _, c := range conns {
		out = append(out, Socket{
			Local: addrPort(c.Laddr), Remote: addrPort(c.Raddr), Listen: c.Status == "LISTEN",
			UID: -1, PID: int(c.Pid),
		})
	}
	return out, nil
}

func addrPort(a psnet.Addr) netip.AddrPort {
	ip, err := netip.ParseAddr(a.IP)
	if err != nil { // "*" is any address
		ip = netip.IPv6Unspecified()
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(a.Port))
}

// Sockets lists the host's TCP sockets; these systems have one network.
func (l *local) Sockets(ctx context.Context, _ int) ([]Socket, error) { return tcpSockets(ctx) }

// Holders is not needed where Socket.PID names the holder.
func (l *local) Holders(context.Context, []uint64, []int) (Holders, error) {
	return Holders{}, fmt.Errorf("look for holders: %w: the socket listing names them", ErrUnsupported)
}
