package porttest

import (
	"fmt"
	"net"
	"testing"
)

// Each call gives another port, which can be listened on, and which is no other's to
// give out.
func TestFree(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		port, err := Free()
		if err != nil || seen[port] || port < first || port > last {
			t.Fatalf("port %d, seen %t: %v", port, seen[port], err)
		}
		seen[port] = true
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if u, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = u.Close()
			t.Errorf("port %d: its token is free", port)
		}
	}
}
