// Package porttest gives tests ports that stay theirs until they are used.
package porttest

import (
	"fmt"
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
func Free() (int, error) { return Row(1) }

// Row is the first of n such ports in a row.
func Row(n int) (int, error) {
	held.Lock()
	defer held.Unlock()
	var row []net.PacketConn
	for start, i := rand.IntN(last-first+1), 0; i < last-first+n; i++ {
		port := first + (start+i)%(last-first+1)
		if port == first { // the last port and the first one are no row
			row = giveBack(row)
		}
		token, err := take(port)
		if err != nil {
			row = giveBack(row)
			continue
		}
		if row = append(row, token); len(row) == n {
			held.tokens = append(held.tokens, row...)
			return port - n + 1, nil
		}
	}
	giveBack(row)
	return 0, fmt.Errorf("no %d ports in a row are free", n)
}

// take holds a port's token, once nobody listens on the port.
func take(port int) (net.PacketConn, error) {
	token, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return nil, err
	}
	l, err := net.ListenTCP("tcp", &net.TCPAddr{Port: port})
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		_ = token.Close()
		return nil, err
	}
	return token, nil
}

// giveBack leaves an empty row.
func giveBack(row []net.PacketConn) []net.PacketConn {
	for _, token := range row {
		_ = token.Close()
	}
	return row[:0]
}
