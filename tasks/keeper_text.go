package tasks

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLastLine bounds last_line, in bytes.
const maxLastLine = 240

// lastLine is the last line with something on it, as a person would read it.
func lastLine(tail []byte) string {
	for len(tail) > 0 {
		i := bytes.LastIndexByte(bytes.TrimRight(tail, "\r\n"), '\n')
		line := strings.TrimSpace(string(plainText(lastReturn(tail[i+1:]))))
		if line != "" {
			return cutText(line, maxLastLine)
		}
		tail = tail[:max(i, 0)]
	}
	return ""
}

// lastReturn is what a line shows in the end that was overwritten by carriage
// returns, as progress bars do.
func lastReturn(line []byte) []byte {
	line = bytes.TrimRight(line, "\r\n")
	return line[bytes.LastIndexByte(line, '\r')+1:]
}

func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

// plainText drops terminal control: escape sequences, and control characters
// but for tabs. What it returns is a copy.
func plainText(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		if b[0] == 0x1b {
			b = b[escapeLen(b):]
			continue
		}
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			out = utf8.AppendRune(out, utf8.RuneError)
		case r == '\t' || !unicode.IsControl(r):
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

// escapeLen is the length of the escape sequence at the start of b (ECMA-48):
// CSI up to its final byte, OSC and the other strings up to BEL or ST, else
// intermediate bytes and one more.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return len(b)
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
		}
		return len(b)
	case ']', 'P', 'X', '^', '_':
		for i := 2; i < len(b); i++ {
			if b[i] == 0x07 {
				return i + 1
			}
			if b[i] == 0x1b && i+1 < len(b) && b[i+1] == '\\' {
				return i + 2
			}
		}
		return len(b)
	}
	i := 1
	for i < len(b) && b[i] >= 0x20 && b[i] <= 0x2f {
		i++
	}
	return min(i+1, len(b))
}
