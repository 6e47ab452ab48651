package identity

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// Peer is the process that listens on the other side of a connected Unix socket,
// as the kernel noted it when that began to listen (SO_PEERCRED, unix(7)): its
// number in our pid namespace, 0 when it has none there, and its user.
func Peer(c *net.UnixConn) (pid, uid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, -1, fmt.Errorf("find the peer of a socket: %w", err)
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err == nil {
		err = credErr
	}
	if err != nil {
		return 0, -1, fmt.Errorf("find the peer of a socket: %w", err)
	}
	return int(cred.Pid), int(cred.Uid), nil
}
