package flock

import (
	"slices"
	"testing"
)

func TestTakers(t *testing.T) {
	const list = `1: FLOCK  ADVISORY  WRITE 16843 fe:00:10002966 0 EOF
1: -> FLOCK  ADVISORY  WRITE 16900 fe:00:10002966 0 EOF
2: POSIX  ADVISORY  WRITE 17 fe:00:10002966 0 EOF
3: OFDLCK ADVISORY  READ  -1 00:06:10002966 0 0
4: FLOCK  ADVISORY  WRITE 18 fe:01:10002966 0 EOF
5: LEASE  ACTIVE    READ  19 fe:00:10002966 0 EOF
6: FLOCK  ADVISORY  WRITE 0 fe:00:7 0 EOF
7: FLOCK  ADVISORY  WRITE 20 fe:00:1000296 0 EOF
8: FLOCK  ADVISORY  WRITE x fe:00:10002966 0 EOF
9: FLOCK  ADVISORY  WRITE 21 10002966 0 EOF
10: FLOCK ADVISORY
`
	for inode, want := range map[uint64][]int{10002966: {16843, 18}, 7: nil, 1000296: {20}, 1: nil} {
		if got := takers([]byte(list), inode); !slices.Equal(got, want) {
			t.Errorf("inode %d: %v; want %v", inode, got, want)
		}
	}
}
