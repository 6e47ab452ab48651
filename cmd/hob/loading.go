package main

import (
	"fmt"
	"strconv"
	"strings"

	"hob/tasks/probe"
)

// loading is how far a task has come, in words: "44% Loading shards (4/9)".
func loading(p probe.Progress) string {
	s := fmt.Sprintf("%d%%", p.Percent)
	if p.What != "" {
		s += " " + plain(p.What)
	}
	if p.Total > 0 {
		s += fmt.Sprintf(" (%s/%s%s)", figure(p.Done), figure(p.Total), strings.TrimRight(" "+p.Unit, " "))
	}
	return s
}

func figure(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// tenth is how many tenths are done, for those who get a line for each; -1 for
// what does not say.
func tenth(p *probe.Progress) int {
	if p == nil {
		return -1
	}
	return p.Percent / 10
}

// barWidth is how many characters a bar has.
const barWidth = 20

// bar draws how far it has come.
func bar(percent int) string {
	full := min(max(percent, 0), 100) * barWidth / 100
	return strings.Repeat("█", full) + strings.Repeat("░", barWidth-full)
}
