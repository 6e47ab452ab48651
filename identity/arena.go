package identity

import (
	"strconv"
	"unsafe"
)

// arena holds the short texts of many rows in few allocations.
type arena struct{ free []byte }

func (a *arena) bytes(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(a.free) < len(b) {
		a.free = make([]byte, max(4096, len(b)))
	}
	n := copy(a.free, b)
	out := unsafe.String(&a.free[0], n) // written once: the rest of the block is handed out elsewhere
	a.free = a.free[n:]
	return out
}

func (a *arena) token(start uint64) Token {
	var b [32]byte
	return Token(a.bytes(strconv.AppendUint(append(b[:0], "linux:"...), start, 10)))
}
