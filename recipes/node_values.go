package recipes

import (
	"slices"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
)

// Values of nodes that the walk has checked. Of nil, and of one that is wrong, they
// are empty.

// anyBad reports whether one of the keys holds something that is wrong.
func (n *node) anyBad(keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { v := n.any(k); return v != nil && v.bad })
}

func (n *node) str() string { return n.or("") }

func (n *node) or(otherwise string) string {
	if n == nil || n.bad || n.form&scalars == 0 {
		return otherwise
	}
	return n.text
}

func (n *node) isTrue() bool { return n.str() == "true" }

func (n *node) number() int {
	i, _ := strconv.Atoi(n.str())
	return i
}

func (n *node) duration(otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(n.str()); err == nil {
		return d
	}
	return otherwise
}

func (n *node) size() int64 {
	b, err := humanize.ParseBytes(n.str())
	if err != nil {
		return 0
	}
	return int64(b)
}

func (n *node) words() []string {
	if n == nil || n.bad {
		return nil
	}
	if n.form != sequence {
		return []string{n.text}
	}
	var all []string
	for _, item := range n.items {
		all = append(all, item.text)
	}
	return all
}
