package identity

import (
	"bytes"
	"fmt"
)

// parsePS parses the answer of `ps -A -o psColumns` (local_ps.go) under LC_ALL=C.
func parsePS(text []byte) ([]Process, error) {
	var out []Process
	for line := range bytes.Lines(text) {
		p, err := parsePSLine(bytes.TrimRight(line, "\r\n"))
		if err != nil {
			return out, err
		}
		out = append(out, p)
	}
	return out, nil
}

func parsePSLine(line []byte) (p Process, err error) {
	var f [4]int64
	rest := line
	for i := range f {
		var word []byte
		word, rest = cutWord(rest)
		n, ok := decimal(word)
		if !ok || n < 0 || n > 1<<32-1 {
			return p, fmt.Errorf("%w: a line of ps: %q", errMalformed, clip(string(line)))
		}
		f[i] = n
	}
	state, args := cutWord(rest)
	if len(state) == 0 || f[0] < 1 {
		return p, fmt.Errorf("%w: a line of ps: %q", errMalformed, clip(string(line)))
	}
	p = Process{PID: int(f[0]), PPID: int(f[1]), PGID: int(f[2]), UID: int(f[3]), State: State(state[0]), RSS: -1}
	if args = bytes.TrimSpace(args); len(args) > 0 {
		p.Args = []string{string(args)} // ps has joined them
	}
	return p, nil
}

func cutWord(b []byte) (word, rest []byte) {
	b = bytes.TrimLeft(b, " \t")
	if i := bytes.IndexAny(b, " \t"); i >= 0 {
		return b[:i], b[i:]
	}
	return b, nil
}
