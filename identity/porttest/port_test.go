package porttest

import (
	"fmt"
	"net"
	"testing"
)

// Each call gives other ports, which can be listened on, and which are no other's to
// give out.
func TestFree(t *testing.T) {
	seen := map[int]bool{}
	for i := range 60 {
		n := 1 + 3*(i%2)
		give := func() (int, error) { return Row(n) }
		if n == 1 {
			give = Free
		}
		row, err := give()
		if err != nil {
			t.Fatal(err)
		}
		for port := row; port < row+n; port++ {
			if seen[port] || port < first || port > last {
				t.Fatalf("port %d of %d from %d on, seen %t", port, n, row, seen[port])
			}
			seen[port] = true
			taken(t, port)
		}
	}
}

func taken(t *testing.T, port int) {
	t.Helper()
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
