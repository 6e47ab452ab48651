package recipes

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// ParseSize reads a size as people write it: 512, 500MB (a million each), 18 GiB or
// 18Gi (1024³), 1.5G, 1,024k. It is our own, since a library's tables of units are
// made at each start of a program, and so of every keeper, which never reads one.
func ParseSize(s string) (uint64, error) {
	end := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != ',' })
	if end < 0 {
		end = len(s)
	}
	number := strings.ReplaceAll(s[:end], ",", "")
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("size %q: %w", s, errors.Unwrap(err))
	}
	unit, ok := sizeUnit(strings.ToLower(strings.TrimSpace(s[end:])))
	if !ok {
		return 0, fmt.Errorf("size %q: there is no such unit", s)
	}
	if n, err := strconv.ParseUint(number, 10, 64); err == nil { // a float has 53 bits
		over, product := bits.Mul64(n, unit)
		if over != 0 {
			return 0, fmt.Errorf("size %q: too large", s)
		}
		return product, nil
	}
	if f *= float64(unit); f >= math.MaxUint64 {
		return 0, fmt.Errorf("size %q: too large", s)
	}
	return uint64(f), nil
}

// sizeUnit is what a unit in small letters stands for: k, kb, ki or kib, and so on.
func sizeUnit(unit string) (bytes uint64, ok bool) {
	if unit == "" || unit == "b" {
		return 1, true
	}
	power := strings.IndexByte("kmgtpe", unit[0]) + 1
	base := uint64(1000)
	switch unit[1:] {
	case "", "b":
	case "i", "ib":
		base = 1024
	default:
		power = 0
	}
	bytes = 1
	for range power {
		bytes *= base
	}
	return bytes, power > 0
}
