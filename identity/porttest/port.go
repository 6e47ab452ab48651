// Package porttest gives tests ports that stay theirs until they are used.
package porttest

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync"
)

// The range is below those that systems take a port from for whoever leaves the
// choice to them (Linux: net.ipv4.ip_local_port_range), and no known server's.
const (
	first = 21000
	last  = 29999
)

// held are the tokens of this process's ports.
var held struct {
	sync.Mutex
	tokens []net.PacketConn
}

// Free is a TCP port that nobody listens on, and that no other call gives out while
// this process lives, in whatever process. The token for that is the UDP port of the
// same number: the kernel gives it once, and takes it back with the process.
func Free() (int, error) {
	held.Lock()
	defer held.Unlock()
	start := rand.IntN(last - first + 1)
	for i := range last - first + 1 {
		port := first + (start+i)%(last-first+1)
		token, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			continue
		}
		l, err := net.ListenTCP("tcp", &net.TCPAddr{Port: port})
		if err != nil {
			_ = token.Close()
			continue
		}
		held.tokens = append(held.tokens, token)
		return port, l.Close()
	}
	return 0, errors.New("no port is free")
}
